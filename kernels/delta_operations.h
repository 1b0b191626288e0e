/* The list of operations of delta connections; trunk_operations.h is the other half.
 *
 * n connections lead into a layer. t [T, D] is the target, s [T, D] one connection's source.
 * r: row factor of `normalize`, γ/max(‖t−s‖, ε) per token, or NULL for 1.
 * counts [T]: a token's factor in the regularisers' terms: 1, of padding 0; NULL: 1 for all. */
/* clang-format off */

/* delta = t − s, mean = (t + s)/2; either may be NULL. */
OPERATION(delta_mean, (long T, long D, const real *t, const real *s, real *delta, real *mean), 0,
          (T, D, IN(t, T * D, -2, 2), IN(s, T * D, -2, 2), EITHER(0, OUT(delta, T * D), NULL),
           EITHER(1, OUT(mean, T * D), NULL)),
          D, ANY_THREADS, .timed = "delta_mean")
/* inv[t] = 1/max(‖t − s‖₂, eps). */
OPERATION(delta_inverse_norm, (long T, long D, const real *t, const real *s, double eps, real *inv), 0,
          (T, D, IN(t, T * D, -2, 2), IN(s, T * D, -2, 2), 1e-3, OUT(inv, T)), D, ANY_THREADS,
          .timed = "delta_inverse_norm")
/* e = (d or 0) + (k[t] or 0)·(t − s); dt += e, ds −= e. d [T, D] or NULL, k [T] or NULL. */
OPERATION(delta_spread,
          (long T, long D, const real *d, const real *k, const real *t, const real *s, real *dt, real *ds), 0,
          (T, D, EITHER(0, IN(d, T * D), NULL), EITHER(1, IN(k, T), NULL), IN(t, T * D, -2, 2),
           IN(s, T * D, -2, 2), INOUT(dt, T * D), INOUT(ds, T * D)),
          D, ANY_THREADS, .timed = "delta_spread")

/* x += bias (by column), h = silu(x). x, h [T, W]. */
OPERATION(bias_silu, (long T, long W, const real *bias, real *x, real *h), 0,
          (T, EITHER(0, n * G, D), IN(bias, EITHER(0, n * G, D)), INOUT(x, T * EITHER(0, n * G, D), -9, 9),
           OUT(h, T * EITHER(0, n * G, D))),
          1, ANY_THREADS, .timed = "bias_silu")
/* h = silu(x), with the bits of bias_silu from the x that it leaves [any threads]. */
OPERATION(silu, (long n, const real *x, real *h), 0, (T * D, IN(x, T * D, -9, 9), OUT(h, T * D)), 1,
          ANY_THREADS)
/* dx = dh · silu'(x); dx may be dh. */
OPERATION(silu_back, (long n, const real *x, const real *dh, real *dx), 0,
          (T * D, IN(x, T * D, -9, 9), IN(dh, T * D), OUT(dx, T * D)), 1, ANY_THREADS)

/* Row factors of `normalize`: r[t] = γ·inv[t]; gamma points to one number. */
OPERATION(row_factors, (long T, const real *gamma, const real *inv, real *r), 0,
          (T, IN(gamma, 1, 2, 3), IN(inv, T, 0.1, 1), OUT(r, T)), 1, ANY_THREADS)
/* From dr [T]: dgamma += Σ dr·inv (in double, in order); k[t] += −dr·γ·inv³, the factor of t − s in its
 * gradient, but where inv is 1/eps, a constant. */
OPERATION(row_factors_back,
          (long T, const real *gamma, const real *inv, double eps, const real *dr, real *k, real *dgamma), 0,
          (T, IN(gamma, 1, 2, 3), IN(inv, T, 0.1, 1), 1, IN(dr, T), INOUT(k, T), INOUT(dgamma, 1)), T,
          ANY_THREADS)

/* Weights of a layer's contributions: weight[t, i] = share·mix[i] (mix NULL: 1), share =
 * alpha[t·lda + i·step], or the number `even` where alpha is NULL. weight [T, n]. */
