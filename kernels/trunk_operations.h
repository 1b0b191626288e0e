/* The list of operations of the trunk: each entry with what it does, its parameters, and how it is counted,
 * called alone, compared and timed. ops.h includes it for the table's members, and says how a call is to be
 * read; operations.h says what the fields after the parameters are. */
/* clang-format off */

/* ------------------------------------------------------------------------------------- matrix products */

/* C [m, n] = alpha · op(A) · op(B) + beta · C. op is 'N' (as stored) or 'T' (transposed); A is stored
 * [m, k] for 'N' and [k, m] for 'T', B [k, n] or [n, k]. With beta 0, C is never read. */
OPERATION(gemm,
          (char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda, const real *b,
           long ldb, real beta, real *c, long ldc),
          2.0 * m * n * k,
          (EITHER(0, 'N', 'T'), EITHER(1, 'N', 'T'), T, F, D, (real)0.5,
           IN(a, EITHER(0, T * (D + 3), D * (T + 3))), EITHER(0, D, T) + 3,
           IN(b, EITHER(1, D * (F + 1), F * (D + 1))), EITHER(1, F, D) + 1, EITHER(2, 1, -2),
           INOUT(c, T * (F + 2)), F + 2),
          D, SAME_THREADS)

/* The same of few rows, each with the bits that it has alone, whatever others there are: in generation tokens that are
 * looked at together have the logits that they have one by one (ops_by_rows). In bf16 B of A·Bᵀ is rounded where k is not
 * below BF16_LEAST, and A never. The host's alone [any threads]. */
OPERATION(gemm_rows,
          (char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda, const real *b,
           long ldb, real beta, real *c, long ldc),
          2.0 * m * n * k,
          (EITHER(0, 'N', 'T'), EITHER(1, 'T', 'N'), T, F, D, EITHER(2, 1, (real)0.5),
           IN(a, EITHER(0, T * (D + 3), D * (T + 3))), EITHER(0, D, T) + 3,
           IN(b, EITHER(1, F * (D + 1), D * (F + 1))), EITHER(1, D, F) + 1, EITHER(3, 0, 1),
           INOUT(c, T * (F + 2)), F + 2),
          D, ANY_THREADS, .host = true)

/* The same as gemm as a product with a trunk's weight, or the gradient of one: forward x·Wᵀ ('N', 'T'), gradient
 * of x ('N', 'N'), gradient of W ('T', 'N'). `weight_id` numbers the weight, below the device's
 * weight_ids: a backend that scales what it multiplies keeps scales by weight id, the only state between
 * calls beside copies of weights that are held. */
OPERATION(linear,
          (int weight_id, char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
           const real *b, long ldb, real beta, real *c, long ldc),
          2.0 * m * n * k,
          (3, EITHER(0, 'N', 'T'), EITHER(0, EITHER(1, 'T', 'N'), 'N'), T, F, D, 1,
           IN(a, EITHER(0, T * (D + 3), D * (T + 3))), EITHER(0, D, T) + 3, IN(b, (D + 1) * (F + 1)),
           EITHER(0, EITHER(1, D, F), F) + 1, EITHER(2, 0, 1), INOUT(c, T * (F + 2)), F + 2),
          D, SAME_THREADS)

/* --------------------------------------------------------------------------------------- a layer's own */

/* Causal attention of B sequences of S positions, H query heads on K key/value heads (H a multiple of K),
 * never storing S×S (online softmax). qkv [B·S, (H+2K)·hd]: queries, keys, values, heads in order,
 * rotated. o [B·S, H·hd]; lse [B, H, S]: log-sum-exp of each row's scaled scores. Scores are scaled by
 * 1/√hd. Counted are scores and values of the causal half: S(S + 1)/2 pairs a head, each costs 2·hd in
 * either product. With a mask (on the host, or NULL) o is made of the probabilities that it keeps, over 1 − p:
 * its rows are queries b·S + t, its columns keys, a head of it for each of H. `start` [B·S], as cut_tokens gives
 * it, or NULL: a query sees keys from its start on alone. Blocks that this empties are left out, and still
 * counted. */
