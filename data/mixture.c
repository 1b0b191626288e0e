#include "data/mixture.h"

#include <limits.h>
#include <stdlib.h>

#include "kernels/base/status.h"

int mixture_create(const double *weights, int num_sources, struct mixture *out) {
    *out = (struct mixture){.num_sources = num_sources,
                            .tails = calloc((size_t)num_sources + 1, sizeof(uint64_t))};
    if (!out->tails) return gdn_fail(GDN_INTERNAL, "no memory for a mixture of %d sources", num_sources);
    double sum = 0;
    for (int k = 0; k < num_sources; k++) sum += weights[k];
    for (int k = num_sources - 1; k >= 0; k--) {
        uint64_t whole = (uint64_t)(weights[k] / sum * 0x1p32 + 0.5);
        out->tails[k] = out->tails[k + 1] + (whole ? whole : 1);
    }
    return GDN_OK;
}

void mixture_free(struct mixture *mixture) {
    free(mixture->tails);
}

/* Of the first n samples that go to source k or a later one, how many go to k. It grows by 0 or 1 with n, and
 * so does what is left for the later ones, which is why counts and single samples agree. */
static long share(const struct mixture *mixture, int k, long n) {
    uint64_t own = mixture->tails[k] - mixture->tails[k + 1];
    return (long)((unsigned __int128)n * own / mixture->tails[k]);
}

int mixture_place(const struct mixture *mixture, long i, long *own) {
    long n = i; /* samples before this one that got as far as source k */
    for (int k = 0;; k++) {
        *own = share(mixture, k, n);
        if (share(mixture, k, n + 1) > *own) return k; /* the last source takes whatever gets that far */
        n -= *own;
    }
}

long mixture_share(const struct mixture *mixture, int k, long count) {
    for (int j = 0; j < k; j++) count -= share(mixture, j, count);
    return share(mixture, k, count);
}

long mixture_span(const struct mixture *mixture, int k, long samples) {
    uint64_t own = mixture->tails[k] - mixture->tails[k + 1];
    unsigned __int128 span = ((unsigned __int128)samples * mixture->tails[0] + own - 1) / own;
    return span > LONG_MAX ? LONG_MAX : (long)span;
}
