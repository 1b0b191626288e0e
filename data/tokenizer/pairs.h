/* A table from pairs of token ids to two numbers. */
#ifndef GDN_TOKENIZER_PAIRS_H
#define GDN_TOKENIZER_PAIRS_H

#include <stdint.h>
#include <stdlib.h>

#include "kernels/base/status.h"

struct pair {
    int32_t left, right; /* left −1: free */
    int32_t rank, id;    /* of a merge: its place among all, and what it makes */
};

/* Zeros, then pairs_create; free pairs.pair. */
struct pairs {
    struct pair *pair; /* [mask + 1] */
    size_t mask;
};

static inline int pairs_create(struct pairs *pairs, size_t count) {
    size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    if (!(pairs->pair = malloc(slots * sizeof *pairs->pair)))
        return gdn_fail(GDN_INTERNAL, "no memory for %zu merges", count);
    pairs->mask = slots - 1;
    for (size_t i = 0; i < slots; i++) pairs->pair[i].left = -1;
    return GDN_OK;
}

/* The pair's place: where it is, or where it is to go. */
static inline struct pair *pairs_at(const struct pairs *pairs, int32_t left, int32_t right) {
    uint64_t key = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    size_t at = (key ^ key >> 29) & pairs->mask;
    for (;; at = (at + 1) & pairs->mask) {
        struct pair *pair = &pairs->pair[at];
        if (pair->left < 0 || (pair->left == left && pair->right == right)) return pair;
    }
}

/* NULL where there is none. */
static inline const struct pair *pairs_find(const struct pairs *pairs, int32_t left, int32_t right) {
    const struct pair *pair = pairs_at(pairs, left, right);
    return pair->left < 0 ? NULL : pair;
}

#endif