OPERATION(attention,
          (long B, long S, long H, long K, long hd, const struct mask *mask, const int32_t *start, const real *qkv,
           real *o, real *lse),
          2.0 * 2 * (B * H * hd) * S * (S + 1) / 2,
          (B, S, H, K, hd, NULL, EITHER(0, NULL, TOKENS(start, T, 1)), IN(qkv, T * (H + 2 * K) * hd, -2, 2), OUT(o, T * H * hd), OUT(lse, B * H * S)),
          hd + S, ANY_THREADS, .timed = "attention")
/* dqkv is overwritten; `work` [B, H, S] is scratch. Recomputes the probabilities from lse. Counted is each
 * product twice, once for either factor; that the probabilities are computed anew is not, as in
 * model_flops_per_token, but a fifth of the work when it is timed. */
OPERATION(attention_back,
          (long B, long S, long H, long K, long hd, const struct mask *mask, const int32_t *start, const real *qkv,
           const real *o, const real *lse, const real *dout, real *dqkv, real *work),
          2 * (2.0 * 2 * (B * H * hd) * S * (S + 1) / 2),
          (B, S, H, K, hd, NULL, EITHER(0, NULL, TOKENS(start, T, 1)), IN(qkv, T * (H + 2 * K) * hd, -2, 2), IN(o, T * H * hd), IN(lse, B * H * S, 4, 6),
           IN(dout, T * H * hd), OUT(dqkv, T * (H + 2 * K) * hd), SCRATCH(work, B * H * S)),
          2 * hd + S * H / K, ANY_THREADS, .timed = "attention_back", .again = 1.0 / 4)
/* Of one sequence S queries, at `position` and after it, on N of its keys, at `key` and after it: a query sees those
 * up to its own position, and position + S ≥ key + N. q [S, H·hd] with row distance ldq; kv [N, 2K·hd] with ldkv: keys,
 * values. o [S, H·hd]; lse [H, S]. Rows and columns of the mask (or NULL) are positions. `start` [S]: the first position
 * that a query sees, never falling; NULL: 0. Of a query that sees none of these keys o is 0 and lse −∞. */
OPERATION(attention_piece,
          (long S, long N, long position, long key, long H, long K, long hd, const struct mask *mask,
           const int32_t *start, const real *q, long ldq, const real *kv, long ldkv, real *o, real *lse),
          2.0 * 2 * (H * hd) * attention_pairs(S, N, position - key),
          (S, EITHER(1, 2 * S, S), 2 * S, S, H, K, hd, NULL, EITHER(0, NULL, TOKENS(start, S, 1)), IN(q, S * (H * hd + 3), -2, 2),
           H * hd + 3, IN(kv, 2 * S * (2 * K * hd + 5), -2, 2), 2 * K * hd + 5, OUT(o, S * H * hd), OUT(lse, H * S)),
          hd + 2 * S, ANY_THREADS)
/* Adds to dq [S, H·hd] with row distance ldq, and to dkv [N, 2K·hd] with ldkv. o and lse are those of all keys that a
 * query sees, of which these may be a part. `work` [H, S] is scratch. Counted as attention_back. */
