/* Choosing the next token from logits: temperature, top-k and top-p (nucleus; Holtzman et al. 2020). */
#ifndef GDN_SAMPLE_TOKEN_H
#define GDN_SAMPLE_TOKEN_H

#include <stdint.h>

#include "kernels/base/real.h"

struct sampling {
    double temperature; /* 0: always the likeliest */
    long top_k;         /* only the k likeliest; 0: all */
    double top_p;       /* only the likeliest that together have this probability; 1: all */
};

struct candidate {
    double probability;
    int32_t token;
};

/* Picks a token from logits [vocab]; `uniform` in [0, 1) is the random number, `work` [vocab] scratch. Ties
 * go to the lower token, so the result does not depend on the sort. */
int32_t sample_token(const real *logits, long vocab, const struct sampling *sampling, double uniform,
                     struct candidate *work);

#endif
