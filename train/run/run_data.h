/* The data that a run trains and is measured on. */
#ifndef GDN_RUN_DATA_H
#define GDN_RUN_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "data/sampler.h"
#include "train/evaluation/validation.h"

struct run_data {
    struct sampler *sampler; /* training samples */
    struct validation validation;
    int32_t *rows; /* [share, sequence_length + 1] this data rank's part of the next batch, from the first on */
    char *text;    /* what the training data are, as checkpoints hold it; NULL before run_match_data */
    bool changed;  /* since the checkpoint that the run goes on from */
};

#endif