OPERATION(attention_piece_back,
          (long S, long N, long position, long key, long H, long K, long hd, const struct mask *mask,
           const int32_t *start, const real *q, long ldq, const real *kv, long ldkv, const real *o, const real *lse,
           const real *dout, real *dq, real *dkv, real *work),
          2 * (2.0 * 2 * (H * hd) * attention_pairs(S, N, position - key)),
          (S, EITHER(1, 2 * S, S), 2 * S, S, H, K, hd, NULL, EITHER(0, NULL, TOKENS(start, S, 1)), IN(q, S * (H * hd + 3), -2, 2),
           H * hd + 3, IN(kv, 2 * S * (2 * K * hd + 5), -2, 2), 2 * K * hd + 5, IN(o, S * H * hd), IN(lse, H * S, 4, 6),
           IN(dout, S * H * hd), INOUT(dq, S * (H * hd + 3)), INOUT(dkv, 2 * S * (2 * K * hd + 5)), SCRATCH(work, H * S)),
          2 * hd + 2 * S * H / K, ANY_THREADS)
/* Attention of S queries on some keys, of which each sees one at least, joined with that of the same on others: o
 * [S, H·hd] and lse [H, S] become those on all of them, `other` [S, H·hd] and other_lse [H, S] being the second's. */
OPERATION(attention_join,
          (long S, long H, long hd, const real *other, const real *other_lse, real *o, real *lse), 0,
          (S, H, hd, IN(other, S * H * hd), IN(other_lse, H * S, -4, 4), INOUT(o, S * H * hd), INOUT(lse, H * S)), 2,
          ANY_THREADS)
/* One new token: q [H·hd] on `length` cached keys and values [length, K·hd] each; o [H·hd]. */
OPERATION(attention_decode,
          (long length, long H, long K, long hd, const real *q, const real *keys, const real *values,
           real *o),
          2.0 * 2 * length * (H * hd),
          (S, H, K, hd, IN(q, H * hd, -2, 2), IN(keys, S * K * hd, -2, 2), IN(values, S * K * hd, -2, 2),
           OUT(o, H * hd)),
          hd + S, ANY_THREADS)

/* y = x · rstd · w, rstd[t] = 1/√(mean(x[t]²) + eps) (Zhang & Sennrich 2019). */
OPERATION(rms_norm, (long T, long D, const real *x, const real *w, double eps, real *y, real *rstd), 0,
          (T, D, IN(x, T * D), IN(w, D, 0.5, 1.5), 1e-5, OUT(y, T * D), OUT(rstd, T)), D, ANY_THREADS,
          .timed = "rms_norm")
/* The same of sum = x + r, which is stored too. */
OPERATION(add_rms_norm,
          (long T, long D, const real *x, const real *r, const real *w, double eps, real *sum, real *y,
           real *rstd),
          0,
          (T, D, IN(x, T * D), IN(r, T * D), IN(w, D, 0.5, 1.5), 1e-5, OUT(sum, T * D), OUT(y, T * D),
           OUT(rstd, T)),
          D, ANY_THREADS, .timed = "add_rms_norm")
/* rstd alone. */
OPERATION(row_rstd, (long T, long D, const real *x, double eps, real *rstd), 0,
          (T, D, IN(x, T * D), 1e-5, OUT(rstd, T)), D, ANY_THREADS)
/* From drstd [T]: k[t] = −drstd·rstd³/D, the factor of x in its gradient. */
OPERATION(row_rstd_back, (long T, long D, const real *rstd, const real *drstd, real *k), 0,
          (T, D, IN(rstd, T, 1, 2), IN(drstd, T), OUT(k, T)), 1, ANY_THREADS)
/* y += Σ_i c_i ⊙ norm(s[i] − p[i]), norm(x) = x·rstd, of n sources s[i] [T, D], at most OPS_CONNECTIONS, and as
 * many p[i] that are taken off them, lists on the host; p NULL: nothing is. c_i[t] = w[i] + a[t·lda + i·G + g] in
 * the g-th of G equal groups of columns; a NULL: w[i] alone. w [n, D]; rstd [n, T], without p with the bits of
 * row_rstd. y is none of the sources. */