OPERATION(connection_weights,
          (long T, long n, const real *alpha, long lda, long step, real even, const real *mix, real *weight),
          0,
          (T, n, EITHER(0, IN(alpha, T * (2 * n + 1), 0, 1), NULL), 2 * n + 1, 2, (real)0.3,
           EITHER(1, IN(mix, n), NULL), OUT(weight, T * n)),
          T, ANY_THREADS)
/* From dweight [T, n]: dmix[i] += Σ_t dweight·share (in double, in order) and dalpha[t·lda + i·step] =
 * dweight·mix[i], each where it is not NULL. dalpha may be dweight (lda n, step 1). */
OPERATION(connection_weights_back,
          (long T, long n, const real *alpha, long lda, long step, real even, const real *mix,
           const real *dweight, real *dmix, real *dalpha),
          0,
          (T, n, EITHER(0, IN(alpha, T * (2 * n + 1), 0, 1), NULL), 2 * n + 1, 2, (real)0.3,
           EITHER(1, IN(mix, n), NULL), IN(dweight, T * n), EITHER(1, INOUT(dmix, n), NULL),
           EITHER(0, INOUT(dalpha, T * (2 * n + 1)), NULL)),
          T, ANY_THREADS)

/* Columns of rows: y[t·ldy + j] = x[t·ldx + j], and y += factor·x, j < W. With ldx 0 every row is x. */
OPERATION(copy_columns, (long T, long W, const real *x, long ldx, real *y, long ldy), 0,
          (T, D, IN(x, T * (D + 3)), D + 3, INOUT(y, T * (D + 5)), D + 5), 1, ANY_THREADS)
OPERATION(add_columns, (long T, long W, real factor, const real *x, long ldx, real *y, long ldy), 0,
          (T, D, (real)0.3, IN(x, T * (D + 3)), D + 3, INOUT(y, T * (D + 5)), D + 5), 1, ANY_THREADS)
/* *sum += Σ x in double, in fixed order [any threads]. */
OPERATION(add_up, (long n, const real *x, double *sum), 0, (T * D, IN(x, T * D), SUMS_OF_DOUBLES(sum, 1)),
          T * D, ANY_THREADS)
/* A root mean square of many columns from those of as many equal parts: x ← x², whose sum over the parts
 * becomes √(x/parts). */
OPERATION(squares, (long n, real *x), 0, (T * D, INOUT(x, T * D)), 1, ANY_THREADS)
OPERATION(root_means, (long n, long parts, real *x), 0, (T * D, 3, INOUT(x, T * D, 0.1, 1)), 1, ANY_THREADS)

/* Gates of a layer's bottleneck connections, all at once. W = n·Hd columns, connection i = columns i·Hd….
 * g (in: gate logits, out: σ(logits + bias)); v = weight · r · scale[i] · p ⊙ g.
 * r [n, T] or NULL; scale [n] on the host; weight [T, n] or NULL for 1. p [T, W] raw projections. */
OPERATION(bottleneck_gate,
          (long T, long n, long Hd, const real *bias, const real *p, const real *r, const real *scale,
           const real *weight, real *g, real *v),
          0,
          (T, n, Hd, IN(bias, n * Hd), IN(p, T * n * Hd, -2, 2), EITHER(0, NULL, IN(r, n * T, 0.5, 2)),
           HOST_LIST(scale, n), EITHER(1, IN(weight, T * n), NULL), INOUT(g, T * n * Hd, -9, 9),
           OUT(v, T * n * Hd)),
          Hd, ANY_THREADS, .timed = "bottleneck_gate")
/* y = weight ⊙ x by connection: x, y [T, n·Hd], weight [T, n]; y may be x. */
OPERATION(scale_connections, (long T, long n, long Hd, const real *weight, const real *x, real *y), 0,
          (T, n, Hd, IN(weight, T * n), IN(x, T * n * Hd), OUT(y, T * n * Hd)), Hd, ANY_THREADS)
/* From dv [T, W] (gradient of the weighted v) and extra [T, W] or NULL (gradient of the unweighted v):
 * dv becomes dp; g becomes the gradient of the logits; dweight [T, n] = Σ_j dv_j·v_j of the unweighted v;
 * dr [n, T] (or NULL) is overwritten. entropy: each g also receives
 * entropy·counts·d(binary entropy in bits)/dg (0 outside the clamp [1e-7, 1−1e-7]). */
