#include "model/params.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "model/edges.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every group of tensors that one GEMM reads starts on a cache line; within a group they are neighbours. */
enum { GROUP_ALIGNMENT = 16 };

struct builder {
    struct table *table;
    int capacity;
    int layer, distance; /* of the rows that follow */
    bool failed;
};

static void start_group(struct builder *b) {
    b->table->total = (b->table->total + GROUP_ALIGNMENT - 1) / GROUP_ALIGNMENT * GROUP_ALIGNMENT;
}

static struct row *add(struct builder *b, enum split split, long out, long in, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Adds one row; in = 0 makes it one-dimensional. */
static struct row *add(struct builder *b, enum split split, long out, long in, const char *format, ...) {
    static struct row nowhere;
    struct table *t = b->table;
    if (t->rows == b->capacity) {
        int capacity = b->capacity ? 2 * b->capacity : 64;
        struct row *grown = realloc(t->row, (size_t)capacity * sizeof *grown);
        if (!grown) {
            b->failed = true;
            return &nowhere;
        }
        t->row = grown;
        b->capacity = capacity;
    }
    struct row *row = &t->row[t->rows++];
    *row = (struct row){.ndim = in ? 2 : 1,
                        .shape = {out, in ? in : 1},
                        .split = split,
                        .decay = in != 0,
                        .layer = b->layer,
                        .distance = b->distance,
                        .offset = t->total,
                        .count = out * (in ? in : 1)};
    t->total += row->count;
    va_list list;
    va_start(list, format);
    int used = row->layer >= 0 ? snprintf(row->name, sizeof row->name, "layers.%d.", row->layer) : 0;
    if (row->distance)
        used += snprintf(row->name + used, sizeof row->name - (size_t)used, "delta.%d.", row->distance);
    vsnprintf(row->name + used, sizeof row->name - (size_t)used, format, list);
    va_end(list);
    return row;
}

/* One tensor of every connection into the layer, neighbours in memory: a stack that one GEMM reads. */
static void add_stack(struct builder *b, const struct edge *edge, int n, enum split split, long out, long in,
                      bool transposed, const char *leaf) {
    start_group(b);
    for (int i = 0; i < n; i++) {
        b->distance = edge[i].distance;
        add(b, split, out, in, "%s", leaf)->transposed = transposed;
    }
    b->distance = 0;
}

static void add_connections(struct builder *b, const struct model_config *m, const struct edge *edge, int n) {
    const struct delta_config *c = &m->delta;
    long D = m->hidden_size, G = c->gate_hidden, Hd = c->hidden;
    if (c->kind == KIND_BOTTLENECK) {
        add_stack(b, edge, n, SPLIT_ROWS, Hd, D, false, "delta_proj.weight");
        add_stack(b, edge, n, SPLIT_NONE, G, D, false, "gate_in.weight");
        add_stack(b, edge, n, SPLIT_NONE, G, 0, false, "gate_in.bias");
        add_stack(b, edge, n, SPLIT_ROWS, Hd, G, false, "gate_out.weight");
        add_stack(b, edge, n, SPLIT_ROWS, Hd, 0, false, "gate_out.bias");
        add_stack(b, edge, n, SPLIT_COLUMNS, D, Hd, true, "output_proj.weight"); /* [n·Hd, D] in memory */
    } else if (c->kind == KIND_FULL) {
        add_stack(b, edge, n, SPLIT_ROWS, D, D, false, "gate.weight");
    } else {
        add_stack(b, edge, n, SPLIT_NONE, G, D, false, "context_proj.weight");
        add_stack(b, edge, n, SPLIT_NONE, G, G + 1, false, "gate_in.weight");
        add_stack(b, edge, n, SPLIT_NONE, G, 0, false, "gate_in.bias");
        add_stack(b, edge, n, SPLIT_NONE, G, G, false, "gate_out.weight");
        add_stack(b, edge, n, SPLIT_NONE, G, 0, false, "gate_out.bias");
    }
    if (c->normalize) add_stack(b, edge, n, SPLIT_NONE, 1, 0, false, "scale");
    if (c->aggregate == AGGREGATE_LEARNED || c->kind != KIND_BOTTLENECK)
        add_stack(b, edge, n, SPLIT_NONE, 1, 0, false, "mix");
    start_group(b);
    if (c->aggregate == AGGREGATE_ATTENTION)
        add(b, SPLIT_NONE, c->attention_dim, D, "delta.select.weight")->select = true;
    if (c->aggregate == AGGREGATE_MULTIHEAD) {
        add(b, SPLIT_ROWS, D, D, "delta.query.weight")->select = true;
        add(b, SPLIT_ROWS, D, D, "delta.key.weight")->select = true;
    }
}

static void add_layer(struct builder *b, const struct model_config *m, const struct edges *edges, int layer) {
    long D = m->hidden_size, F = m->intermediate_size, kv = D / m->num_heads * m->num_kv_heads;
    b->layer = layer;
    start_group(b);
    add(b, SPLIT_NONE, D, 0, "input_layernorm.weight");
    start_group(b);
    add(b, SPLIT_ROWS, D, D, "self_attn.q_proj.weight"); /* q, k, v: one GEMM */
    add(b, SPLIT_ROWS, kv, D, "self_attn.k_proj.weight");
    add(b, SPLIT_ROWS, kv, D, "self_attn.v_proj.weight");
    start_group(b);
    add(b, SPLIT_COLUMNS, D, D, "self_attn.o_proj.weight");
    start_group(b);
    add(b, SPLIT_NONE, D, 0, "post_attention_layernorm.weight");
    start_group(b);
    add(b, SPLIT_ROWS, F, D, "mlp.gate_proj.weight"); /* gate, up: one GEMM */
    add(b, SPLIT_ROWS, F, D, "mlp.up_proj.weight");
    start_group(b);
    add(b, SPLIT_COLUMNS, D, F, "mlp.down_proj.weight");
    int n = edges->first[layer + 1] - edges->first[layer];
    if (n) add_connections(b, m, &edges->edge[edges->first[layer]], n);
    b->layer = -1;
}

int params_create(const struct model_config *model, struct table *out) {
    struct edges edges;
    TRY(edges_create(model, &edges));
    *out = (struct table){0};
    struct builder b = {.table = out, .layer = -1};
    add(&b, SPLIT_ROWS, model->vocab_size, model->hidden_size, "embed_tokens.weight");
    for (int layer = 0; layer < model->num_layers; layer++) add_layer(&b, model, &edges, layer);
    start_group(&b);
    add(&b, SPLIT_NONE, model->hidden_size, 0, "norm.weight");
    start_group(&b);
    if (!model->tie_embeddings) add(&b, SPLIT_ROWS, model->vocab_size, model->hidden_size, "lm_head.weight");
    start_group(&b);
    edges_free(&edges);
    if (!b.failed) return 0;
    params_free(out);
    return gdn_fail(GDN_INTERNAL, "out of memory for the parameter table of %d layers", model->num_layers);
}

void params_free(struct table *table) {
    free(table->row);
    *table = (struct table){0};
}

const struct row *params_find(const struct table *table, const char *name) {
    for (int i = 0; i < table->rows; i++)
        if (!strcmp(table->row[i].name, name)) return &table->row[i];
    return NULL;
}

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), e = strlen(end);
    return n >= e && !strcmp(name + n - e, end);
}

