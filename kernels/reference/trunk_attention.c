/* Reference: causal attention, one query row after the other. Probabilities are recomputed from the row's
 * log-sum-exp instead of being stored, so memory stays linear in S. What products read is taken as it is, or
 * rounded to bf16: queries, keys, values, and weights that are relative to the row's largest; in the backward
 * pass probabilities, dS and the output's gradient. */
#include <math.h>

#include "kernels/base/bf16.h"
#include "kernels/reference/trunk_parts.h"

/* As a product reads x. */
static inline real form(bool bf16, real x) {
    return bf16 ? bf16_round(x) : x;
}

static double dot(bool bf16, long n, const real *x, const real *y) {
    double sum = 0;
    for (long j = 0; j < n; j++) sum += (double)form(bf16, x[j]) * form(bf16, y[j]);
    return sum;
}

/* What a row's probability of a key is multiplied by: 0 or 1/(1 − p); without a mask 1. */
static double kept(const struct mask *mask, uint64_t key, long column) {
    if (!mask) return 1;
    bool keeps = mask_bits(key, (uint32_t)(mask->column + (uint64_t)column)) >= mask_limit(mask->p);
    return keeps ? 1 / (1 - mask->p) : 0;
}

static uint64_t row_key(const struct mask *mask, long h, long row) {
    return mask ? mask_row(mask->site, mask->head + (uint64_t)h, mask->row + (uint64_t)row) : 0;
}

/* Of a sequence queries from position `at` on, and N keys from position `key` on; start: the first position
 * that each query sees, NULL: 0. */
struct part {
    bool bf16;
    long at, N, key;
    const int32_t *start;
};

/* The first of its N keys that query t sees, and how many it sees or lie before those. */
static long first_key(const struct part *part, long t) {
    const long first = (part->start ? part->start[t] : 0) - part->key;
    return first > 0 ? first : 0;
}
static long last_key(const struct part *part, long t) {
    const long last = part->at + t + 1 - part->key;
    return last < part->N ? last : part->N;
}

/* One query on keys and values `from` … length − 1 with row distance ld; o [hd]. Returns the scores'
 * log-sum-exp, −∞ where there are none. */
static double attend(bool bf16, long from, long length, long hd, const struct mask *mask, uint64_t key,
                     const real *q, const real *keys, const real *values, long ld, real *o) {
    double scale = 1 / sqrt((double)hd), largest = -INFINITY, sum = 0;
    for (long i = from; i < length; i++) largest = fmax(largest, scale * dot(bf16, hd, q, keys + i * ld));
    for (long i = from; i < length; i++) sum += exp(scale * dot(bf16, hd, q, keys + i * ld) - largest);
    double lse = largest + log(sum);
    for (long j = 0; j < hd; j++) o[j] = 0;
    for (long i = from; i < length; i++) {
        double p = exp(scale * dot(bf16, hd, q, keys + i * ld) - (bf16 ? largest : lse));
        if (bf16) p = (double)form(bf16, (real)p) / sum;
        p *= kept(mask, key, i);
        for (long j = 0; j < hd; j++) o[j] += (real)(p * form(bf16, values[i * ld + j]));
    }
    return lse;
}

/* S queries of a part; the mask's rows are counted from `row`. */
static void attend_all(long S, const struct part *part, long H, long K, long hd, const struct mask *mask,
                       long row, const real *q, long ldq, const real *kv, long ldkv, real *o, real *lse) {
    for (long h = 0; h < H; h++) {
        const real *k = kv + h / (H / K) * hd, *v = k + K * hd;
        for (long t = 0; t < S; t++)
            lse[h * S + t] = (real)attend(part->bf16, first_key(part, t), last_key(part, t), hd, mask,
                                          row_key(mask, h, row + t), q + t * ldq + h * hd, k, v, ldkv,
                                          o + t * H * hd + h * hd);
    }
}

static void whole(bool bf16, long B, long S, long H, long K, long hd, const struct mask *mask,
                  const int32_t *start, const real *qkv, real *o, real *lse) {
    long ld = (H + 2 * K) * hd;
    for (long b = 0; b < B; b++) {
        const real *q = qkv + b * S * ld;
        const struct part all = {bf16, 0, S, 0, start ? start + b * S : NULL};
        attend_all(S, &all, H, K, hd, mask, b * S, q, ld, q + H * hd, ld, o + b * S * H * hd,
                   lse + b * H * S);
    }
}

