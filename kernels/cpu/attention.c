/* CPU backend: causal attention, forward. A task is a tile of WIDE queries of one head; it walks over the
 * keys in tiles of HIGH with the online softmax of Dao et al., "FlashAttention" (2022), algorithm 1. Scores
 * are held as [key, query], so that maxima and sums over keys run along vector registers. */
#include <float.h>

#include "kernels/cpu/attention_tile.h"

/* The running state of a tile of queries. */
struct softmax {
    real largest[WIDE]; /* score so far */
    real sum[WIDE];     /* of exp(score − largest) */
};

/* Scores [keys, WIDE] of the queries `first` … last − 1 become weights relative to the new largest score;
 * shrink: the factor of what was summed before. */
static inline void weigh(long keys, long first, long last, real scale, real *scores, struct softmax *state,
                         real *shrink) {
    real largest[WIDE];
#pragma omp simd
    for (long j = 0; j < WIDE; j++) largest[j] = state->largest[j];
    for (long i = 0; i < keys; i++)
#pragma omp simd
        for (long j = first; j < last; j++) {
            real score = scores[i * WIDE + j] * scale;
            scores[i * WIDE + j] = score;
            largest[j] = score > largest[j] ? score : largest[j];
        }
#pragma omp simd
    for (long j = first; j < last; j++) {
        shrink[j] = vector_exp(state->largest[j] - largest[j]);
        state->largest[j] = largest[j];
        state->sum[j] *= shrink[j];
    }
    for (long i = 0; i < keys; i++)
#pragma omp simd
        for (long j = first; j < last; j++) {
            real weight = vector_exp(scores[i * WIDE + j] - largest[j]);
            scores[i * WIDE + j] = weight;
            state->sum[j] += weight;
        }
}

/* Weights [keys, WIDE] that the mask drops become 0 (not inlined: passes without a mask lose no registers to
 * it); `row`: the queries' keys, `column`: the first key. */
__attribute__((noinline)) static void drop(long keys, long first, long last, uint32_t limit,
                                           const uint64_t *row, uint32_t column, real *scores) {
    for (long i = 0; i < keys; i++)
#pragma omp simd
        for (long j = first; j < last; j++)
            scores[i * WIDE + j] =
                mask_bits(row[j], column + (uint32_t)i) >= limit ? scores[i * WIDE + j] : 0;
}

/* From where on a tile's queries see keys, and how many of the queries see some before position `end`: starts never
 * fall, so those from there on see none. */
static long seeing(const int32_t *from, long queries, long end) {
    long last = queries;
    while (last > 0 && from[last - 1] >= end) last--;
    return at_most(WIDE, (last + TILE_BLOCK_COLUMNS - 1) / TILE_BLOCK_COLUMNS * TILE_BLOCK_COLUMNS);
}

/* Scores of keys from position `at` on that queries `first` … last − 1 do not see. */
static void hide(const int32_t *from, long queries, long at, long keys, long first, long last, real *scores) {
    for (long j = first; j < last; j++)
        for (long i = 0; i < at_most(keys, from[at_most(j, queries - 1)] - at); i++)
            scores[i * WIDE + j] = -INFINITY;
}

/* A tile of up to WIDE queries of one head on N keys and values, of which the first is at position `key`. The first
 * query sees the keys up to number `last` of them and each next one a key more; rows of q are ldq apart, of k and v
 * ldkv, of o ldo; the mask's first row is the tile's and head's. `from` [queries]: the first position that each sees;
 * NULL: 0. */
struct attending {
    long last, queries, N, key, hd;
    const struct mask *mask;
    const int32_t *from;
    const real *q, *k, *v;
    long ldq, ldkv;
    real *o, *lse;
    long ldo;
};

