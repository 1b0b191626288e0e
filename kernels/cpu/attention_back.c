/* CPU backend: causal attention, backward. With P the probabilities, recomputed tile by tile from the
 * log-sum-exp: dV = Pᵀ·dO, dS = P ⊙ (dO·Vᵀ − rowsum(dO ⊙ O))/√hd, dQ = dS·K, dK = dSᵀ·Q (Dao et al.,
 * "FlashAttention", 2022, algorithm 4). Scores are held as [query, key], HIGH queries by WIDE keys. */
#include <omp.h>

#include "kernels/cpu/attention_tile.h"

/* Queries of one sequence on its keys, or on some, of which the first is at position `key`: query t sees those up to
 * number `last` + t of them. Rows of q and its gradient are ldq apart, of keys and values and theirs ldkv, of o and its
 * gradient ldo. */
struct sequence {
    long S, N, last, key, H, K, hd, ldq, ldkv, ldo;
    const struct mask *mask;              /* of the first sequence; NULL: nothing is dropped */
    const int32_t *start;                 /* [S] the first position that each query sees, never falling; NULL: 0 */
    long first;                           /* query of the mask's rows */
    const real *q, *kv;                   /* [S, H·hd], [N, 2K·hd] */
    const real *dout, *lse, *inner;       /* inner [H, S]: rowsum(dO ⊙ O) */
    real *dq, *dkv;
};

/* Sequence b, given the first one. */
static inline struct sequence sequence_at(const struct sequence *all, long b) {
    struct sequence s = *all;
    s.q += b * s.S * s.ldq, s.dq += b * s.S * s.ldq;
    s.kv += b * s.N * s.ldkv, s.dkv += b * s.N * s.ldkv;
    s.dout += b * s.S * s.ldo;
    s.first += b * s.S;
    if (s.start) s.start += b * s.S;
    s.lse += b * s.H * s.S, s.inner += b * s.H * s.S;
    return s;
}

enum gradient { OF_QUERIES = 1, OF_KEYS = 2 }; /* of keys: and of values */

/* From P and dO·Vᵀ of a row of a tile, [end] keys from number `column` on: P of what its mask keeps, and dS.
 */
__attribute__((noinline)) static void drop(const struct mask *mask, uint64_t row, uint32_t column, long end,
                                           real inner, real scale, real *p, real *ds) {
    const uint32_t limit = mask_limit(mask->p);
    const real over = (real)(1 / (1 - mask->p));
#pragma omp simd
    for (long j = 0; j < end; j++) {
        real kept = mask_bits(row, column + (uint32_t)j) >= limit ? over : 0;
        ds[j] = p[j] * (ds[j] * kept - inner) * scale;
        p[j] *= kept;
    }
}

/* The number of the first of the keys from `k` on that query q sees, counted from there. */
static inline long unseen(const struct sequence *s, long q, long k) {
    return s->start ? s->start[q] - s->key - k : 0;
}

/* How many of `rows` queries from `q` on see keys before number `end`: none after the first that sees none. */
static inline long seeing(const struct sequence *s, long q, long rows, long end) {
    while (s->start && rows > 0 && unseen(s, q + rows - 1, end) >= 0) rows--;
    return rows;
}