/* With P the probabilities and dP = dO·Vᵀ: dS = P ⊙ (dP − rowsum(dO ⊙ O)), dQ = dS·K/√hd, dK = dSᵀ·Q/√hd,
 * dV = Pᵀ·dO; with a mask M, dP = M ⊙ (dO·Vᵀ) and dV = (M ⊙ P)ᵀ·dO (Dao et al., "FlashAttention", 2022,
 * appendix B). */
static void back_all(long S, const struct part *part, long H, long K, long hd, const struct mask *mask,
                     long row, const real *q, long ldq, const real *kv, long ldkv, const real *o,
                     const real *lse, const real *dout, real *dq, real *dkv) {
    const bool bf16 = part->bf16;
    double scale = 1 / sqrt((double)hd);
    for (long h = 0; h < H; h++) {
        long at_k = h / (H / K) * hd, at_v = at_k + K * hd;
        for (long t = 0; t < S; t++) {
            long at_q = t * ldq + h * hd, at_o = t * H * hd + h * hd;
            double inner = dot(false, hd, dout + at_o, o + at_o);
            uint64_t key = row_key(mask, h, row + t);
            for (long i = first_key(part, t); i < last_key(part, t); i++) {
                const real *k = kv + at_k + i * ldkv, *v = kv + at_v + i * ldkv;
                double p = exp(scale * dot(bf16, hd, q + at_q, k) - lse[h * S + t]);
                double m = kept(mask, key, i), ds = p * (m * dot(bf16, hd, dout + at_o, v) - inner) * scale;
                double weight = m * p;
                if (bf16) ds = form(bf16, (real)ds), weight = form(bf16, (real)weight);
                for (long j = 0; j < hd; j++) {
                    dq[at_q + j] += (real)(ds * form(bf16, k[j]));
                    dkv[at_k + i * ldkv + j] += (real)(ds * form(bf16, q[at_q + j]));
                    dkv[at_v + i * ldkv + j] += (real)(weight * form(bf16, dout[at_o + j]));
                }
            }
        }
    }
}

static void whole_back(bool bf16, long B, long S, long H, long K, long hd, const struct mask *mask,
                       const int32_t *start, const real *qkv, const real *o, const real *lse,
                       const real *dout, real *dqkv) {
    long ld = (H + 2 * K) * hd;
    for (long i = 0; i < B * S * ld; i++) dqkv[i] = 0;
    for (long b = 0; b < B; b++) {
        const real *q = qkv + b * S * ld;
        real *dq = dqkv + b * S * ld;
        const struct part all = {bf16, 0, S, 0, start ? start + b * S : NULL};
        back_all(S, &all, H, K, hd, mask, b * S, q, ld, q + H * hd, ld, o + b * S * H * hd, lse + b * H * S,
                 dout + b * S * H * hd, dq, dq + H * hd);
    }
}

static void piece(bool bf16, long S, long N, long position, long key, long H, long K, long hd,
                  const struct mask *mask, const int32_t *start, const real *q, long ldq, const real *kv,
                  long ldkv, real *o, real *lse) {
    const struct mask own = mask ? mask_part(mask, position, key) : (struct mask){0};
    attend_all(S, &(struct part){bf16, position, N, key, start}, H, K, hd, mask ? &own : NULL, 0, q, ldq, kv,
               ldkv, o, lse);
}

static void piece_back(bool bf16, long S, long N, long position, long key, long H, long K, long hd,
                       const struct mask *mask, const int32_t *start, const real *q, long ldq, const real *kv,
                       long ldkv, const real *o, const real *lse, const real *dout, real *dq, real *dkv) {
    const struct mask own = mask ? mask_part(mask, position, key) : (struct mask){0};
    back_all(S, &(struct part){bf16, position, N, key, start}, H, K, hd, mask ? &own : NULL, 0, q, ldq, kv,
             ldkv, o, lse, dout, dq, dkv);
}

