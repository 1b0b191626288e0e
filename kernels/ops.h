/* The operations table: everything the model computes is a call through one of these functions.
 *
 * `reference/` fills every operation with plain, obvious C; `cpu/` starts from a copy of that table and
 * replaces operations; `cuda/` fills every operation of a table of its own. Every operation of every backend
 * is tested against the reference, and the reference against finite differences.
 *
 * Conventions. Matrices are row-major; `ld` is the distance between rows in elements. T counts tokens, D is
 * the hidden size. Weights are [out, in] unless said otherwise. "adds" means `+=`: gradients accumulate, so
 * the caller zeroes them; everything else is overwritten. Buffers do not overlap unless said.
 *
 * Buffers lie in the memory of the table's device (kernels/base/device.h), sums in double included; short
 * lists marked "on the host" do not, and have been read when the call returns. On a device other than the
 * host a call only queues its work: calls take effect in the order they were made, and who wants to see a
 * result copies it with the device's download. No operation can fail (a device's faults show in its status),
 * allocate on the heap in a way that grows, or keep state between calls. Sums over tokens have one fixed
 * order for a given thread count. Operations marked [any threads] give the same bits for every thread
 * count. */
#ifndef GDN_OPS_H
#define GDN_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/base/device.h"
#include "kernels/base/real.h"

enum {
    OPS_CONNECTIONS = 64,  /* the most connections into a layer: of lists on the host */
    OPS_WIDEST_HEAD = 256, /* of attention on a device other than the host */
};

/* How numbers enter matrix products and attention. Sums, norms, softmax, weights and all buffers are `real`
 * in each of them. */
enum precision {
    PRECISION_FP32, /* as they are: no tf32 */
    PRECISION_BF16,
    PRECISION_FP16, /* gradients need a loss scale */
    PRECISION_FP8,  /* the trunk's products: e4m3, gradients e5m2, with delayed scales; bf16 elsewhere */
    PRECISIONS,
};

extern const char *const precision_word[PRECISIONS]; /* "fp32", … */

struct ops {
    const char *name; /* "reference", "cpu", "cuda", "emulated" */
    enum precision precision;
    const struct device *device; /* where all buffers lie */

    /* ---------------------------------------------------------------- matrices and vectors */

    /* C [m, n] = alpha · op(A) · op(B) + beta · C. op is 'N' (as stored) or 'T' (transposed); A is stored
     * [m, k] for 'N' and [k, m] for 'T', B [k, n] or [n, k]. With beta 0, C is never read. */
    void (*gemm)(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda, const real *b,
                 long ldb, real beta, real *c, long ldc);

    /* The same as a product with a trunk's weight, or the gradient of one: forward x·Wᵀ ('N', 'T'), gradient
     * of x ('N', 'N'), gradient of W ('T', 'N'). `weight_id` numbers the weight, below the device's
     * weight_ids: a backend that scales what it multiplies keeps scales by weight id, the only state between
     * calls. */
    void (*linear)(int weight_id, char ta, char tb, long m, long n, long k, real alpha, const real *a,
                   long lda, const real *b, long ldb, real beta, real *c, long ldc);

    void (*zero)(long n, real *x);                                 /* x = 0 */
    void (*copy)(long n, const real *x, real *y);                  /* y = x */
    void (*add)(long n, const real *x, real *y);                   /* y += x */
    void (*add_to)(long n, const real *x, const real *y, real *z); /* z = x + y; z may be x or y */
    void (*add_column_sums)(long T, long W, const real *x, long ldx, real *sum);    /* sum [W] += Σ_t x[t] */
    void (*add_scaled_rows)(long T, long D, const real *c, const real *x, real *y); /* y[t] += c[t]·x[t] */
    /* For each i in [first, first + count): square[i / grain] += x[i]², in double; x and square begin at
     * element and block 0. Blocks are added in fixed order [any threads]. */
    void (*add_squares)(long first, long count, long grain, const real *x, double *square);
    /* *sum += the checksum of x [rows, width] (row distance ld) modulo 2⁶⁴: of its elements' bits and places,
     * index + r·stride + c for element (r, c), as data/hdf5/sum.h defines it. Whole numbers, so parts
     * may be added in any order, by any backend [any threads]. */
    void (*add_hash)(const real *x, long rows, long width, long ld, uint64_t index, uint64_t stride,
                     uint64_t *sum);
    /* sum [count] = pieces [parts, count] added in order of the parts [any threads]: what sums over ranks are
     * made of. sum may be the first piece. */
    void (*add_parts)(long count, int parts, const real *pieces, real *sum);

