/* The model that fuzzed checkpoints are of: as few and as small tensors as have all kinds of rows. */
#ifndef GDN_TEST_TINY_MODEL_H
#define GDN_TEST_TINY_MODEL_H

#include "dist/checkpoint/checkpoint.h"

/* Its weights, optimiser state and scales, the same memory each time; values are functions of their
 * places. */
struct checkpoint_content tiny_model(void);

#endif