static void attention(long B, long S, long H, long K, long hd, const struct mask *mask, const int32_t *start,
                      const real *qkv, real *o, real *lse) {
    whole(false, B, S, H, K, hd, mask, start, qkv, o, lse);
}
static void attention_back(long B, long S, long H, long K, long hd, const struct mask *mask,
                           const int32_t *start, const real *qkv, const real *o, const real *lse,
                           const real *dout, real *dqkv, real *work) {
    (void)work;
    whole_back(false, B, S, H, K, hd, mask, start, qkv, o, lse, dout, dqkv);
}
static void attention_piece(long S, long N, long position, long key, long H, long K, long hd,
                            const struct mask *mask, const int32_t *start, const real *q, long ldq,
                            const real *kv, long ldkv, real *o, real *lse) {
    piece(false, S, N, position, key, H, K, hd, mask, start, q, ldq, kv, ldkv, o, lse);
}
static void attention_piece_back(long S, long N, long position, long key, long H, long K, long hd,
                                 const struct mask *mask, const int32_t *start, const real *q, long ldq,
                                 const real *kv, long ldkv, const real *o, const real *lse, const real *dout,
                                 real *dq, real *dkv, real *work) {
    (void)work;
    piece_back(false, S, N, position, key, H, K, hd, mask, start, q, ldq, kv, ldkv, o, lse, dout, dq, dkv);
}

static void narrow(long B, long S, long H, long K, long hd, const struct mask *mask, const int32_t *start,
                   const real *qkv, real *o, real *lse) {
    whole(bf16_pays_attention(S, S, hd), B, S, H, K, hd, mask, start, qkv, o, lse);
}
static void narrow_back(long B, long S, long H, long K, long hd, const struct mask *mask,
                        const int32_t *start, const real *qkv, const real *o, const real *lse,
                        const real *dout, real *dqkv, real *work) {
    (void)work;
    whole_back(bf16_pays_attention(S, S, hd), B, S, H, K, hd, mask, start, qkv, o, lse, dout, dqkv);
}
static void narrow_piece(long S, long N, long position, long key, long H, long K, long hd,
                         const struct mask *mask, const int32_t *start, const real *q, long ldq,
                         const real *kv, long ldkv, real *o, real *lse) {
    piece(bf16_pays_attention(S, N, hd), S, N, position, key, H, K, hd, mask, start, q, ldq, kv, ldkv, o,
          lse);
}
static void narrow_piece_back(long S, long N, long position, long key, long H, long K, long hd,
                              const struct mask *mask, const int32_t *start, const real *q, long ldq,
                              const real *kv, long ldkv, const real *o, const real *lse, const real *dout,
                              real *dq, real *dkv, real *work) {
    (void)work;
    piece_back(bf16_pays_attention(S, N, hd), S, N, position, key, H, K, hd, mask, start, q, ldq, kv, ldkv, o,
               lse, dout, dq, dkv);
}

/* With l = log(exp(lse) + exp(other_lse)): o = exp(lse − l)·o + exp(other_lse − l)·other. */
static void attention_join(long S, long H, long hd, const real *other, const real *other_lse, real *o,
                           real *lse) {
    for (long h = 0; h < H; h++)
        for (long t = 0; t < S; t++) {
            double a = lse[h * S + t], b = other_lse[h * S + t], largest = fmax(a, b);
            double both = largest + log(exp(a - largest) + exp(b - largest));
            for (long j = 0; j < hd; j++) {
                long at = (t * H + h) * hd + j;
                o[at] = (real)(exp(a - both) * o[at] + exp(b - both) * other[at]);
            }
            lse[h * S + t] = (real)both;
        }
}

static void attention_decode(long length, long H, long K, long hd, const real *q, const real *keys,
                             const real *values, real *o) {
    for (long h = 0; h < H; h++) {
        long at = h / (H / K) * hd;
        attend(false, 0, length, hd, NULL, 0, q + h * hd, keys + at, values + at, K * hd, o + h * hd);
    }
}

void reference_trunk_attention(struct ops *ops) {
    ops->attention = attention;
    ops->attention_back = attention_back;
    ops->attention_piece = attention_piece;
    ops->attention_piece_back = attention_piece_back;
    ops->attention_join = attention_join;
    ops->attention_decode = attention_decode;
}

void reference_bf16_attention(struct ops *ops) {
    ops->attention = narrow;
    ops->attention_back = narrow_back;
    ops->attention_piece = narrow_piece;
    ops->attention_piece_back = narrow_piece_back;
}