OPERATION(add_norms,
          (long T, long D, long G, long n, const real *const *s, const real *const *p, const real *w,
           const real *a, long lda, double eps, real *y, real *rstd), 0,
          (T, D, EITHER(2, G, D), n, HOST_ROWS(s, n, T * D), EITHER(1, NULL, HOST_ROWS(p, n, T * D)),
           IN(w, n * D), EITHER(0, NULL, IN(a, T * (n * D + 1))), n * EITHER(2, G, D) + 1, 1e-5, INOUT(y, T * D),
           OUT(rstd, n * T)),
          D, ANY_THREADS, .timed = "add_norms")
/* Backward of one source, its a, as far as there is one, at a[t·lda + g] too: from dy adds to ds, what it adds
 * there off dp, and to dw [D]; with a da[t·lda + g] is overwritten. ds NULL: da alone. */
OPERATION(add_norm_back,
          (long T, long D, long G, const real *s, const real *p, const real *w, const real *a, long lda,
           const real *rstd, const real *dy, real *ds, real *dp, real *dw, real *da), 0,
          (T, D, EITHER(3, G, D), IN(s, T * D), EITHER(1, NULL, IN(p, T * D)), IN(w, D),
           EITHER(0, NULL, IN(a, T * (D + 1))), D + 1, IN(rstd, T, 1, 2), IN(dy, T * D),
           EITHER(2, INOUT(ds, T * D), NULL), EITHER(1, NULL, EITHER(2, INOUT(dp, T * D), NULL)),
           EITHER(2, INOUT(dw, D), NULL), EITHER(0, NULL, INOUT(da, T * (D + 1)))),
          D + T, SAME_THREADS, .timed = "add_norm_back")
/* Adds to dx and dw. */
OPERATION(rms_norm_back,
          (long T, long D, const real *x, const real *w, const real *rstd, const real *dy, real *dx,
           real *dw),
          0,
          (T, D, IN(x, T * D), IN(w, D, 0.5, 1.5), IN(rstd, T, 1, 2), IN(dy, T * D), INOUT(dx, T * D),
           INOUT(dw, D)),
          D + T, SAME_THREADS, .timed = "rms_norm_back")

/* Rotary embedding (Su et al. 2021), half-split, in place on `heads` heads of width hd: row t is x +
 * t·ldx, its position `position + t % S`, less start[t] where `start` [T] is not NULL. direction +1 rotates, −1 is the inverse, which is also the
 * backward pass. cosine, sine: [≥ position+S, hd/2]. */
OPERATION(rope,
          (long T, long S, long position, const int32_t *start, long heads, long hd, const real *cosine,
           const real *sine, int direction, real *x, long ldx),
          0,
          (T, S, EITHER(0, 0, 3), EITHER(2, NULL, TOKENS(start, T, 1)), H + K, hd, IN(cosine, (3 + S) * hd / 2), IN(sine, (3 + S) * hd / 2),
           EITHER(1, 1, -1), PART(x, T * (H + 2 * K) * hd, 2 * T * (H + K) * hd), (H + 2 * K) * hd),
          1, ANY_THREADS, .timed = "rope")

/* h = silu(g) ⊙ u; gu [T, 2F] holds g then u in each row, h [T, F]. */
OPERATION(swiglu, (long T, long F, const real *gu, real *h), 0,
          (T, F, IN(gu, T * 2 * F, -3, 3), OUT(h, T * F)), 1, ANY_THREADS, .timed = "swiglu")
/* dgu [T, 2F] from dh [T, F]; also recomputes h into `h` where it is not NULL (for Wdown's gradient). */
OPERATION(swiglu_back, (long T, long F, const real *gu, const real *dh, real *dgu, real *h), 0,
          (T, F, IN(gu, T * 2 * F, -3, 3), IN(dh, T * F), OUT(dgu, T * 2 * F),
           EITHER(0, OUT(h, T * F), NULL)),
          1, ANY_THREADS, .timed = "swiglu_back")

/* --------------------------------------------------------------------------------------------- vectors */

