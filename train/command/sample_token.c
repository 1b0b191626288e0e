#include "train/command/sample_token.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/base/random.h"

static int likelier(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->probability != y->probability) return x->probability > y->probability ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

/* The first of the likeliest. */
static int32_t likeliest(const real *logits, long vocab) {
    int32_t best = 0;
    for (long i = 1; i < vocab; i++)
        if (logits[i] > logits[best]) best = (int32_t)i;
    return best;
}

long sample_candidates(const real *logits, long vocab, const struct sampling *sampling,
                       struct candidate *work, double *mass) {
    const int32_t best = likeliest(logits, vocab);
    const double scale = 1 / sampling->temperature;
    if (isinf(scale)) { /* of 0, and of temperatures that have no inverse */
        work[0] = (struct candidate){1, best};
        *mass = 1;
        return 1;
    }
    double max = (double)logits[best], total = 0;
    for (long i = 0; i < vocab; i++) {
        work[i] = (struct candidate){exp(((double)logits[i] - max) * scale), (int32_t)i};
        total += work[i].probability;
    }
    qsort(work, (size_t)vocab, sizeof *work, likelier);
    long kept = sampling->top_k > 0 && sampling->top_k < vocab ? sampling->top_k : vocab;
    if (sampling->top_p < 1) { /* the smallest set that reaches top_p, at least one */
        double sum = 0;
        long reach = 0;
        while (reach < kept && sum < sampling->top_p * total) sum += work[reach++].probability;
        kept = reach ? reach : 1;
    }
    *mass = 0;
    for (long i = 0; i < kept; i++) *mass += work[i].probability;
    return kept;
}

int32_t sample_pick(const struct candidate *work, long kept, double mass, double uniform) {
    double at = 0;
    long last = 0; /* rounding may leave none: then it is the last that there is */
    for (long i = 0; i < kept; i++) {
        if ((at += work[i].probability) > uniform * mass) return work[i].token;
        if (work[i].probability > 0) last = i;
    }
    return work[last].token;
}

int32_t sample_token(const real *logits, long vocab, const struct sampling *sampling, double uniform,
                     struct candidate *work) {
    double mass;
    const long kept = sample_candidates(logits, vocab, sampling, work, &mass);
    return sample_pick(work, kept, mass, uniform);
}

double choosing_uniform(const struct choosing *by, const char *use, long place) {
    return random_uniform((uint64_t)by->seed, random_name(use), (uint64_t)place);
}

int32_t choosing_token(const struct choosing *by, const real *logits, long vocab, long place) {
    return sample_token(logits, vocab, by->sampling, choosing_uniform(by, "generate", place), by->work);
}