/* How a tensor starts: the same number everywhere, or a normal distribution of this width (model.md, 7). */
static double initial_constant(const struct model_config *model, const struct row *row, double *width) {
    const char *name = row->name;
    *width = 0;
    if (ends_with(name, "norm.weight")) return 1;
    if (ends_with(name, ".bias")) return 0;
    if (ends_with(name, ".mix")) return model->delta.kind == KIND_BOTTLENECK ? 1 : 0;
    if (ends_with(name, ".scale")) return sqrt(model->hidden_size);
    if (ends_with(name, ".output_proj.weight")) return 0;
    *width = 0.02;
    if (ends_with(name, ".o_proj.weight") || ends_with(name, ".down_proj.weight"))
        *width /= sqrt(2.0 * model->num_layers);
    return 0;
}

void params_init(const struct model_config *model, const struct row *row, uint64_t seed, real *weight) {
    double width, constant = initial_constant(model, row, &width);
    uint64_t what = random_name(row->name);
    for (long i = 0; i < row->shape[0]; i++)
        for (long j = 0; j < row->shape[1]; j++) {
            uint64_t element =
                (uint64_t)(i * row->shape[1] + j); /* in the order on disk, whatever memory's is */
            double w = width ? width * random_normal(seed, what, element) : constant;
            weight[row->transposed ? j * row->shape[0] + i : (long)element] =
                (real)(float)w; /* float32 also in a
                  double build: the same model */
        }
}

bool params_active(const struct model_config *model, const struct row *row, int active) {
    const struct delta_config *delta = &model->delta;
    if (row->select) return active > 0;
    if (!row->distance) return true;
    for (int i = 0; i < active && i < delta->num_distances; i++)
        if (delta->distances[i] == row->distance) return true;
    return false;
}
