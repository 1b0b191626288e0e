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

/* What is chosen among, of logits [vocab]: into work [vocab] by falling probability, over a mass that they
 * have together; returns how many. And the one that `uniform` in [0, 1) picks of them. */
long sample_candidates(const real *logits, long vocab, const struct sampling *sampling,
                       struct candidate *work, double *mass);
int32_t sample_pick(const struct candidate *work, long kept, double mass, double uniform);

/* Picks a token from logits [vocab]; `uniform` in [0, 1) is the random number, `work` [vocab] scratch. Ties
 * go to the lower token, so the result does not depend on the sort. */
int32_t sample_token(const real *logits, long vocab, const struct sampling *sampling, double uniform,
                     struct candidate *work);

/* What the tokens of a text are chosen by. */
struct choosing {
    const struct sampling *sampling;
    long seed;
    long place;             /* of the next token among those chosen: random numbers follow from this */
    struct candidate *work; /* [vocab] scratch */
};

/* The random number of a place, one for each use; and the token there, from logits [vocab]. */
double choosing_uniform(const struct choosing *by, const char *use, long place);
int32_t choosing_token(const struct choosing *by, const real *logits, long vocab, long place);

#endif