static void attend(const struct attending *a) {
    const long queries = a->queries, hd = a->hd, end = at_most(a->N, a->last + queries);
    const struct mask *mask = a->mask;
    const int32_t *from = a->from;
    const long begin = from && from[0] > a->key ? from[0] - a->key : 0;
    const bool onto =
        from || a->last < 0; /* not every query sees the first keys: products are added to zeros */
    struct transposed kept;
    struct copy copy;
    struct softmax state;
    real scores[HIGH * WIDE], shrink[WIDE], scale = 1 / REAL_SQRT((real)hd);
    kept.from = NULL;
    for (long j = 0; j < WIDE; j++)
        state.largest[j] = -REAL_MAX, state.sum[j] = 0; /* finite: less itself it is 0 */
    uint64_t row[WIDE];
    for (long j = 0; mask && j < WIDE; j++)
        row[j] = mask_row(mask->site, mask->head, mask->row + (uint64_t)j);
    for (long j = 0; onto && j < queries; j++)
        for (long c = 0; c < hd; c++) a->o[j * a->ldo + c] = 0;
    for (long at = begin; at < end; at += HIGH) {
        long keys = at_most(HIGH, end - at),
             above = at - a->last; /* this many queries see none of these keys */
        long first = above > 0 ? above / TILE_BLOCK_COLUMNS * TILE_BLOCK_COLUMNS : 0,
             last = from ? seeing(from, queries, a->key + at + keys) : WIDE;
        product_transposed(keys, hd, a->k + at * a->ldkv, a->ldkv, queries, a->q, a->ldq, &kept, first, last,
                           scores);
        for (long i = 0; i < keys; i++)
            for (long j = first; j < at_most(above + i, last); j++) scores[i * WIDE + j] = -INFINITY;
        if (from) hide(from, queries, a->key + at, keys, first, last, scores);
        weigh(keys, first, last, scale, scores, &state, shrink);
        if (mask)
            drop(keys, first, last, mask_limit(mask->p), row, (uint32_t)mask->column + (uint32_t)at, scores);
        for (long j = first; at > begin && j < at_most(last, queries); j++)
#pragma omp simd
            for (long c = 0; c < hd; c++) a->o[j * a->ldo + c] *= shrink[j];
        if (first >= at_most(last, queries)) continue;
        const struct operand weights = by_columns(keys, last - first, scores + first, WIDE, &copy);
        product_onto(at_most(last, queries) - first, hd, keys, weights.at, 1, weights.ld, a->v + at * a->ldkv,
                     a->ldkv, onto || at > begin, a->o + first * a->ldo, a->ldo);
    }
    for (long j = 0; j < queries; j++) {
        real inverse = state.sum[j] > 0 ? 1 / state.sum[j] : 0; /* 0: it sees none of these keys */
        if (mask) inverse *= (real)(1 / (1 - mask->p));
        a->lse[j] = state.largest[j] + (real)log((double)state.sum[j]);
#pragma omp simd
        for (long c = 0; c < hd; c++) a->o[j * a->ldo + c] *= inverse;
    }
}

/* Queries [B·S] with row distance ldq, of each sequence from `position` on, on keys and values [B·N] with ldkv, from
 * position `key` on. */
struct attention {
    long B, S, N, position, key, H, K, hd;
    const struct mask *mask; /* of the first sequence; NULL: nothing is dropped */
    const int32_t *start;    /* [B·S]; NULL: 0 */
    const real *q, *kv;      /* of H heads; 2K of them, values behind keys */
    long ldq, ldkv;
    real *o, *lse; /* [B·S, H·hd], [B, H, S] */
};

static void attend_all(const struct attention *a) {
    const long S = a->S, H = a->H, K = a->K, hd = a->hd, tiles = (S + WIDE - 1) / WIDE;
    /* The last tiles of a sequence are the longest: start with them. */
#pragma omp parallel for collapse(3) schedule(dynamic) if (a->B * S * H * hd > PARALLEL_WORK)
    for (long tile = tiles - 1; tile >= 0; tile--)
        for (long b = 0; b < a->B; b++)
            for (long h = 0; h < H; h++) {
                const long at = tile * WIDE, t = b * S + at;
                const struct mask own = a->mask ? mask_at(a->mask, h, t) : (struct mask){0};
                const real *k = a->kv + b * a->N * a->ldkv + h / (H / K) * hd;
                attend(&(struct attending){.last = a->position - a->key + at,
                                           .queries = at_most(WIDE, S - at),
                                           .N = a->N,
                                           .key = a->key,
                                           .hd = hd,
                                           .mask = a->mask ? &own : NULL,
                                           .from = a->start ? a->start + t : NULL,
                                           .q = a->q + t * a->ldq + h * hd,
                                           .k = k,
                                           .v = k + K * hd,
                                           .ldq = a->ldq,
                                           .ldkv = a->ldkv,
                                           .o = a->o + t * H * hd + h * hd,
                                           .lse = a->lse + (b * H + h) * S + at,
                                           .ldo = H * hd});
            }
}