/* x = 0 */
OPERATION(zero, (long n, real *x), 0, (T * D, OUT(x, T * D)), 1, ANY_THREADS)
/* y = x */
OPERATION(copy, (long n, const real *x, real *y), 0, (T * D, IN(x, T * D), OUT(y, T * D)), 1, ANY_THREADS)
/* x rounded to bf16 in place (kernels/base/bf16.h) */
OPERATION(round_bf16, (long n, real *x), 0, (T * D, INOUT(x, T * D)), 1, ANY_THREADS)
/* y += x */
OPERATION(add, (long n, const real *x, real *y), 0, (T * D, IN(x, T * D), INOUT(y, T * D)), 1, ANY_THREADS)
/* z = x + y; z may be x or y */
OPERATION(add_to, (long n, const real *x, const real *y, real *z), 0,
          (T * D, IN(x, T * D), IN(y, T * D), OUT(z, T * D)), 1, ANY_THREADS, .timed = "add_to")
/* x ← c·x; c points to one number */
OPERATION(scale, (long n, const real *c, real *x), 0, (T * D, IN(c, 1, 2, 3), INOUT(x, T * D)), 1, ANY_THREADS)
/* *sum += Σ x·y in double, in fixed order [any threads]. */
OPERATION(add_dot, (long n, const real *x, const real *y, real *sum), 0,
          (T * D, IN(x, T * D), IN(y, T * D), INOUT(sum, 1)), T * D, ANY_THREADS)
/* y += c·sign(x); nothing where x is 0 */
OPERATION(add_signs, (long n, double c, const real *x, real *y), 0,
          (T * D, 0.5, IN(x, T * D), INOUT(y, T * D)), 1, ANY_THREADS)
/* *sum += Σ |x| [any threads] */
OPERATION(add_absolutes, (long n, const real *x, double *sum), 0, (T * D, IN(x, T * D), SUMS_OF_DOUBLES(sum, 1)),
          T * D, ANY_THREADS)
/* sum [W] += Σ_t x[t] */
OPERATION(add_column_sums, (long T, long W, const real *x, long ldx, real *sum), 0,
          (T, D, IN(x, T * (D + 3)), D + 3, INOUT(sum, D)), T, ANY_THREADS)
/* y[t] += c[t]·x[t] */
OPERATION(add_scaled_rows, (long T, long D, const real *c, const real *x, real *y), 0,
          (T, D, IN(c, T), IN(x, T * D), INOUT(y, T * D)), 1, ANY_THREADS)
/* Weighted sums of n sources x_i [T, D], `sums` of them, at most OPS_SUMS, in one pass over the sources: y_c[t] =
 * base_c[t] + Σ_i weight_c[t·lda + i]·x_i[t], added in order. The lists weight, x, base and y are on the host; lda 0
 * where all tokens have the same weights; a base may be the y of its sum. */
OPERATION(add_sources,
          (long T, long D, long n, long sums, const real *const *weight, long lda, const real *const *x,
           const real *const *base, real *const *y), 0,
          (T, D, n, SUMS, HOST_ROWS(weight, OPS_SUMS, (n + 1) * T), EITHER(0, n + 1, 0), HOST_ROWS(x, n, T * D),
           HOST_ROWS(base, OPS_SUMS, T * D), HOST_ROWS_OUT(y, SUMS, T * D)),
          n, ANY_THREADS, .timed = "add_sources")
/* Its backward pass, from the gradients dy_c [T, D]: dweight_c[t·ldd + i] = Σ_j dy_c[t, j]·x_i[t, j], and where dx
 * is not NULL dx_i[t] += Σ_c weight_c[t·lda + i]·dy_c[t]. All lists are on the host. */