    /* One AdamW update of n elements (Loshchilov & Hutter 2019; model.md 6) [any threads]:
     * g' = g·gscale; m, v moving averages with beta1, beta2; w ← w·(1 − lr·decay) − lr·(m/c1)/(√(v/c2) +
     * eps), c1 = 1 − beta1^n, c2 = 1 − beta2^n for the tensor's own step count n. */
    void (*adamw)(long n, real *w, const real *g, real *m, real *v, double gscale, double lr, double beta1,
                  double beta2, double eps, double decay, double c1, double c2);

    /* ---------------------------------------------------------------- trunk */

    /* rows [B, S + 1] of tokens: input [B·S] has the first S of each, target [B·S] the last S. */
    void (*cut_tokens)(long B, long S, const int32_t *rows, int32_t *input, int32_t *target);

    /* x[t] = E[token[t] − first], where E has the vocabulary's rows [first, first + V); of other tokens 0. */
    void (*embed)(long T, long D, const int32_t *token, long first, long V, const real *E, real *x);
    /* Adds dx[t] to that row of dE, in token order [any threads]; other tokens are left out. */
    void (*embed_back)(long T, long D, const int32_t *token, long first, long V, const real *dx, real *dE);

    /* y = x · rstd · w, rstd[t] = 1/√(mean(x[t]²) + eps) (Zhang & Sennrich 2019). */
    void (*rms_norm)(long T, long D, const real *x, const real *w, double eps, real *y, real *rstd);
    /* The same of sum = x + r, which is stored too. */
    void (*add_rms_norm)(long T, long D, const real *x, const real *r, const real *w, double eps, real *sum,
                         real *y, real *rstd);
    /* rstd alone. */
    void (*row_rstd)(long T, long D, const real *x, double eps, real *rstd);
    /* Adds to dx and dw. */
    void (*rms_norm_back)(long T, long D, const real *x, const real *w, const real *rstd, const real *dy,
                          real *dx, real *dw);

    /* Rotary embedding (Su et al. 2021), half-split, in place on `heads` heads of width hd: row t is x +
     * t·ldx, its position `position + t % S`. direction +1 rotates, −1 is the inverse, which is also the
     * backward pass. cosine, sine: [≥ position+S, hd/2]. */
    void (*rope)(long T, long S, long position, long heads, long hd, const real *cosine, const real *sine,
                 int direction, real *x, long ldx);

    /* Causal attention of B sequences of S positions, H query heads on K key/value heads (H a multiple of K),
     * never storing S×S (online softmax). qkv [B·S, (H+2K)·hd]: queries, keys, values, heads in order,
     * rotated. o [B·S, H·hd]; lse [B, H, S]: log-sum-exp of each row's scaled scores. Scores are scaled by
     * 1/√hd. */
    void (*attention)(long B, long S, long H, long K, long hd, const real *qkv, real *o, real *lse);
    /* dqkv is overwritten; `work` [B, H, S] is scratch. Recomputes the probabilities from lse. */
    void (*attention_back)(long B, long S, long H, long K, long hd, const real *qkv, const real *o,
                           const real *lse, const real *dout, real *dqkv, real *work);
    /* One new token: q [H·hd] on `length` cached keys and values [length, K·hd] each; o [H·hd]. */
    void (*attention_decode)(long length, long H, long K, long hd, const real *q, const real *keys,
                             const real *values, real *o);