/* Adds what HIGH queries of head h from `q` on and WIDE keys from `k` on give each other. */
static void back_tile(const struct sequence *s, int of, long h, long q, long k, struct transposed *keys,
                      struct transposed *values) {
    long hd = s->hd, ldq = s->ldq, ldkv = s->ldkv, ldo = s->ldo, group = h / (s->H / s->K);
    long rows = seeing(s, q, at_most(HIGH, s->S - q), k + WIDE);
    if (!rows) return;
    long below = s->last + q - k; /* this many of these keys come before the first query's own */
    long columns = at_most(at_most(WIDE, s->N - k), below + rows);
    long end = at_most(WIDE, (columns + TILE_BLOCK_COLUMNS - 1) / TILE_BLOCK_COLUMNS * TILE_BLOCK_COLUMNS);
    long at_q = q * ldq + h * hd, at_k = k * ldkv + group * hd, at_v = at_k + s->K * hd,
         at_o = q * ldo + h * hd;
    long height =
        at_most(WIDE, s->N - k); /* of the transposed tiles, whatever part of them this call needs */
    real p[HIGH * WIDE], ds[HIGH * WIDE], scale = 1 / REAL_SQRT((real)hd);
    product_transposed(rows, hd, s->q + at_q, ldq, height, s->kv + at_k, ldkv, keys, 0, end, p);
    product_transposed(rows, hd, s->dout + at_o, ldo, height, s->kv + at_v, ldkv, values, 0, end, ds);
    for (long i = 0; i < rows; i++) {
        real lse = s->lse[h * s->S + q + i], inner = s->inner[h * s->S + q + i];
        for (long j = below + i < 0 ? 0 : below + i + 1; j < end; j++) p[i * WIDE + j] = -INFINITY; /* later keys */
        for (long j = 0; j < at_most(end, unseen(s, q + i, k)); j++)
            p[i * WIDE + j] = -INFINITY; /* other documents' */
        if (s->mask) {
#pragma omp simd
            for (long j = 0; j < end; j++) p[i * WIDE + j] = vector_exp(p[i * WIDE + j] * scale - lse);
            const struct mask at = mask_at(s->mask, h, s->first + q + i);
            drop(&at, mask_row(at.site, at.head, at.row), (uint32_t)at.column + (uint32_t)k, end, inner,
                 scale, p + i * WIDE, ds + i * WIDE);
            continue;
        }
#pragma omp simd
        for (long j = 0; j < end; j++) {
            p[i * WIDE + j] = vector_exp(p[i * WIDE + j] * scale - lse);
            ds[i * WIDE + j] = p[i * WIDE + j] * (ds[i * WIDE + j] - inner) * scale;
        }
    }
    struct copy copy;
    if (of & OF_QUERIES) {
        const struct operand a = by_rows(rows, columns, ds, WIDE, &copy);
        product_onto(rows, hd, columns, a.at, a.ld, 1, s->kv + at_k, ldkv, true, s->dq + at_q, ldq);
    }
    if (of & OF_KEYS) {
        struct operand a = by_columns(rows, end, ds, WIDE, &copy);
        product_onto(columns, hd, rows, a.at, 1, a.ld, s->q + at_q, ldq, true, s->dkv + at_k, ldkv);
        a = by_columns(rows, end, p, WIDE, &copy);
        product_onto(columns, hd, rows, a.at, 1, a.ld, s->dout + at_o, ldo, true, s->dkv + at_v, ldkv);
    }
}

/* Gradients of a tile of keys and values, from all query heads of its group and all later queries. */
static void back_keys(const struct sequence *all, long b, int of, long group, long k) {
    const struct sequence sequence = sequence_at(all, b), *s = &sequence;
    struct transposed keys, values;
    keys.from = values.from = NULL;
    long heads = s->H / s->K, first = k > s->last ? (k - s->last) / HIGH * HIGH : 0;
    for (long h = group * heads; h < (group + 1) * heads; h++)
        for (long q = first; q < s->S && seeing(s, q, 1, k + WIDE); q += HIGH)
            back_tile(s, of, h, q, k, &keys, &values);
}

/* Gradients of a tile of queries. */
static void back_queries(const struct sequence *all, long b, long h, long q) {
    const struct sequence sequence = sequence_at(all, b), *s = &sequence;
    struct transposed keys, values;
    keys.from = values.from = NULL;
    const long first = unseen(s, q, 0);
    for (long k = first > 0 ? first / WIDE * WIDE : 0; k < at_most(s->last + q + HIGH, s->N); k += WIDE)
        back_tile(s, OF_QUERIES, h, q, k, &keys, &values);
}

