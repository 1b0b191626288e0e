#include "model/table/flops.h"
#include "kernels/base/status.h"
#include "model/delta/gate.h"
#include "model/mixer/mixer.h"
#include "model/params/edges.h"

/* Of one connection, per token, forward: its matrix products in the direct form. */
static double connection_flops(const struct model_config *m) {
    const struct delta_config *d = &m->delta;
    double D = m->hidden_size, flops = gate_of(m)->flops(m);
    if (d->aggregate == AGGREGATE_ATTENTION) flops += 2 * D * d->attention_dim;
    if (d->aggregate == AGGREGATE_MULTIHEAD) flops += 2 * D * D;
    return flops;
}

/* Of layer l with n active connections into it. */
static double layer_flops(const struct model_config *m, int l, long length, int n) {
    double D = m->hidden_size, F = m->intermediate_size;
    double flops = mixer_of(m, l)->flops(m, length) + 2 * 3 * D * F + n * connection_flops(m);
    if (n && m->delta.aggregate == AGGREGATE_ATTENTION) flops += 2 * D * m->delta.attention_dim;
    if (n && m->delta.aggregate == AGGREGATE_MULTIHEAD) flops += 2 * D * D;
    return flops;
}

int model_layer_flops(const struct model_config *m, long length, int active, double *out) {
    struct edges edges;
    TRY(edges_create(m, &edges));
    for (int l = 0; l < m->num_layers; l++)
        out[l] = layer_flops(m, l, length, active_edges(&edges, l, active));
    edges_free(&edges);
    return 0;
}

double model_head_flops(const struct model_config *m) {
    return 2.0 * m->hidden_size * m->vocab_size;
}

double model_flops_per_token(const struct model_config *m, long length, int active) {
    double forward = model_head_flops(m);
    struct edges edges;
    bool known = !edges_create(m, &edges);
    for (int l = 0; l < m->num_layers; l++)
        forward += layer_flops(m, l, length, known ? active_edges(&edges, l, active) : 0);
    if (known) edges_free(&edges);
    return 3 * forward; /* the backward pass computes each product twice, once for either factor */
}