OPERATION(bottleneck_gate_back,
          (long T, long n, long Hd, const real *p, const real *r, const real *scale, const real *weight,
           const real *extra, double entropy, const real *counts, real *g, real *dv, real *dweight,
           real *dr),
          0,
          (T, n, Hd, IN(p, T * n * Hd, -2, 2), EITHER(0, NULL, IN(r, n * T, 0.5, 2)), HOST_LIST(scale, n),
           EITHER(1, IN(weight, T * n), NULL), EITHER(2, NULL, IN(extra, T * n * Hd)), EITHER(3, 0, 0.3),
           EITHER(2, NULL, IN(counts, T, 0, 1)), INOUT(g, T * n * Hd, 0, 1), INOUT(dv, T * n * Hd), OUT(dweight, T * n),
           EITHER(4, NULL, OUT(dr, n * T))),
          Hd, ANY_THREADS, .timed = "bottleneck_gate_back")

/* g = σ(scale · r · x); x, g [T, W] with row distance ld; r [T] or NULL. */
OPERATION(sigmoid_gate, (long T, long W, double scale, const real *r, const real *x, real *g, long ld), 0,
          (T, D, 0.8, EITHER(0, NULL, IN(r, T, 0.5, 2)), IN(x, T * EITHER(1, D + 3, D + 8), -9, 9),
           INOUT(g, T * EITHER(1, D + 3, D + 8), 0, 1), EITHER(1, D + 3, D + 8)),
          D, ANY_THREADS)
/* dg becomes dx (gradient of x); dr[t] += Σ_j of r's gradient (where r is not NULL). entropy as above. */
OPERATION(sigmoid_gate_back,
          (long T, long W, double scale, const real *r, const real *x, const real *g, long ld, double entropy,
           const real *counts, real *dg, long lddg, real *dr),
          0,
          (T, D, 0.8, EITHER(0, NULL, IN(r, T, 0.5, 2)), IN(x, T * EITHER(1, D + 3, D + 8), -9, 9),
           IN(g, T * EITHER(1, D + 3, D + 8), 0, 1), EITHER(1, D + 3, D + 8), EITHER(2, 0, 0.3),
           EITHER(0, NULL, IN(counts, T, 0, 1)), INOUT(dg, T * EITHER(1, D + 1, D + 4)), EITHER(1, D + 1, D + 4), EITHER(0, NULL, INOUT(dr, T))),
          D, ANY_THREADS)

/* x ← softmax over W columns of (x + bias)·inv_temperature, row distance ld. */
OPERATION(softmax_gate, (long T, long W, const real *bias, double inv_temperature, real *x, long ld), 0,
          (T, EITHER(0, D, G), IN(bias, D), 1.25, INOUT(x, T * EITHER(1, D + 2, D + 8), -9, 9),
           EITHER(1, D + 2, D + 8)),
          D, ANY_THREADS)
/* dp [T, W] becomes the gradient of (x + bias). entropy: p also receives
 * entropy·counts·d(entropy/ln W)/dp, entropy = −Σ p·ln(max(p, 1e-30)). */
OPERATION(softmax_gate_back,
          (long T, long W, double inv_temperature, const real *p, long ld, double entropy, const real *counts,
           real *dp, long lddp),
          0,
          (T, EITHER(0, D, G), 1.25, IN(p, T * EITHER(1, D + 2, D + 8), 0, 2.0 / EITHER(0, D, G)),
           EITHER(1, D + 2, D + 8), EITHER(2, 0, 0.3), EITHER(1, NULL, IN(counts, T, 0, 1)), INOUT(dp, T * EITHER(1, D + 1, D + 4)),
           EITHER(1, D + 1, D + 4)),
          D, ANY_THREADS)

/* e[t] (row distance lde) = √(r²·mean((t−s)²) + eps), square[t] = mean((t−s)²). */
OPERATION(delta_magnitude,
          (long T, long D, const real *t, const real *s, const real *r, double eps, real *e, long lde,
           real *square),
          0,
          (T, D, IN(t, T * D, -2, 2), IN(s, T * D, -2, 2), EITHER(0, NULL, IN(r, T, 0.5, 2)), 1e-3,
           INOUT(e, T * 3), 3, OUT(square, T)),
          D, ANY_THREADS)
