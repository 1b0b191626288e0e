/* How far training is. */
#ifndef GDN_RUN_POSITION_H
#define GDN_RUN_POSITION_H

#include <stdbool.h>
#include <stdint.h>

struct run_position {
    int64_t step, samples; /* optimiser steps done; the data position, in sequences of this length */
    int64_t tokens;        /* consumed, also in sequences of other lengths (--resume-with) */
    double best_loss;      /* least validation loss of a checkpoint, NAN: none */
    bool evaluation_due;   /* after the steps done so far, since it was given up */
    bool on_disk;          /* the run directory holds a checkpoint of exactly this state */
};

#endif
