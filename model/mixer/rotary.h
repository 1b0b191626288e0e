/* Private to model/mixer/: the angles that rotary positions turn pairs of channels by (Su et al. 2021), and
 * what becomes of their frequencies in models that are to read further than they were trained to
 * (model.rope_scaling; model.md, 1). */
#ifndef GDN_ROTARY_H
#define GDN_ROTARY_H

#include "model/params/config.h"

/* The words of the table of scalings, as choices of a key: "none|…". In its order: rope_scaling.kind. */
const char *rotary_words(void);

/* What of the settings does not go together, NULL where all does. */
const struct conflict *rotary_conflict(const struct rope_scaling *scaling);

/* The angle per position of pair i of a head's channels. */
double rotary_frequency(const struct model_config *config, long i);

#endif