/* From de [T], with slope = de/e: k[t] = slope·r²/D, the factor of t − s in its gradient; dr[t] +=
 * slope·r·square (where r is not NULL). */
OPERATION(delta_magnitude_back,
          (long T, long D, const real *r, const real *e, const real *square, const real *de, real *k,
           real *dr),
          0,
          (T, D, EITHER(0, NULL, IN(r, T, 0.5, 2)), IN(e, T, 0.5, 2), IN(square, T, 0, 2), IN(de, T),
           OUT(k, T), EITHER(0, NULL, INOUT(dr, T))),
          1, ANY_THREADS)

/* A contribution c = scale · r · (t−s) ⊙ spread(gate): gate [T, G] (row distance ldg), each value over
 * D/G contiguous columns. out (row distance ldo) += or = weight[t·ldw]·c (weight NULL: 1; ldw 0: one
 * number for all). rms[t] = √(mean(c²) + 1e-12) where rms is not NULL. */
OPERATION(gated_delta,
          (long T, long D, long G, const real *t, const real *s, const real *gate, long ldg, const real *r,
           double scale, const real *weight, long ldw, bool add, real *out, long ldo, real *rms),
          0,
          (T, D, EITHER(0, D, G), IN(t, T * D, -2, 2), IN(s, T * D, -2, 2),
           IN(gate, T * EITHER(1, D, D + 3), 0, 1), EITHER(1, D, D + 3), EITHER(2, NULL, IN(r, T, 0.5, 2)),
           0.8, EITHER(3, IN(weight, T * n), NULL), EITHER(1, n, 0), EITHER(4, true, false),
           INOUT(out, T * EITHER(1, D, D + 5)), EITHER(1, D, D + 5), EITHER(4, NULL, OUT(rms, T))),
          D, ANY_THREADS, .timed = "gated_delta (full)")
/* Backward. dout (row distance ldo) is the gradient of out. dweight[t·n] = Σ_j dout_j·c_j (n: row
 * distance). With dc = weight·dout + (rms ? sparsity/(D·rms)·c : 0), the second nothing where rms[t] is 0: dgate
 * [T, G] (row distance G)
 * overwritten; dd [T, D] = r·scale·dc ⊙ spread(gate) overwritten; dr[t] (where r is not NULL)
 * overwritten. */
OPERATION(gated_delta_back,
          (long T, long D, long G, const real *t, const real *s, const real *gate, long ldg, const real *r,
           double scale, const real *weight, long ldw, const real *dout, long ldo, const real *rms,
           double sparsity, real *dweight, long n, real *dgate, real *dd, real *dr),
          0,
          (T, D, EITHER(0, D, G), IN(t, T * D, -2, 2), IN(s, T * D, -2, 2),
           IN(gate, T * EITHER(1, D, D + 3), 0, 1), EITHER(1, D, D + 3), EITHER(2, NULL, IN(r, T, 0.5, 2)),
           0.8, EITHER(3, IN(weight, T * n), NULL), EITHER(1, n, 0), IN(dout, T * EITHER(1, D, D + 5)),
           EITHER(1, D, D + 5), EITHER(4, NULL, IN(rms, T, 0.5, 1)), 0.3, PART(dweight, T * n, T), n,
           OUT(dgate, T * EITHER(0, D, G)), OUT(dd, T * D), EITHER(2, NULL, OUT(dr, T))),
          D, ANY_THREADS, .timed = "gated_delta_back (full)")

/* *sum += factor · (sum over T·W elements of counts · the binary entropy in bits, g clamped to
 * [1e-7, 1−1e-7]) [any threads]. */
OPERATION(binary_entropy,
          (long T, long W, const real *g, long ld, double factor, const real *counts, double *sum), 0,
          (T, D, IN(g, T * EITHER(0, D + 2, D + 4), 0, 1), EITHER(0, D + 2, D + 4), 1.0 / 3,
           EITHER(1, NULL, IN(counts, T, 0, 1)), SUMS_OF_REALS(sum, 1)),
          sizeof(real) == sizeof(float) ? D : T * D, ANY_THREADS)