OPERATION(sources_back,
          (long T, long D, long n, long sums, const real *const *weight, long lda, const real *const *x,
           const real *const *dy, real *const *dx, real *const *dweight, long ldd), 0,
          (T, D, n, SUMS, HOST_ROWS(weight, OPS_SUMS, (n + 1) * T), EITHER(0, n + 1, 0), HOST_ROWS(x, n, T * D),
           HOST_ROWS(dy, OPS_SUMS, T * D), EITHER(3, HOST_ROWS_INOUT(dx, n, T * D), NULL),
           HOST_ROWS_INOUT(dweight, SUMS, (n + 1) * T), n + 1),
          D, ANY_THREADS, .timed = "sources_back")
/* Dropout (Srivastava et al. 2014): y = x/(1 − p) where the mask keeps the element, else 0. x, y [T, W]; y may
 * be x. The mask is on the host: the same element is kept in every call (kernels/base/mask.h). */
OPERATION(dropout, (long T, long W, const struct mask *mask, const real *x, long ldx, real *y, long ldy), 0,
          (T, D, (&(struct mask){.site = 5, .row = 1ull << 33, .column = 7, .p = EITHER(0, 0.25, 0.9)}),
           IN(x, T * (D + EITHER(1, 0, 3))), D + EITHER(1, 0, 3), INOUT(y, T * (D + EITHER(1, 0, 5))),
           D + EITHER(1, 0, 5)),
          1, ANY_THREADS, .timed = "dropout")
/* *sum += the checksum of x [rows, width] (row distance ld) modulo 2⁶⁴: of its elements' bits and places,
 * index + r·stride + c for element (r, c), as data/hdf5/sum.h defines it. Whole numbers, so parts
 * may be added in any order, by any backend [any threads]. */
OPERATION(add_hash,
          (const real *x, long rows, long width, long ld, uint64_t index, uint64_t stride, uint64_t *sum), 0,
          (IN(x, T * (D + 3)), T, D, D + 3, 1ull << 40, (uint64_t)D, BITS(sum, sizeof(uint64_t))), 0,
          ANY_THREADS)
/* sum [count] = pieces [parts, count] added in order of the parts [any threads]: what sums over ranks are
 * made of. sum may be the first piece. */
OPERATION(add_parts, (long count, int parts, const real *pieces, real *sum), 0,
          (T * D, EITHER(0, 3, 1), IN(pieces, 3 * T * D), OUT(sum, T * D)), 3, ANY_THREADS)
/* greatest [count] = the greatest of pieces [parts, count], NaN where one is [any threads]: what maxima over ranks are
 * made of. greatest may be the first piece. */
OPERATION(max_parts, (long count, int parts, const real *pieces, real *greatest), 0,
          (T * D, EITHER(0, 3, 1), IN(pieces, 3 * T * D), OUT(greatest, T * D)), 1, ANY_THREADS)
/* out [count] = x as bf16, rounded to nearest, ties to even, each NaN 0x7fff (kernels/base/bf16.h) [any threads]:
 * what is sent in half the bytes. */
OPERATION(to_bf16, (long count, const real *x, uint16_t *out), 0,
          (T * D, IN(x, T * D), BITS(out, T * D * sizeof(uint16_t))), 0, ANY_THREADS)
/* out [rows, width] (row distance ld) = x [rows, width] of bf16, exactly [any threads]. */
OPERATION(from_bf16, (long rows, long width, const uint16_t *x, real *out, long ld), 0,
          (T, D, CODES(x, T * D), INOUT(out, T * (D + 3)), D + 3), 0, ANY_THREADS)
/* sum [count] = pieces [parts, count] of bf16 added as add_parts adds them, not in bf16 [any threads]. */
OPERATION(add_parts_bf16, (long count, int parts, const uint16_t *pieces, real *sum), 0,
          (T * D, EITHER(0, 3, 1), CODES(pieces, 3 * T * D), OUT(sum, T * D)), 3, ANY_THREADS)

/* ------------------------------------------------------------------------------------- tokens and loss */

