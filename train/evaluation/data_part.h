/* The samplers of a configuration's data. */
#ifndef GDN_DATA_PART_H
#define GDN_DATA_PART_H

#include <stdbool.h>

#include "data/sampler.h"
#include "train/config/config.h"

/* The part from fraction `from` to `to` of each stream: of `files` where it is not empty, else of the
 * mixture data.sources. Not collective. Fails like sampler_open; close with sampler_close. */
int data_part_open(const struct config *config, const struct path_list *files, bool shuffle, double from,
                   double to, struct sampler **out);

/* How much at the end of the training data is held out for validation: 0 where data.validation is given. */
double data_held_out(const struct data_config *data);

#endif