/* *sum += the sum over T rows of −counts·Σ p·ln(max(p, 1e-30)) / ln W [any threads]. */
OPERATION(softmax_entropy,
          (long T, long W, const real *p, long ld, const real *counts, double *sum), 0,
          (T, D, IN(p, T * EITHER(0, D + 2, D + 4), 0, 1), EITHER(0, D + 2, D + 4),
           EITHER(1, NULL, IN(counts, T, 0, 1)), SUMS_OF_REALS(sum, 1)),
          sizeof(real) == sizeof(float) ? D : T * D, ANY_THREADS)

/* Norms of bottleneck contributions c = Wo·v without forming them: q = v·(WoᵀWo) is given;
 * rms[t] = √(max(Σ_j q_j·v_j, 0)/D + 1e-12). With sparsity: q[t] ← sparsity/(D·rms)·q, the gradient
 * of v, and kv = sparsity/(D·rms)·v (kv may be NULL; then q may be v: of a contribution that was formed,
 * with W = D). v, q, kv [T, W] with row distance ld. What is
 * written is multiplied with counts. */
OPERATION(gram_rms,
          (long T, long W, long D, const real *v, double sparsity, const real *counts, real *q, real *kv,
           long ld, real *rms),
          0,
          (T, n * Hd, D, IN(v, T * EITHER(2, n * Hd + 2, n * Hd + 4), 0, 1), EITHER(0, 0, 0.3),
           EITHER(1, NULL, IN(counts, T, 0, 1)),
           INOUT(q, T * EITHER(2, n * Hd + 2, n * Hd + 4), -0.2, 1),
           EITHER(1, NULL, INOUT(kv, T * EITHER(2, n * Hd + 2, n * Hd + 4))), EITHER(2, n * Hd + 2, n * Hd + 4),
           OUT(rms, T)),
          n * Hd, ANY_THREADS)

/* Selection by attention: logits[t,i] = (query[t]·key[t,i])·rt[t]·rs[i][t]/√a, weight = softmax over i.
 * query [T, a], key [T, n, a]; rt, rs[i] [T]: inverse rms of target and sources, the list rs on the host.
 * weight [T, n]. */
OPERATION(select,
          (long T, long n, long a, const real *query, const real *key, const real *rt, const real *const *rs,
           real *weight),
          0,
          (T, n, a, IN(query, T * a), IN(key, T * n * a), IN(rt, T, 0.5, 2), HOST_ROWS(rs, n, T),
           OUT(weight, T * n)),
          n * a, ANY_THREADS)
/* dweight [T, n] is consumed (overwritten). query, key become their gradients. ct[t] and cs[n, T]:
 * factors of x for the norms' own gradients, −(∂/∂rstd)·rstd³/D. */
OPERATION(select_back,
          (long T, long n, long a, long D, real *query, real *key, const real *rt, const real *const *rs,
           const real *weight, real *dweight, real *ct, real *cs),
          0,
          (T, n, a, D, INOUT(query, T * a), INOUT(key, T * n * a), IN(rt, T, 0.5, 2), HOST_ROWS(rs, n, T),
           IN(weight, T * n, 0, 2.0 / n), SCRATCH(dweight, T * n), OUT(ct, T), OUT(cs, n * T)),
          n * a, ANY_THREADS)

/* Multi-head mixing: per head h of width D/heads, weight = softmax_i(query_h·key_{i,h}/√(D/heads)),
 * z_h += Σ_i weight·c_{i,h}. query [T, D]; key, c [T, n, D]; weight [T, n, heads]. */
OPERATION(multihead,
          (long T, long n, long D, long heads, const real *query, const real *key, const real *c,
           real *weight, real *z),
          0,
          (T, n, D, heads, IN(query, T * D), IN(key, T * n * D, -0.3, 0.3), IN(c, T * n * D),
           OUT(weight, T * n * heads), INOUT(z, T * D)),
          n * D / heads, ANY_THREADS)