static void attention(long B, long S, long H, long K, long hd, const struct mask *mask, const int32_t *start,
                      const real *qkv, real *o, real *lse) {
    const long ld = (H + 2 * K) * hd;
    attend_all(&(struct attention){B, S, S, 0, 0, H, K, hd, mask, start, qkv, qkv + H * hd, ld, ld, o, lse});
}

static void attention_piece(long S, long N, long position, long key, long H, long K, long hd,
                            const struct mask *mask, const int32_t *start, const real *q, long ldq,
                            const real *kv, long ldkv, real *o, real *lse) {
    const struct mask own = mask ? mask_part(mask, position, key) : (struct mask){0};
    attend_all(&(struct attention){1, S, N, position, key, H, K, hd, mask ? &own : NULL, start, q, kv, ldq, ldkv,
                                   o, lse});
}

/* From the log-sum-exps, in double, since they may be large: the part that each has of both. */
static void attention_join(long S, long H, long hd, const real *other, const real *other_lse, real *o,
                           real *lse) {
#pragma omp parallel for collapse(2) schedule(static) if (S * H * hd > PARALLEL_WORK)
    for (long t = 0; t < S; t++)
        for (long h = 0; h < H; h++) {
            const double a = lse[h * S + t], b = other_lse[h * S + t], apart = exp(-fabs(a - b));
            const real least = (real)(apart / (1 + apart)), most = (real)(1 / (1 + apart));
            const real own = a > b ? most : least, others = a > b ? least : most;
            const real *y = other + (t * H + h) * hd;
            real *x = o + (t * H + h) * hd;
#pragma omp simd
            for (long c = 0; c < hd; c++) x[c] = own * x[c] + others * y[c];
            lse[h * S + t] = (real)((a > b ? a : b) + log1p(apart));
        }
}

/* One query on `length` cached keys and values, in blocks with the same online softmax. */
static void decode(long length, long hd, const real *q, const real *keys, const real *values, long ld,
                   real *o) {
    enum { BLOCK = 256 };
    real score[BLOCK], largest = -INFINITY, sum = 0, scale = 1 / REAL_SQRT((real)hd);
    for (long c = 0; c < hd; c++) o[c] = 0;
    for (long at = 0; at < length; at += BLOCK) {
        long count = at_most(BLOCK, length - at);
        real before = largest;
        for (long i = 0; i < count; i++) {
            const real *key = keys + (at + i) * ld;
            real dot = 0;
#pragma omp simd reduction(+ : dot)
            for (long c = 0; c < hd; c++) dot += q[c] * key[c];
            score[i] = dot * scale;
            largest = score[i] > largest ? score[i] : largest;
        }
        real shrink = vector_exp(before - largest), added = 0;
#pragma omp simd reduction(+ : added)
        for (long i = 0; i < count; i++) {
            score[i] = vector_exp(score[i] - largest);
            added += score[i];
        }
        sum = sum * shrink + added;
#pragma omp simd
        for (long c = 0; c < hd; c++) o[c] *= shrink;
        for (long i = 0; i < count; i++)
#pragma omp simd
            for (long c = 0; c < hd; c++) o[c] += score[i] * values[(at + i) * ld + c];
    }
#pragma omp simd
    for (long c = 0; c < hd; c++) o[c] /= sum;
}

static void attention_decode(long length, long H, long K, long hd, const real *q, const real *keys,
                             const real *values, real *o) {
#pragma omp parallel for schedule(static) if (length * H * hd > PARALLEL_WORK)
    for (long h = 0; h < H; h++) {
        long at = h / (H / K) * hd;
        decode(length, hd, q + h * hd, keys + at, values + at, K * hd, o + h * hd);
    }
}

void ISA_NAME(cpu_attention)(struct ops *ops) {
    ops->attention = attention;
    ops->attention_piece = attention_piece;
    ops->attention_join = attention_join;
    ops->attention_decode = attention_decode;
}
