#include "train/command/sample_token.h"

#include <math.h>
#include <stdlib.h>

static int likelier(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->probability != y->probability) return x->probability > y->probability ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

int32_t sample_token(const real *logits, long vocab, const struct sampling *sampling, double uniform,
                     struct candidate *work) {
    double max = -INFINITY;
    for (long i = 0; i < vocab; i++) max = logits[i] > max ? (double)logits[i] : max;
    double scale = sampling->temperature > 0 ? 1 / sampling->temperature : 1, total = 0;
    for (long i = 0; i < vocab; i++) {
        work[i] = (struct candidate){exp(((double)logits[i] - max) * scale), (int32_t)i};
        total += work[i].probability;
    }
    qsort(work, (size_t)vocab, sizeof *work, likelier);
    if (sampling->temperature == 0) return work[0].token;
    long kept = sampling->top_k > 0 && sampling->top_k < vocab ? sampling->top_k : vocab;
    if (sampling->top_p < 1) { /* the smallest set that reaches top_p, at least one */
        double sum = 0;
        long reach = 0;
        while (reach < kept && sum < sampling->top_p * total) sum += work[reach++].probability;
        kept = reach ? reach : 1;
    }
    double mass = 0, at = 0;
    for (long i = 0; i < kept; i++) mass += work[i].probability;
    for (long i = 0; i < kept; i++)
        if ((at += work[i].probability) > uniform * mass) return work[i].token;
    return work[kept - 1].token; /* rounding left the last one */
}