/* From dz [T, D]: query, key become their gradients; dc [T, n, D] is overwritten. */
OPERATION(multihead_back,
          (long T, long n, long D, long heads, real *query, real *key, const real *c, const real *weight,
           const real *dz, real *dc),
          0,
          (T, n, D, heads, INOUT(query, T * D), INOUT(key, T * n * D, -0.3, 0.3), IN(c, T * n * D),
           IN(weight, T * n * heads, 0, 2.0 / n), IN(dz, T * D), OUT(dc, T * n * D)),
          n * D / heads, ANY_THREADS)

/* -------------------------------------------------------------------------------- attention over depth
 *
 * n sources h_i [T, D], a list on the host, of which each token has weights of its own: p_i = softmax over i of
 * query·h_i·rstd_i, rstd_i = 1/√(mean(h_i²) + eps), query [D]. With lambda, which points to one number, a null
 * source of score and value 0 is one more, and x += λ(Σ p_i·h_i − x); where lambda is NULL x = Σ p_i·h_i. */
OPERATION(depth_attention,
          (long T, long n, long D, const real *query, const real *const *h, double eps, const real *lambda,
           real *x),
          0,
          (T, n, D, IN(query, D, -2 / sqrt(D), 2 / sqrt(D)), HOST_ROWS(h, n, T * D), 1e-5,
           EITHER(0, IN(lambda, 1, 0.3, 0.6), NULL), INOUT(x, T * D)),
          D + n, ANY_THREADS, .timed = "depth_attention")
/* From dout: adds to each dh_i, also a list on the host, and overwrites dquery [T, D], each token's terms of the
 * query's gradient. With lambda dlambda [T] likewise, from x as it was before. */
OPERATION(depth_attention_back,
          (long T, long n, long D, const real *query, const real *const *h, double eps, const real *lambda,
           const real *x, const real *dout, real *const *dh, real *dquery, real *dlambda),
          0,
          (T, n, D, IN(query, D, -2 / sqrt(D), 2 / sqrt(D)), HOST_ROWS(h, n, T * D), 1e-5,
           EITHER(0, IN(lambda, 1, 0.3, 0.6), NULL), EITHER(0, IN(x, T * D), NULL), IN(dout, T * D),
           HOST_ROWS_INOUT(dh, n, T * D), OUT(dquery, T * D), EITHER(0, OUT(dlambda, T), NULL)),
          4 * n * D, ANY_THREADS, .timed = "depth_attention_back")

/* ----------------------------------------------------------------------------- several residual streams
 *
 * x [T, n, D] are n streams, 2, 4 or 8. A token has n·(n + 2) numbers c[t·ldc + …], ldc 0 where all have the
 * same: n by which a block reads the streams, n by which it writes to them, and how they are mixed [n (to), n
 * (from)]. Gradients of these are dc [T, n·(n + 2)]. */
#define STREAMS EITHER(0, 4, EITHER(1, 2, 8))
#define NUMBERS (STREAMS * (STREAMS + 2))
/* y = factor·Σ_i x_i, and y_i = factor·x for each i. */
OPERATION(streams_sum, (long T, long n, long D, real factor, const real *x, real *y), 0,
          (T, STREAMS, D, (real)0.25, IN(x, T * STREAMS * D), OUT(y, T * D)), STREAMS, ANY_THREADS)
OPERATION(streams_spread, (long T, long n, long D, real factor, const real *x, real *y), 0,
          (T, STREAMS, D, (real)0.25, IN(x, T * D), OUT(y, T * STREAMS * D)), 1, ANY_THREADS)
/* y = Σ_i read_i·x_i. */
OPERATION(streams_read, (long T, long n, long D, const real *c, long ldc, const real *x, real *y), 0,
          (T, STREAMS, D, IN(c, EITHER(2, T, 1) * NUMBERS), EITHER(2, NUMBERS, 0), IN(x, T * STREAMS * D),
           OUT(y, T * D)),
          STREAMS, ANY_THREADS, .timed = "streams_read")
