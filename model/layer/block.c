/* The residual stream as a layer's blocks and the head have it. One stream is read as it is, and what a block
 * computes is added to it. Several (params/stream.h) begin as copies of the embedding's output, a rule
 * between layers says what blocks read of them and how they enter, and the head reads the mean. Over the
 * tensor axis several are kept up in own rows, and what blocks read and add, which is narrower, is what ranks
 * exchange. */
#include "model/layer/stream.h"

static const struct streams *streams_of(const struct model *m) {
    return m->trunk->streams;
}

static long count(const struct model *m) {
    return m->stream / m->config.hidden_size;
}

void begin_block(struct model *m, int l, enum block block, const real *x) {
    if (streams_of(m)) streams_of(m)->begin(m, l, block, x);
}

const real *read_block(struct model *m, int l, enum block block, const real *x) {
    if (!streams_of(m)) return x;
    streams_of(m)->read(m, l, block, x, m->trunk->read);
    return m->trunk->read;
}

void write_block(struct model *m, int l, enum block block, const real *x, const real *f, real *out) {
    if (streams_of(m))
        streams_of(m)->write(m, l, block, x, f, out);
    else
        m->ops->add_to(m->rows * m->stream, x, f, out);
}

void begin_streams(struct model *m, const real *x0, real *x) {
    long D = m->config.hidden_size;
    if (streams_of(m))
        m->ops->streams_spread(m->rows, count(m), D, 1, x0, x);
    else if (x != x0)
        m->ops->copy(m->rows * D, x0, x);
}

const real *read_streams(struct model *m, const real *x) {
    if (!streams_of(m)) return x;
    m->ops->streams_sum(m->rows, count(m), m->config.hidden_size, (real)1 / (real)count(m), x,
                        m->trunk->read);
    return m->trunk->read;
}

const real *write_block_back(struct model *m, int l, enum block block, const real *x) {
    real *added = m->trunk->added;
    if (!streams_of(m)) {
        gradient_full(m);
        return m->g;
    }
    streams_of(m)->write_back(m, l, block, x, own_rows(m, added));
    m->g_full = !m->rows_divided;
    block_full(m, added);
    return added;
}

/* The gradient of a norm's input h, in own rows of `added`. */
static real *norm_back(struct model *m, const real *h, struct tensor norm, const real *rstd, const real *dn) {
    long D = m->config.hidden_size;
    real *dh = own_rows(m, m->trunk->added);
    m->ops->zero(m->rows * D, dh);
    m->ops->rms_norm_back(m->rows, D, h, norm.w, rstd, dn, dh, norm.g);
    return dh;
}

void read_block_back(struct model *m, int l, enum block block, const real *x, struct tensor norm,
                     const real *rstd, const real *dn) {
    if (streams_of(m))
        streams_of(m)->read_back(m, l, block, x, norm_back(m, read_block(m, l, block, x), norm, rstd, dn));
    else
        m->ops->rms_norm_back(m->rows, m->config.hidden_size, x, norm.w, rstd, dn, stream_rows(m, m->g),
                              norm.g);
    m->g_full = !m->rows_divided;
}

void read_streams_back(struct model *m, bool exit, const real *x, struct tensor norm, const real *rstd,
                       const real *dn) {
    long D = m->config.hidden_size;
    if (streams_of(m)) {
        const real *dh = norm_back(m, read_streams(m, x), norm, rstd, dn);
        m->ops->streams_spread(m->rows, count(m), D, (real)1 / (real)count(m), dh, stream_rows(m, m->g));
    } else {
        if (!exit) m->ops->zero(m->T * D, m->g);
        m->ops->rms_norm_back(m->rows, D, x, norm.w, rstd, dn, stream_rows(m, m->g), norm.g);
    }
    m->g_full = !m->rows_divided;
}

const real *begin_streams_back(struct model *m) {
    real *added = m->trunk->added;
    if (!streams_of(m)) {
        gradient_full(m);
        return m->g;
    }
    m->ops->streams_sum(m->rows, count(m), m->config.hidden_size, 1, stream_rows(m, m->g),
                        own_rows(m, added));
    block_full(m, added);
    return added;
}
