#include "model/mixer/head_norm.h"

int head_norm_leaves(const struct model_config *config, struct leaf *leaf) {
    if (config->qk_norm == QK_NORM_NONE) return 0;
    leaf[0] = leaf_vector("self_attn.q_norm.weight", SPLIT_NONE, head_width(config), 1);
    leaf[1] = leaf_vector("self_attn.k_norm.weight", SPLIT_NONE, head_width(config), 1);
    for (int i = 0; i < HEAD_NORM_LEAVES; i++) leaf[i].partial = true; /* of a rank's heads */
    return HEAD_NORM_LEAVES;
}

void head_norm_find(const struct model *m, int layer, struct head_norm *out) {
    if (m->config.qk_norm == QK_NORM_NONE) return;
    out->queries = find_tensor(m, "layers.%d.self_attn.q_norm.weight", layer);
    out->keys = find_tensor(m, "layers.%d.self_attn.k_norm.weight", layer);
}

/* Queries or keys: `count` heads of each row. */
struct half {
    struct tensor weight;
    long count, width, ld; /* width: count·hd */
    real *at, *x, *rstd;
};

enum { HALVES = 2 };

static void halves_of(const struct model *m, const struct head_norm *norm, const struct head_rows *rows,
                      struct half half[HALVES]) {
    const long H = rows->H, K = rows->K, hd = rows->hd, ld = (H + 2 * K) * hd, queries = m->T * H;
    half[0] = (struct half){norm->queries, H, H * hd, ld, rows->at, norm->x, norm->rstd};
    half[1] = (struct half){
        norm->keys, K, K * hd, ld, rows->at + H * hd, norm->x + queries * hd, norm->rstd + queries};
}

void head_norm_forward(struct model *m, const struct head_norm *norm, const struct head_rows *rows,
                       real *work) {
    struct half half[HALVES];
    halves_of(m, norm, rows, half);
    for (const struct half *h = half; h < half + HALVES; h++) {
        m->ops->copy_columns(m->T, h->width, h->at, h->ld, h->x, h->width);
        m->ops->rms_norm(m->T * h->count, rows->hd, h->x, h->weight.w, m->config.norm_eps, work, h->rstd);
        m->ops->copy_columns(m->T, h->width, work, h->width, h->at, h->ld);
    }
}

void head_norm_backward(struct model *m, const struct head_norm *norm, const struct head_rows *rows,
                        real *work, real *dx) {
    struct half half[HALVES];
    halves_of(m, norm, rows, half);
    for (const struct half *h = half; h < half + HALVES; h++) {
        m->ops->copy_columns(m->T, h->width, h->at, h->ld, work, h->width);
        m->ops->zero(m->T * h->width, dx);
        m->ops->rms_norm_back(m->T * h->count, rows->hd, h->x, h->weight.w, h->rstd, work, dx, h->weight.g);
        m->ops->copy_columns(m->T, h->width, dx, h->width, h->at, h->ld);
    }
}