/* dx_i += read_i·dy; the gradient of reading is overwritten, of dc the first n of each token. */
OPERATION(streams_read_back,
          (long T, long n, long D, const real *c, long ldc, const real *x, const real *dy, real *dx, real *dc),
          0,
          (T, STREAMS, D, IN(c, EITHER(2, T, 1) * NUMBERS), EITHER(2, NUMBERS, 0), IN(x, T * STREAMS * D),
           IN(dy, T * D), INOUT(dx, T * STREAMS * D), PART(dc, T * NUMBERS, T * STREAMS)),
          D, ANY_THREADS, .timed = "streams_read_back")
/* y_o = Σ_i mixing_oi·x_i + write_o·f; where the rows of mixing have sum 1 (`unit`) as x_o + Σ_i mixing_oi·(x_i − x_o)
 * + write_o·f, which changes nothing, to the bit, where streams are alike. */
OPERATION(streams_mix,
          (long T, long n, long D, bool unit, const real *c, long ldc, const real *x, const real *f, real *y), 0,
          (T, STREAMS, D, EITHER(3, false, true), IN(c, EITHER(2, T, 1) * NUMBERS), EITHER(2, NUMBERS, 0),
           IN(x, T * STREAMS * D), IN(f, T * D), OUT(y, T * STREAMS * D)),
          STREAMS, ANY_THREADS, .timed = "streams_mix")
/* g, the gradient of y, becomes that of x; df = Σ_o write_o·g_o; the gradients of writing and mixing are
 * overwritten, of dc all but the first n of each token. */
OPERATION(streams_mix_back,
          (long T, long n, long D, bool unit, const real *c, long ldc, const real *x, const real *f, real *g,
           real *df, real *dc),
          0,
          (T, STREAMS, D, EITHER(3, false, true), IN(c, EITHER(2, T, 1) * NUMBERS), EITHER(2, NUMBERS, 0), IN(x, T * STREAMS * D),
           IN(f, T * D), INOUT(g, T * STREAMS * D), OUT(df, T * D),
           PART(dc, T * NUMBERS, T * STREAMS * (STREAMS + 1))),
          D, ANY_THREADS, .timed = "streams_mix_back")
/* The numbers c [T, n·(n + 2)], from weight [n·(n + 2)], what they differ by from reading stream `first` modulo n
 * alone, writing by 1 and no mixing. With scale [3], of reading, writing and mixing, a token's are weight +
 * scale·tanh(rstd·u), u [T, n, n + 2] from stream i for reading it, writing to it, and mixing it into each, rstd [T,
 * n]; scale, u and rstd are NULL where they are the same for all. `stochastic`: what mixing is so far, with 4 more
 * on the diagonal, becomes exp of that with rows, then 10 times columns and rows scaled to a sum of 1. */
OPERATION(stream_weights,
          (long T, long n, long first, bool stochastic, const real *weight, const real *scale, const real *u,
           const real *rstd, real *c),
          0,
          (T, STREAMS, 3, EITHER(3, false, true), IN(weight, NUMBERS), EITHER(2, IN(scale, 3), NULL),
           EITHER(2, IN(u, T * NUMBERS), NULL), EITHER(2, IN(rstd, T * STREAMS, 0.5, 2), NULL),
           OUT(c, T * NUMBERS)),
          64, ANY_THREADS, .timed = "stream_weights")
/* dc becomes each token's terms of the gradient of weight; with scale, dscale [T, 3] those of scale's, and du and
 * drstd are overwritten. */
OPERATION(stream_weights_back,
          (long T, long n, bool stochastic, const real *weight, const real *scale, const real *u,
           const real *rstd, real *dc, real *du, real *drstd, real *dscale),
          0,
          (T, STREAMS, EITHER(3, false, true), IN(weight, NUMBERS), EITHER(2, IN(scale, 3), NULL),
           EITHER(2, IN(u, T * NUMBERS), NULL), EITHER(2, IN(rstd, T * STREAMS, 0.5, 2), NULL),
           INOUT(dc, T * NUMBERS), EITHER(2, OUT(du, T * NUMBERS), NULL),
           EITHER(2, OUT(drstd, T * STREAMS), NULL), EITHER(2, OUT(dscale, T * 3), NULL)),
          64, ANY_THREADS, .timed = "stream_weights_back")
#undef STREAMS
#undef NUMBERS
