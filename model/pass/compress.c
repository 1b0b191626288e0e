/* Keeps sources as low-rank factors between their forward and their backward pass
 * (model_part.compress_sources). A node's full output is there while a layer of the chunk reads it
 * (nodes.c). In between an activation set keeps factors q [T, k] and b [k, W] (lowrank.h). Their product
 * (with train.residual bf16 rounded, as outputs are) differs slightly from the output, and the backward pass
 * is that of the product. Nodes that other chunks read, and outputs that no connection reads, are kept as
 * without factors. */
#include "kernels/base/status.h"
#include "kernels/backends/backends.h"
#include "model/pass/private.h"

static long factors_of(const struct model *m, long T) {
    return lowrank_of_ratio(T * m->context->size, m->stream, m->compress);
}

static const struct lowrank_peers *peers_of(const struct model *m) {
    return m->passes->peers.size ? &m->passes->peers : NULL;
}

int reserve_split_sums(struct model *m) {
    struct pass_state *p = m->passes;
    const long T = m->batch * m->length;
    if (!peers_of(m)) return 0;
    return axis_host_create(
        m->context, lowrank_split_longest(m->context->size, T, m->stream, factors_of(m, T)), &p->host_sums);
}

void lay_out_split(struct model *m, long T) {
    long W = m->stream, k = factors_of(m, T);
    bool host = m->ops->device->host;
    if (m->context->size > 1)
        m->passes->peers = (struct lowrank_peers){.size = m->context->size,
                                                  .index = m->context->index,
                                                  .with = &m->passes->host_sums,
                                                  .sum = axis_host_sum,
                                                  .gather = axis_host_gather_columns};
    lowrank_lay_out_divided(&m->passes->lowrank, host ? &m->scratch : &m->staging, ops_on_host(m->ops), T, W,
                            k, peers_of(m));
    if (host) return;
    m->passes->split_x = take(&m->staging, T * W);
    m->passes->split_q = take(&m->staging, T * k);
    m->passes->split_b = take(&m->staging, k * W);
}

void lay_out_factors(struct model *m, struct kept_output *kept, long T) {
    long W = m->stream, k = factors_of(m, T);
    kept->q = take(&m->nodes, T * k);
    kept->b = take(&m->nodes, k * W);
}

/* An orthonormal basis of k vectors of that length by LAPACK, which a planned model cannot call: 4nk² −
 * 4k³/3. */
static void count_basis(const struct model *m, long length, long k) {
    m->ops->gemm('N', 'N', k, k, 2 * length - 2 * k / 3, 1, NULL, k, NULL, k, 0, NULL, k);
}

/* One of the sketch, whose columns context ranks may have divided: each first its own, as far as there are k
 * of them, and all wait for the first one's of what is left. */
static void count_sketch_basis(const struct model *m, long T, long k) {
    const bool divided = peers_of(m), enough = T >= k;
    if (!divided || enough) count_basis(m, T, k);
    if (!divided) return;
    count_basis(m, m->context->size * (enough ? k : T), k);
    if (enough) m->ops->gemm('N', 'N', k, T, k, 1, NULL, k, NULL, T, 0, NULL, T);
}

/* The arithmetic of lowrank_split, four products with x and three bases, and what it hands over. */
static void count_split(struct model *m, long k) {
    long T = m->T, W = m->stream;
    for (int product = 0; product < 4; product++)
        m->ops->gemm('N', 'N', T, k, W, 1, NULL, W, NULL, k, 0, NULL, k);
    for (int i = 0; i < 2; i++) count_sketch_basis(m, T, k);
    count_basis(m, W, k);
    lowrank_split_planned(peers_of(m), T, W, k);
}

/* All rows, where only own ones are because no active connection reads the node. */
static void complete(struct model *m, int node) {
    if (m->rows_divided && !node_is_read(m, node)) stream_full(m, node_output(m, node));
}

/* Factors are made on the host, which a node on a device visits for that. */
static void split(struct model *m, int node, long k) {
    const struct kept_output *kept = &m->activation_set->kept[1 + node];
    const struct device *device = m->ops->device;
    long T = m->T, W = m->stream;
    if (device->host) {
        lowrank_split(&m->passes->lowrank, T, W, node_output(m, node), k, (uint64_t)node, kept->q, kept->b);
        return;
    }
    device->download(m->passes->split_x, node_output(m, node), (size_t)(T * W) * sizeof(real));
    lowrank_split(&m->passes->lowrank, T, W, m->passes->split_x, k, (uint64_t)node, m->passes->split_q,
                  m->passes->split_b);
    device->upload(kept->q, m->passes->split_q, (size_t)(T * k) * sizeof(real));
    device->upload(kept->b, m->passes->split_b, (size_t)(k * W) * sizeof(real));
}

void compress_sources(struct model *m, int layer) {
    long k = factors_of(m, m->T);
    if (!(m->compress > 0) || !m->gradients) return;
    for (int node = m->span.first; node < layer; node++) {
        const struct kept_output *kept = &m->activation_set->kept[1 + node];
        if (!kept->q || kept->top != layer) continue;
        complete(m, node);
        if (m->planned)
            count_split(m, k);
        else
            split(m, node, k);
    }
}

void decompress_sources(struct model *m, int layer) {
    long T = m->T, W = m->stream, k = factors_of(m, T);
    if (!(m->compress > 0)) return;
    for (int node = m->span.first; node < layer; node++) {
        const struct kept_output *kept = &m->activation_set->kept[1 + node];
        if (!kept->q || kept->top != layer) continue;
        lowrank_join(m->ops, T, W, k, kept->q, kept->b, node_output(m, node));
        if (m->bf16_stream) m->ops->round_bf16(T * W, node_output(m, node));
    }
    rules_renew(m, layer);
}