/* rows [B, S + 1] of tokens with marks (kernels/base/marks.h): input [B·S] has the tokens of the first S of each,
 * target [B·S] of the last S, −1 where one does not count (NULL: neither is wanted); start [B·S], where it is not NULL, the place in its row
 * where the input's document starts: the last at or before it that has the mark, 0 where none has; counts [B·S],
 * where it is not NULL, 0 of inputs that are padding and 1 of others. */
OPERATION(cut_tokens,
          (long B, long S, const int32_t *rows, int32_t *input, int32_t *target, int32_t *start, real *counts), 0,
          (B, S, TOKENS(rows, B * (S + 1), INT32_MAX), EITHER(2, BITS(input, T * sizeof(int32_t)), NULL),
           EITHER(2, BITS(target, T * sizeof(int32_t)), NULL), EITHER(0, BITS(start, T * sizeof(int32_t)), NULL),
           EITHER(1, OUT(counts, T), NULL)),
          0, ANY_THREADS)

/* x[t] = E[token[t] − first], where E has the vocabulary's rows [first, first + V); of other tokens 0. */
OPERATION(embed, (long T, long D, const int32_t *token, long first, long V, const real *E, real *x), 0,
          (T, D, TOKENS(token, T, V), EITHER(0, 0, V / 2), EITHER(0, V, V - V / 2), PART(E, V * D, T * D),
           OUT(x, T * D)),
          1, ANY_THREADS, .timed = "embed")
/* Adds dx[t] to that row of dE, in token order [any threads]; other tokens are left out. */
OPERATION(embed_back, (long T, long D, const int32_t *token, long first, long V, const real *dx, real *dE), 0,
          (T, D, TOKENS(token, T, V), EITHER(0, 0, V / 2), EITHER(0, V, V - V / 2), IN(dx, T * D),
           PART(dE, V * D, T * D)),
          T, ANY_THREADS, .timed = "embed_back")

/* logits [T, V] become cap·tanh(logits/cap). */
OPERATION(softcap, (long T, long V, real *logits, long ld, double cap), 0,
          (T, V, INOUT(logits, T * (V + 2), -9, 9), V + 2, EITHER(0, 3, 30)), 1, ANY_THREADS, .timed = "softcap")
/* loss[t] = lse − logits[t][target[t]], lse = log Σ exp(logits[t]) over V columns; squares[t] = lse² where it
 * is not NULL. Where `scale` is not 0, logits become the gradient of scale·(loss + z·lse²), which is
 * scale·((1 + 2·z·lse)·softmax − onehot); where `cap` is not 0 that in what they were before softcap:
 * times 1 − (logits/cap)². A target of −1 does not count: loss, square and gradient are 0, whatever its logits. */
OPERATION(cross_entropy,
          (long T, long V, real *logits, long ld, const int32_t *target, double cap, double z, double scale,
           real *loss, real *squares),
          0,
          (T, V, INOUT(logits, T * EITHER(1, V, V + 2), -3, 3), EITHER(1, V, V + 2), TARGETS(target, T, V),
           EITHER(2, 0, 4), EITHER(1, 0, 0.1), EITHER(0, 2, 0), OUT(loss, T), EITHER(1, NULL, OUT(squares, T))),
          V, ANY_THREADS, .timed = "cross_entropy")
/* The same in three steps where these V columns are only the part [first, first + V) of the vocabulary.
 * Over the parts the maximum is taken of `largest` [T], then the sum of `sums` [2, T].
 *
 * largest[t] = max logits[t] */
OPERATION(row_largest, (long T, long V, const real *logits, long ld, real *largest), 0,
          (T, V, IN(logits, T * (V + 2), -3, 3), V + 2, OUT(largest, T)), 1, ANY_THREADS)
/* sums[0, t]: the sum of exp(logits − largest), which logits become, but with a cap, where the gradient needs
 * them as they are; sums[1, t]: the target's logit − largest, 0 where another part has it. */
