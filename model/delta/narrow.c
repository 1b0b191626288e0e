/* Narrow sources (dist/layout/route.h): what connections need of a source on another stage where their gate
 * reads sources through linear maps alone: projected there with the connection's own weights, which both
 * stages hold. Of the blocks that a tensor rank reads its own rows of, it computes these; the others are
 * zeros. */
#include "model/delta/private.h"

/* A projected source has a block of each of the gate's maps, then what selection reads: its key, and the
 * inverse rms. */
static int blocks(const struct model *m) {
    return m->delta->gate->maps + 2;
}
static bool is_rstd(const struct model *m, int block) {
    return block == m->delta->gate->maps + 1;
}

/* Elements a token of each block. */
static long block_width(const struct model *m, int block) {
    int maps = m->delta->gate->maps;
    bool selects = m->config.delta.aggregate == AGGREGATE_ATTENTION;
    if (block < maps) return m->delta->map[block].width;
    return !selects ? 0 : block == maps ? m->config.delta.attention_dim : 1;
}

long projected_offset(const struct model *m, long T, int block) {
    long offset = 0;
    for (int b = 0; b < block; b++) offset += T * block_width(m, b);
    return offset;
}

long projected_select(const struct model *m, long T) {
    return projected_offset(m, T, m->delta->gate->maps);
}

long projected_rstd(const struct model *m, long T) {
    return projected_offset(m, T, m->delta->gate->maps + 1);
}

/* The weights of the blocks that are products. */
static struct tensor block_map(const struct model *m, int edge, int block) {
    const struct projection *p = &m->delta->projection[edge];
    return block < m->delta->gate->maps ? p->map[block] : p->select;
}

/* The rows of a block that are computed and read. */
struct rows {
    long first, count;
};

static struct rows block_rows(const struct model *m, int block, long T) {
    bool own = block < m->delta->gate->maps ? m->delta->map[block].shared : m->rows_divided;
    long first = own ? axis_first_row(m->tensor, T, m->tensor->index) : 0;
    long end = own ? axis_first_row(m->tensor, T, m->tensor->index + 1) : T;
    return (struct rows){first, end - first};
}

void project_source(struct model *m, int edge, const real *s, long T, real *projected) {
    long D = m->config.hidden_size, width;
    for (int b = 0; b < blocks(m); b++) {
        if (!(width = block_width(m, b))) continue;
        struct rows r = block_rows(m, b, T);
        real *block = projected + projected_offset(m, T, b), *out = block + r.first * width;
        if (r.count < T) m->ops->zero(T * width, block);
        if (is_rstd(m, b))
            m->ops->row_rstd(r.count, D, s + r.first * D, m->config.norm_eps, out);
        else
            m->ops->gemm('N', 'T', r.count, width, D, 1, s + r.first * D, D, block_map(m, edge, b).w, D, 0,
                         out, width);
    }
}

void unproject_source(struct model *m, int edge, const real *s, long T, const real *projected_gradient,
                      real *source_gradient) {
    long D = m->config.hidden_size, width;
    for (int b = 0; b < blocks(m) && !is_rstd(m, b); b++) {
        if (!(width = block_width(m, b))) continue;
        struct rows r = block_rows(m, b, T);
        const real *d = projected_gradient + projected_offset(m, T, b) + r.first * width;
        struct tensor w = block_map(m, edge, b);
        m->ops->gemm('N', 'N', r.count, D, width, 1, d, width, w.w, D, 1, source_gradient + r.first * D, D);
        m->ops->gemm('T', 'N', width, D, r.count, 1, d, width, s + r.first * D, D, 1, w.g, D);
    }
    if (m->config.delta.aggregate ==
        AGGREGATE_ATTENTION) /* the inverse rms is worked in already, see select_back */
        m->ops->add_scaled_rows(T, D, projected_gradient + projected_rstd(m, T), s, source_gradient);
}
