/* Narrow sources (dist/layout/route.h): what connections need of a source on another stage where their gate
 * reads sources through linear maps alone: projected there with the connection's own weights, which both
 * stages hold. Of the blocks that a tensor rank reads its own rows of, it computes these; the others are
 * zeros. */
#include "model/delta/private.h"

/* A projected source has a block of each of the gate's maps, of each of the aggregate's, and where that reads
 * it the inverse rms. */
int aggregate_block(const struct model *m, int map) {
    return m->delta->gate->maps + map;
}
int rms_block(const struct model *m) {
    return aggregate_block(m, m->delta->aggregate->maps);
}
static int blocks(const struct model *m) {
    return rms_block(m) + m->delta->aggregate->rms;
}

/* Elements a token of a block. */
static long block_width(const struct model *m, int block) {
    return block == rms_block(m) ? 1 : m->delta->map[block].width;
}

long projected_offset(const struct model *m, long T, int block) {
    long offset = 0;
    for (int b = 0; b < block; b++) offset += T * block_width(m, b);
    return offset;
}

/* The rows of a block that are computed and read. */
struct rows {
    long first, count;
};

static struct rows block_rows(const struct model *m, int block, long T) {
    bool own = block == rms_block(m) ? m->rows_divided : m->delta->map[block].shared;
    long first = own ? axis_first_row(m->tensor, T, m->tensor->index) : 0;
    long end = own ? axis_first_row(m->tensor, T, m->tensor->index + 1) : T;
    return (struct rows){first, end - first};
}

void project_source(struct model *m, int edge, const real *s, long T, real *projected) {
    const struct projection *map = &m->delta->projection[edge];
    long D = m->config.hidden_size;
    for (int b = 0; b < blocks(m); b++) {
        long width = block_width(m, b);
        struct rows r = block_rows(m, b, T);
        real *block = projected + projected_offset(m, T, b), *out = block + r.first * width;
        if (r.count < T) m->ops->zero(T * width, block);
        if (b == rms_block(m))
            m->ops->row_rstd(r.count, D, s + r.first * D, m->config.norm_eps, out);
        else
            m->ops->gemm('N', 'T', r.count, width, D, 1, s + r.first * D, D, map->map[b].w, D, 0, out, width);
    }
}

void unproject_source(struct model *m, int edge, const real *s, long T, const real *projected_gradient,
                      real *source_gradient) {
    long D = m->config.hidden_size;
    for (int b = 0; b < rms_block(m); b++) {
        long width = block_width(m, b);
        struct rows r = block_rows(m, b, T);
        const real *d = projected_gradient + projected_offset(m, T, b) + r.first * width;
        struct tensor w = m->delta->projection[edge].map[b];
        m->ops->gemm('N', 'N', r.count, D, width, 1, d, width, w.w, D, 1, source_gradient + r.first * D, D);
        m->ops->gemm('T', 'N', width, D, r.count, 1, d, width, s + r.first * D, D, 1, w.g, D);
    }
    if (m->delta->aggregate->rms) /* as a factor of the source: source_rms_back */
        m->ops->add_scaled_rows(T, D, projected_gradient + projected_offset(m, T, rms_block(m)), s,
                                source_gradient);
}