    /* h = silu(g) ⊙ u; gu [T, 2F] holds g then u in each row, h [T, F]. */
    void (*swiglu)(long T, long F, const real *gu, real *h);
    /* dgu [T, 2F] from dh [T, F]; also recomputes h into `h` where it is not NULL (for Wdown's gradient). */
    void (*swiglu_back)(long T, long F, const real *gu, const real *dh, real *dgu, real *h);

    /* loss[t] = −log softmax(logits[t])[target[t]] over V columns. Where `scale` is not 0, logits become the
     * gradient scale·(softmax − onehot). */
    void (*cross_entropy)(long T, long V, real *logits, long ld, const int32_t *target, double scale,
                          real *loss);
    /* The same in three steps where these V columns are only the part [first, first + V) of the vocabulary.
     * Over the parts the maximum is taken of `largest` [T], then the sum of `sums` [2, T]. */
    void (*row_largest)(long T, long V, const real *logits, long ld,
                        real *largest); /* largest[t] = max logits[t] */
    /* logits become exp(logits − largest); sums[0, t]: their sum; sums[1, t]: the target's logit − largest, 0
     * where another part has it. */
    void (*part_exp)(long T, long V, real *logits, long ld, const int32_t *target, long first,
                     const real *largest, real *sums);
    /* loss[t] = log sums[0, t] − sums[1, t]; where `scale` is not 0, the exponentials become the gradient. */
    void (*part_cross_entropy)(long T, long V, real *logits, long ld, const int32_t *target, long first,
                               const real *sums, double scale, real *loss);

    /* ---------------------------------------------------------------- delta connections
     * n connections lead into a layer. t [T, D] is the target, s [T, D] one connection's source.
     * r: row factor of `normalize`, γ/max(‖t−s‖, ε) per token, or NULL for 1. */

    /* delta = t − s, mean = (t + s)/2; either may be NULL. */
    void (*delta_mean)(long T, long D, const real *t, const real *s, real *delta, real *mean);
    /* inv[t] = 1/max(‖t − s‖₂, eps). */
    void (*delta_inverse_norm)(long T, long D, const real *t, const real *s, double eps, real *inv);
    /* e = (d or 0) + (k[t] or 0)·(t − s); dt += e, ds −= e. d [T, D] or NULL, k [T] or NULL. */
    void (*delta_spread)(long T, long D, const real *d, const real *k, const real *t, const real *s, real *dt,
                         real *ds);

    /* x += bias (by column), h = silu(x). x, h [T, W]. */
    void (*bias_silu)(long T, long W, const real *bias, real *x, real *h);
    /* h = silu(x), with the bits of bias_silu from the x that it leaves [any threads]. */
    void (*silu)(long n, const real *x, real *h);
    /* dx = dh · silu'(x); dx may be dh. */
    void (*silu_back)(long n, const real *x, const real *dh, real *dx);

    /* Row factors of `normalize`: r[t] = γ·inv[t]; gamma points to one number. */
    void (*row_factors)(long T, const real *gamma, const real *inv, real *r);
    /* From dr [T]: dgamma += Σ dr·inv (in double, in order); k[t] += −dr·γ·inv³, the factor of t − s in its
     * gradient, but where inv is 1/eps, a constant. */
    void (*row_factors_back)(long T, const real *gamma, const real *inv, double eps, const real *dr, real *k,
                             real *dgamma);

    /* Weights of a layer's contributions: weight[t, i] = share·mix[i] (mix NULL: 1), share =
     * alpha[t·lda + i·step], or the number `even` where alpha is NULL. weight [T, n]. */
    void (*connection_weights)(long T, long n, const real *alpha, long lda, long step, real even,
                               const real *mix, real *weight);
    /* From dweight [T, n]: dmix[i] += Σ_t dweight·share (in double, in order) and dalpha[t·lda + i·step] =
     * dweight·mix[i], each where it is not NULL. dalpha may be dweight (lda n, step 1). */
    void (*connection_weights_back)(long T, long n, const real *alpha, long lda, long step, real even,
                                    const real *mix, const real *dweight, real *dmix, real *dalpha);

