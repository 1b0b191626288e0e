#include "kernels/count/count.h"

/* The operations have no room for a context of their own. */
static double flops;

double count_flops(void) {
    return flops;
}

static void gemm(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda, const real *b,
                 long ldb, real beta, real *c, long ldc) {
    (void)ta, (void)tb, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)c, (void)ldc;
    flops += 2.0 * (double)m * (double)n * (double)k;
}

static void linear(int weight_id, char ta, char tb, long m, long n, long k, real alpha, const real *a,
                   long lda, const real *b, long ldb, real beta, real *c, long ldc) {
    (void)weight_id;
    gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* Scores and values of the causal half: S(S + 1)/2 pairs a head, each costs 2·hd in either product. */
static double attention_flops(long B, long S, long H, long hd) {
    return 2.0 * 2 * (double)(B * H * hd) * (double)S * (double)(S + 1) / 2;
}

static void attention(long B, long S, long H, long K, long hd, const real *qkv, real *o, real *lse) {
    (void)K, (void)qkv, (void)o, (void)lse;
    flops += attention_flops(B, S, H, hd);
}

/* Each product twice, once for either factor. That the probabilities are computed anew is not counted, as in
 * model_flops_per_token. */
static void attention_back(long B, long S, long H, long K, long hd, const real *qkv, const real *o,
                           const real *lse, const real *dout, real *dqkv, real *work) {
    (void)K, (void)qkv, (void)o, (void)lse, (void)dout, (void)dqkv, (void)work;
    flops += 2 * attention_flops(B, S, H, hd);
}

static void attention_decode(long length, long H, long K, long hd, const real *q, const real *keys,
                             const real *values, real *o) {
    (void)K, (void)q, (void)keys, (void)values, (void)o;
    flops += 2.0 * 2 * (double)length * (double)(H * hd);
}

/* Everything else costs nothing here: a few passes over memory beside the products. */
static void zero(long, real *) {}
static void copy(long, const real *, real *) {}
static void add(long, const real *, real *) {}
static void add_to(long, const real *, const real *, real *) {}
static void add_column_sums(long, long, const real *, long, real *) {}
static void add_scaled_rows(long, long, const real *, const real *, real *) {}
static void add_squares(long, long, long, const real *, double *) {}
static void add_hash(const real *, long, long, long, uint64_t, uint64_t, uint64_t *) {}
static void add_parts(long, int, const real *, real *) {}
static void adamw(long, real *, const real *, real *, real *, double, double, double, double, double, double,
                  double, double) {}
static void cut_tokens(long, long, const int32_t *, int32_t *, int32_t *) {}
static void embed(long, long, const int32_t *, long, long, const real *, real *) {}
static void embed_back(long, long, const int32_t *, long, long, const real *, real *) {}
static void rms_norm(long, long, const real *, const real *, double, real *, real *) {}
static void add_rms_norm(long, long, const real *, const real *, const real *, double, real *, real *,
                         real *) {}
static void row_rstd(long, long, const real *, double, real *) {}
static void rms_norm_back(long, long, const real *, const real *, const real *, const real *, real *,
                          real *) {}
static void rope(long, long, long, long, long, const real *, const real *, int, real *, long) {}
static void swiglu(long, long, const real *, real *) {}
static void swiglu_back(long, long, const real *, const real *, real *, real *) {}
static void cross_entropy(long, long, real *, long, const int32_t *, double, real *) {}
static void row_largest(long, long, const real *, long, real *) {}
static void part_exp(long, long, real *, long, const int32_t *, long, const real *, real *) {}
static void part_cross_entropy(long, long, real *, long, const int32_t *, long, const real *, double,
                               real *) {}
static void delta_mean(long, long, const real *, const real *, real *, real *) {}
static void delta_inverse_norm(long, long, const real *, const real *, double, real *) {}
static void delta_spread(long, long, const real *, const real *, const real *, const real *, real *, real *) {
}
static void row_factors(long, const real *, const real *, real *) {}
static void row_factors_back(long, const real *, const real *, double, const real *, real *, real *) {}
static void connection_weights(long, long, const real *, long, long, real, const real *, real *) {}
static void connection_weights_back(long, long, const real *, long, long, real, const real *, const real *,
                                    real *, real *) {}
static void copy_columns(long, long, const real *, long, real *, long) {}
static void add_columns(long, long, real, const real *, long, real *, long) {}
static void add_up(long, const real *, double *) {}
static void squares(long, real *) {}
static void root_means(long, long, real *) {}
static void bias_silu(long, long, const real *, real *, real *) {}
static void silu(long, const real *, real *) {}
static void silu_back(long, const real *, const real *, real *) {}
static void bottleneck_gate(long, long, long, const real *, const real *, const real *, const real *,
                            const real *, real *, real *) {}
static void scale_connections(long, long, long, const real *, const real *, real *) {}
static void bottleneck_gate_back(long, long, long, const real *, const real *, const real *, const real *,
                                 const real *, double, real *, real *, real *, real *) {}
static void sigmoid_gate(long, long, double, const real *, const real *, real *, long) {}
static void sigmoid_gate_back(long, long, double, const real *, const real *, const real *, long, double,
                              real *, long, real *) {}
static void softmax_gate(long, long, const real *, double, real *, long) {}
static void softmax_gate_back(long, long, double, const real *, long, double, real *, long) {}
static void delta_magnitude(long, long, const real *, const real *, const real *, double, real *, long,
                            real *) {}
static void delta_magnitude_back(long, long, const real *, const real *, const real *, const real *, real *,
                                 real *) {}
static void gated_delta(long, long, long, const real *, const real *, const real *, long, const real *,
                        double, const real *, long, bool, real *, long, real *) {}
static void gated_delta_back(long, long, long, const real *, const real *, const real *, long, const real *,
                             double, const real *, long, const real *, long, const real *, double, real *,
                             long, real *, real *, real *) {}
static void binary_entropy(long, long, const real *, long, double, double *) {}
static void softmax_entropy(long, long, const real *, long, double *) {}
static void gram_rms(long, long, long, const real *, double, real *, real *, long, real *) {}
static void select(long, long, long, const real *, const real *, const real *, const real *const *, real *) {}
static void select_back(long, long, long, long, real *, real *, const real *, const real *const *,
                        const real *, real *, real *, real *) {}
static void multihead(long, long, long, long, const real *, const real *, const real *, real *, real *) {}
static void multihead_back(long, long, long, long, real *, real *, const real *, const real *, const real *,
                           real *) {}

/* What addresses without memory behind them lie on. */
static void copy_nothing(void *to, const void *from, size_t bytes) {
    (void)to, (void)from, (void)bytes;
}
static void clear_nothing(void *memory, size_t bytes) {
    (void)memory, (void)bytes;
}
static int no_failure(void) {
    return 0;
}
static const struct device nowhere = {
    .name = "nowhere",
    .host = true,
    .upload = copy_nothing,
    .download = copy_nothing,
    .move = copy_nothing,
    .clear = clear_nothing,
    .wait = no_failure,
    .status = no_failure,
};

const struct ops count_ops = {
    .name = "count",
    .device = &nowhere,
    .gemm = gemm,
    .linear = linear,
    .zero = zero,
    .copy = copy,
    .add = add,
    .add_to = add_to,
    .add_column_sums = add_column_sums,
    .add_scaled_rows = add_scaled_rows,
    .add_squares = add_squares,
    .add_hash = add_hash,
    .add_parts = add_parts,
    .adamw = adamw,
    .cut_tokens = cut_tokens,
    .embed = embed,
    .embed_back = embed_back,
    .rms_norm = rms_norm,
    .add_rms_norm = add_rms_norm,
    .row_rstd = row_rstd,
    .rms_norm_back = rms_norm_back,
    .rope = rope,
    .attention = attention,
    .attention_back = attention_back,
    .attention_decode = attention_decode,
    .swiglu = swiglu,
    .swiglu_back = swiglu_back,
    .cross_entropy = cross_entropy,
    .row_largest = row_largest,
    .part_exp = part_exp,
    .part_cross_entropy = part_cross_entropy,
    .delta_mean = delta_mean,
    .delta_inverse_norm = delta_inverse_norm,
    .delta_spread = delta_spread,
    .row_factors = row_factors,
    .row_factors_back = row_factors_back,
    .connection_weights = connection_weights,
    .connection_weights_back = connection_weights_back,
    .copy_columns = copy_columns,
    .add_columns = add_columns,
    .add_up = add_up,
    .squares = squares,
    .root_means = root_means,
    .bias_silu = bias_silu,
    .silu = silu,
    .silu_back = silu_back,
    .bottleneck_gate = bottleneck_gate,
    .scale_connections = scale_connections,
    .bottleneck_gate_back = bottleneck_gate_back,
    .sigmoid_gate = sigmoid_gate,
    .sigmoid_gate_back = sigmoid_gate_back,
    .softmax_gate = softmax_gate,
    .softmax_gate_back = softmax_gate_back,
    .delta_magnitude = delta_magnitude,
    .delta_magnitude_back = delta_magnitude_back,
    .gated_delta = gated_delta,
    .gated_delta_back = gated_delta_back,
    .binary_entropy = binary_entropy,
    .softmax_entropy = softmax_entropy,
    .gram_rms = gram_rms,
    .select = select,
    .select_back = select_back,
    .multihead = multihead,
    .multihead_back = multihead_back,
};