OPERATION(part_exp,
          (long T, long V, real *logits, long ld, const int32_t *target, long first, const real *largest,
           double cap, real *sums),
          0,
          (T, V, INOUT(logits, T * (V + 2), -3, 3), V + 2, TARGETS(target, T, V + 3), V / 2,
           IN(largest, T, 3, 4), EITHER(0, 0, 4), OUT(sums, 2 * T)),
          V, ANY_THREADS)
/* From what part_exp has left, loss[t] = log sums[0, t] − sums[1, t], squares, and where `scale` is not 0 the
 * gradient, as above. */
OPERATION(part_cross_entropy,
          (long T, long V, real *logits, long ld, const int32_t *target, long first, const real *largest,
           const real *sums, double cap, double z, double scale, real *loss, real *squares),
          0,
          (T, V, INOUT(logits, T * (V + 2), 0, 1), V + 2, TARGETS(target, T, V + 3), V / 2,
           IN(largest, T, 1, 2), IN(sums, 2 * T, 1, 2), EITHER(2, 0, 4), EITHER(1, 0, 0.1), EITHER(0, 2, 0),
           OUT(loss, T), EITHER(1, NULL, OUT(squares, T))),
          V, ANY_THREADS)

/* -------------------------------------------------------------------------------------- the optimizer's */

/* One AdamW update of n elements (Loshchilov & Hutter 2019; model.md 6) [any threads]:
 * g' = g·gscale; m, v moving averages with beta1, beta2; w ← w·(1 − lr·decay) − lr·(m/c1)/(√(v/c2) +
 * eps), c1 = 1 − beta1^n, c2 = 1 − beta2^n for the tensor's own step count n. Where `cautious`, elements of
 * which m and w have opposite signs do not decay (kernels/base/decay.h). */
OPERATION(adamw,
          (long n, real *w, const real *g, real *m, real *v, double gscale, double lr, double beta1,
           double beta2, double eps, double decay, bool cautious, double c1, double c2),
          0,
          (T * D, INOUT(w, T * D), IN(g, T * D), INOUT(m, T * D), INOUT(v, T * D, 0, 1), 0.5, 0.1, 0.9, 0.99,
           1e-8, 0.1, EITHER(0, false, true), 0.2, 0.03),
          1, ANY_THREADS, .timed = "adamw")
/* A Nesterov momentum of n elements (model.md 6) [any threads]: g' = g·gscale; m ← momentum·m + g'; g ← g' +
 * momentum·m. */
OPERATION(nesterov, (long n, real *g, real *m, double gscale, double momentum), 0,
          (T * D, INOUT(g, T * D), INOUT(m, T * D), 0.5, 0.9), 1, ANY_THREADS)
/* y = x / (‖x‖₂ + eps), the norm in double, in fixed order; y may be x [any threads]. */
OPERATION(unit_norm, (long n, const real *x, double eps, real *y), 0, (T * D, IN(x, T * D), 1e-7, OUT(y, T * D)),
          T * D, ANY_THREADS)
/* A step along x with decoupled decay: w ← w·(1 − decay) − rate·x, rate above 0; where `cautious`, elements of
 * which x and w have opposite signs do not decay [any threads]. */
OPERATION(descend, (long n, real *w, const real *x, double rate, double decay, bool cautious), 0,
          (T * D, INOUT(w, T * D), IN(x, T * D), 0.1, 0.01, EITHER(0, false, true)), 1, ANY_THREADS)
/* For each i in [first, first + count): square[i / grain] += x[i]², in double; x and square begin at
 * element and block 0. Blocks are added in fixed order [any threads]. */
OPERATION(add_squares, (long first, long count, long grain, const real *x, double *square), 0,
          (0, T * D, EITHER(0, 1024, 3), IN(x, T * D),
           SUMS_OF_DOUBLES(square, T * D / EITHER(0, 1024, 3) + 1)),
          1024, ANY_THREADS, .timed = "add_squares")