/* The first `zeroed` numbers of each query's row of gradients become 0; rowsum(dO ⊙ O). */
static void prepare(long B, const struct sequence *all, long zeroed, const real *o, real *inner) {
    const long S = all->S, H = all->H, hd = all->hd, ldo = all->ldo;
#pragma omp for schedule(static)
    for (long t = 0; t < B * S; t++) {
#pragma omp simd
        for (long c = 0; c < zeroed; c++) all->dq[t * all->ldq + c] = 0;
        for (long h = 0; h < H; h++) {
            const real *x = o + t * ldo + h * hd, *y = all->dout + t * ldo + h * hd;
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (long c = 0; c < hd; c++) sum += x[c] * y[c];
            inner[(t / S * H + h) * S + t % S] = sum;
        }
    }
}

/* A thread that owns a whole key head adds its tiles' share to dQ at once: 5 products a tile. Where that
 * leaves too many threads idle, tiles of keys and tiles of queries are tasks of their own instead, which
 * recomputes scores: 7 products. Both add in the same order, so the result does not depend on the number of
 * threads. */
static bool by_full_heads(long heads, long threads) {
    long rounds = (heads + threads - 1) / threads;
    return 7 * heads >= 5 * rounds * threads;
}

static void back(long B, const struct sequence *all, long zeroed, const real *o, real *inner) {
    const long S = all->S, N = all->N, H = all->H, K = all->K;
#pragma omp parallel if (B * S * H * all->hd > PARALLEL_WORK)
    {
        prepare(B, all, zeroed, o, inner);
        if (by_full_heads(B * K, omp_get_num_threads())) {
#pragma omp for collapse(2) schedule(dynamic)
            for (long b = 0; b < B; b++)
                for (long group = 0; group < K; group++)
                    for (long k = 0; k < N; k += WIDE) back_keys(all, b, OF_QUERIES | OF_KEYS, group, k);
        } else {
#pragma omp for collapse(3) schedule(dynamic) nowait
            for (long k = 0; k < N; k += WIDE)
                for (long b = 0; b < B; b++)
                    for (long group = 0; group < K; group++) back_keys(all, b, OF_KEYS, group, k);
#pragma omp for collapse(3) schedule(dynamic)
            for (long q = 0; q < S; q += HIGH)
                for (long b = 0; b < B; b++)
                    for (long h = 0; h < H; h++) back_queries(all, b, h, q);
        }
    }
}

static void attention_back(long B, long S, long H, long K, long hd, const struct mask *mask,
                           const int32_t *start, const real *qkv, const real *o, const real *lse,
                           const real *dout, real *dqkv, real *work) {
    const long ld = (H + 2 * K) * hd;
    const struct sequence all = {.S = S,
                                 .N = S,
                                 .H = H,
                                 .K = K,
                                 .hd = hd,
                                 .ldq = ld,
                                 .ldkv = ld,
                                 .ldo = H * hd,
                                 .mask = mask,
                                 .start = start,
                                 .q = qkv,
                                 .kv = qkv + H * hd,
                                 .dout = dout,
                                 .lse = lse,
                                 .inner = work,
                                 .dq = dqkv,
                                 .dkv = dqkv + H * hd};
    back(B, &all, ld, o, work);
}

static void attention_piece_back(long S, long N, long position, long key, long H, long K, long hd,
                                 const struct mask *mask, const int32_t *start, const real *q, long ldq,
                                 const real *kv, long ldkv, const real *o, const real *lse, const real *dout,
                                 real *dq, real *dkv, real *work) {
    const struct mask own = mask ? mask_part(mask, position, key) : (struct mask){0};
    const struct sequence piece = {.S = S,
                                   .N = N,
                                   .last = position - key,
                                   .key = key,
                                   .H = H,
                                   .K = K,
                                   .hd = hd,
                                   .ldq = ldq,
                                   .ldkv = ldkv,
                                   .ldo = H * hd,
                                   .mask = mask ? &own : NULL,
                                   .start = start,
                                   .q = q,
                                   .kv = kv,
                                   .dout = dout,
                                   .lse = lse,
                                   .inner = work,
                                   .dq = dq,
                                   .dkv = dkv};
    back(1, &piece, 0, o, work);
}

void ISA_NAME(cpu_attention_back)(struct ops *ops) {
    ops->attention_back = attention_back;
    ops->attention_piece_back = attention_piece_back;
}
