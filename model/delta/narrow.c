/* Narrow sources (dist/layout/route.h): what a bottleneck connection needs of a source on another stage,
 * projected there with the connection's own weights, which both stages hold. Of the blocks that a tensor rank
 * reads its own rows of, it computes these; the others are zeros. */
#include "model/delta/private.h"

/* Elements a token of each block. */
static long block_width(const struct model *m, enum projected_block block) {
    bool selects = m->config.delta.aggregate == AGGREGATE_ATTENTION;
    switch (block) {
    case PROJECTED_PROJ:
        return m->delta->part.Hd;
    case PROJECTED_GATE_IN:
        return m->config.delta.gate_hidden;
    case PROJECTED_SELECT:
        return selects ? m->config.delta.attention_dim : 0;
    default:
        return selects;
    }
}

long projected_offset(const struct model *m, long T, enum projected_block block) {
    long offset = 0;
    for (enum projected_block b = PROJECTED_PROJ; b < block; b++) offset += T * block_width(m, b);
    return offset;
}

struct route_widths model_route_widths(const struct model_config *model, const struct layout *layout) {
    const struct delta_config *delta = &model->delta;
    long select = delta->aggregate == AGGREGATE_ATTENTION ? delta->attention_dim + 1 : 0;
    return (struct route_widths){.narrow = layout->narrow && !layout_by_connection(layout) &&
                                           delta->kind == KIND_BOTTLENECK && !delta->normalize,
                                 .node = model->hidden_size,
                                 .edge = delta->hidden / layout->tensor + delta->gate_hidden + select};
}

long projected_width(const struct model_config *config, const struct layout *layout) {
    return model_route_widths(config, layout).edge;
}

/* The weights of the blocks that are products. */
static struct tensor block_map(const struct model *m, int edge, enum projected_block block) {
    const struct projection *p = &m->delta->projection[edge];
    return block == PROJECTED_PROJ ? p->proj : block == PROJECTED_GATE_IN ? p->gate_in : p->select;
}

/* The rows of a block that are computed and read. */
struct rows {
    long first, count;
};

static struct rows block_rows(const struct model *m, enum projected_block block, long T) {
    bool full = block == PROJECTED_PROJ || (block == PROJECTED_GATE_IN ? !shares_means(m) : !m->rows_divided);
    long first = full ? 0 : axis_first_row(m->tensor, T, m->tensor->index);
    long end = full ? T : axis_first_row(m->tensor, T, m->tensor->index + 1);
    return (struct rows){first, end - first};
}

void model_project(struct model *m, int edge, const real *s, long T, real *projected) {
    long D = m->config.hidden_size, width;
    double began = connections_clock(m);
    for (enum projected_block b = PROJECTED_PROJ; b <= PROJECTED_RSTD; b++) {
        if (!(width = block_width(m, b))) continue;
        struct rows r = block_rows(m, b, T);
        real *block = projected + projected_offset(m, T, b), *out = block + r.first * width;
        if (r.count < T) m->ops->zero(T * width, block);
        if (b == PROJECTED_RSTD)
            m->ops->row_rstd(r.count, D, s + r.first * D, m->config.norm_eps, out);
        else
            m->ops->gemm('N', 'T', r.count, width, D, 1, s + r.first * D, D, block_map(m, edge, b).w, D, 0,
                         out, width);
    }
    m->delta->seconds += connections_clock(m) - began;
}

void model_unproject(struct model *m, int edge, const real *s, long T, const real *projected_gradient,
                     real *source_gradient) {
    long D = m->config.hidden_size, width;
    double began = connections_clock(m);
    for (enum projected_block b = PROJECTED_PROJ; b < PROJECTED_RSTD; b++) {
        if (!(width = block_width(m, b))) continue;
        struct rows r = block_rows(m, b, T);
        const real *d = projected_gradient + projected_offset(m, T, b) + r.first * width;
        struct tensor w = block_map(m, edge, b);
        m->ops->gemm('N', 'N', r.count, D, width, 1, d, width, w.w, D, 1, source_gradient + r.first * D, D);
        m->ops->gemm('T', 'N', width, D, r.count, 1, d, width, s + r.first * D, D, 1, w.g, D);
    }
    if (block_width(m, PROJECTED_RSTD)) /* the inverse rms is worked in already, see select_back */
        m->ops->add_scaled_rows(T, D, projected_gradient + projected_offset(m, T, PROJECTED_RSTD), s,
                                source_gradient);
    m->delta->seconds += connections_clock(m) - began;
}