    /* Columns of rows: y[t·ldy + j] = x[t·ldx + j], and y += factor·x, j < W. */
    void (*copy_columns)(long T, long W, const real *x, long ldx, real *y, long ldy);
    void (*add_columns)(long T, long W, real factor, const real *x, long ldx, real *y, long ldy);
    /* *sum += Σ x in double, in fixed order [any threads]. */
    void (*add_up)(long n, const real *x, double *sum);
    /* A root mean square of many columns from those of as many equal parts: x ← x², whose sum over the parts
     * becomes √(x/parts). */
    void (*squares)(long n, real *x);
    void (*root_means)(long n, long parts, real *x);

    /* Gates of a layer's bottleneck connections, all at once. W = n·Hd columns, connection i = columns i·Hd….
     * g (in: gate logits, out: σ(logits + bias)); v = weight · r · scale[i] · p ⊙ g.
     * r [n, T] or NULL; scale [n] on the host; weight [T, n] or NULL for 1. p [T, W] raw projections. */
    void (*bottleneck_gate)(long T, long n, long Hd, const real *bias, const real *p, const real *r,
                            const real *scale, const real *weight, real *g, real *v);
    /* y = weight ⊙ x by connection: x, y [T, n·Hd], weight [T, n]. */
    void (*scale_connections)(long T, long n, long Hd, const real *weight, const real *x, real *y);
    /* From dv [T, W] (gradient of the weighted v) and extra [T, W] or NULL (gradient of the unweighted v):
     * dv becomes dp; g becomes the gradient of the logits; dweight [T, n] = Σ_j dv_j·v_j of the unweighted v;
     * dr [n, T] (or NULL) is overwritten. entropy: each g also receives entropy·d(binary entropy in
     * bits)/dg (0 outside the clamp [1e-7, 1−1e-7]). */
    void (*bottleneck_gate_back)(long T, long n, long Hd, const real *p, const real *r, const real *scale,
                                 const real *weight, const real *extra, double entropy, real *g, real *dv,
                                 real *dweight, real *dr);

    /* g = σ(scale · r · x); x, g [T, W] with row distance ld; r [T] or NULL. */
    void (*sigmoid_gate)(long T, long W, double scale, const real *r, const real *x, real *g, long ld);
    /* dg becomes dx (gradient of x); dr[t] += Σ_j of r's gradient (where r is not NULL). entropy as above. */
    void (*sigmoid_gate_back)(long T, long W, double scale, const real *r, const real *x, const real *g,
                              long ld, double entropy, real *dg, long lddg, real *dr);

    /* x ← softmax over W columns of (x + bias)·inv_temperature, row distance ld. */
    void (*softmax_gate)(long T, long W, const real *bias, double inv_temperature, real *x, long ld);
    /* dp [T, W] becomes the gradient of (x + bias). entropy: p also receives entropy·d(entropy/ln W)/dp,
     * entropy = −Σ p·ln(max(p, 1e-30)). */
    void (*softmax_gate_back)(long T, long W, double inv_temperature, const real *p, long ld, double entropy,
                              real *dp, long lddp);

    /* e[t] (row distance lde) = √(r²·mean((t−s)²) + eps), square[t] = mean((t−s)²). */
    void (*delta_magnitude)(long T, long D, const real *t, const real *s, const real *r, double eps, real *e,
                            long lde, real *square);
    /* From de [T], with slope = de/e: k[t] = slope·r²/D, the factor of t − s in its gradient; dr[t] +=
     * slope·r·square (where r is not NULL). */
    void (*delta_magnitude_back)(long T, long D, const real *r, const real *e, const real *square,
                                 const real *de, real *k, real *dr);

