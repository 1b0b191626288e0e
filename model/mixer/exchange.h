/* How ranks that share sequences (dist/layout/pieces.h) bring together what attention needs of whole ones
 * (mesh.context_exchange): a table, of which a row is one way, in a file of its own (context.h). */
#ifndef GDN_MIXER_EXCHANGE_H
#define GDN_MIXER_EXCHANGE_H

#include "model/params/config.h"

/* The words of the table, as choices of a key: "gather|…". In its order: model_part.context_exchange. */
const char *exchange_words(void);

/* What does not go together with an exchange between so many context ranks, NULL where all does. */
const struct conflict *exchange_conflict(int exchange, const struct model_config *config, int tensor,
                                         int context);
/* Whether ranks hand to the next one alone, else to all. */
bool exchange_to_next(int exchange);

#endif
