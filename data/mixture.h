/* Which source a sample of a mixture comes from, and which of that source's samples it is: both computed from
 * the sample's number. Private to this room. */
#ifndef GDN_MIXTURE_H
#define GDN_MIXTURE_H

#include <stdint.h>

struct mixture {
    int num_sources;
    uint64_t *tails; /* [num_sources + 1]: whole-number weights of source k and all after it, together */
};

/* `weights` [num_sources] are > 0 and finite; they are kept to a part in 2^32 of their sum. Fails without
 * memory. */
int mixture_create(const double *weights, int num_sources, struct mixture *out);
void mixture_free(struct mixture *mixture);

/* Sample i ≥ 0 comes from the source returned, and is that source's sample number *own, counted from 0
 * without gaps. Among the first N samples, for every N, source k has its share to within num_sources. */
int mixture_place(const struct mixture *mixture, long i, long *own);

/* How many of the first `count` samples are source k's. */
long mixture_share(const struct mixture *mixture, int k, long count);

/* How many samples of the mixture it takes until source k has had `samples`, to within num_sources; LONG_MAX
 * where that is more. */
long mixture_span(const struct mixture *mixture, int k, long samples);

#endif