    /* A contribution c = scale · r · (t−s) ⊙ spread(gate): gate [T, G] (row distance ldg), each value over
     * D/G contiguous columns. out (row distance ldo) += or = weight[t·ldw]·c (weight NULL: 1; ldw 0: one
     * number for all). rms[t] = √(mean(c²) + 1e-12) where rms is not NULL. */
    void (*gated_delta)(long T, long D, long G, const real *t, const real *s, const real *gate, long ldg,
                        const real *r, double scale, const real *weight, long ldw, bool add, real *out,
                        long ldo, real *rms);
    /* Backward. dout (row distance ldo) is the gradient of out. dweight[t·n] = Σ_j dout_j·c_j (n: row
     * distance). With dc = weight·dout + (rms ? sparsity/(D·rms)·c : 0): dgate [T, G] (row distance G)
     * overwritten; dd [T, D] = r·scale·dc ⊙ spread(gate) overwritten; dr[t] (where r is not NULL)
     * overwritten. */
    void (*gated_delta_back)(long T, long D, long G, const real *t, const real *s, const real *gate, long ldg,
                             const real *r, double scale, const real *weight, long ldw, const real *dout,
                             long ldo, const real *rms, double sparsity, real *dweight, long n, real *dgate,
                             real *dd, real *dr);

    /* *sum += factor · (sum over T·W elements of the binary entropy in bits, g clamped to [1e-7, 1−1e-7])
     * [any threads]. */
    void (*binary_entropy)(long T, long W, const real *g, long ld, double factor, double *sum);
    /* *sum += the sum over T rows of −Σ p·ln(max(p, 1e-30)) / ln W [any threads]. */
    void (*softmax_entropy)(long T, long W, const real *p, long ld, double *sum);

    /* Norms of bottleneck contributions c = Wo·v without forming them: q = v·(WoᵀWo) is given;
     * rms[t] = √(max(Σ_j q_j·v_j, 0)/D + 1e-12). With sparsity: q[t] ← sparsity/(D·rms)·q, the gradient
     * of v, and kv = sparsity/(D·rms)·v (kv may be NULL; then q may be v: of a contribution that was formed,
     * with W = D). v, q, kv [T, W] with row distance ld. */
    void (*gram_rms)(long T, long W, long D, const real *v, double sparsity, real *q, real *kv, long ld,
                     real *rms);

    /* Selection by attention: logits[t,i] = (query[t]·key[t,i])·rt[t]·rs[i][t]/√a, weight = softmax over i.
     * query [T, a], key [T, n, a]; rt, rs[i] [T]: inverse rms of target and sources, the list rs on the host.
     * weight [T, n]. */
    void (*select)(long T, long n, long a, const real *query, const real *key, const real *rt,
                   const real *const *rs, real *weight);
    /* dweight [T, n] is consumed (overwritten). query, key become their gradients. ct[t] and cs[n, T]:
     * factors of x for the norms' own gradients, −(∂/∂rstd)·rstd³/D. */
    void (*select_back)(long T, long n, long a, long D, real *query, real *key, const real *rt,
                        const real *const *rs, const real *weight, real *dweight, real *ct, real *cs);

    /* Multi-head mixing: per head h of width D/heads, weight = softmax_i(query_h·key_{i,h}/√(D/heads)),
     * z_h += Σ_i weight·c_{i,h}. query [T, D]; key, c [T, n, D]; weight [T, n, heads]. */
    void (*multihead)(long T, long n, long D, long heads, const real *query, const real *key, const real *c,
                      real *weight, real *z);
    /* From dz [T, D]: query, key become their gradients; dc [T, n, D] is overwritten. */
    void (*multihead_back)(long T, long n, long D, long heads, real *query, real *key, const real *c,
                           const real *weight, const real *dz, real *dc);
};

#endif
