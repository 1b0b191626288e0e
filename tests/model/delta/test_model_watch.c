/* What a watcher sees of a layer's connections is what the layer used: from the differences, the gates and
 * the weights alone the layer's output is put together again, in plain C, and compared with the model's. On
 * several tensor ranks each adds what its own gates let through. Runs on any number of ranks that divides
 * 12. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "tests/model/tensor_ranks.h"

enum { B = FIXTURE_BATCH, S = FIXTURE_LENGTH, T = B * S, LAYERS = 5, D = 24, Hd = 12, G = 12 };

static struct model_config model_of(int kind) {
    struct model_config c = small_model();
    c.num_layers = LAYERS;
    c.hidden_size = D;
    c.num_heads = c.num_kv_heads = c.intermediate_size = 12;
    c.delta.embedding_source = true;
    c.delta.hidden = Hd;
    c.delta.gate_hidden = G;
    c.delta.kind = kind; /* with the aggregate `learned`, contributions are summed by their `mix` */
    return c;
}

/* What has been seen. */
struct seen {
    const struct fixture *full;
    const struct part *part;
    bool channels;                /* each rank has a part of every connection's channels */
    int calls, layer, connection; /* of the last call */
    double sum[LAYERS][T * D];    /* the contributions into each layer, by this rank's gates */
    double target[LAYERS][T * D]; /* δ + s */
    int watched[LAYERS];          /* connections */
};

/* Element (out, in) of a connection's tensor; 1 where a kind has no such tensor. */
static double weight(const struct seen *seen, const struct edge *edge, const char *leaf, long out, long in) {
    char name[96];
    snprintf(name, sizeof name, "layers.%d.delta.%d.%s", edge->target, edge->distance, leaf);
    const struct row *row = params_find(&seen->full->table, name);
    if (!row) return 1;
    long place = row->transposed ? in * row->shape[0] + out : out * row->shape[1] + in;
    return (double)seen->full->state.weight[row->offset + place];
}

/* One token's contribution, by the gates that this rank has. */
static void contribute(const struct seen *seen, const struct delta_view *view, long t, double *sum) {
    const struct edge *edge = view->edge;
    const real *delta = view->difference + t * D, *gate = view->gate + t * view->gate_ld;
    int kind = seen->full->config.delta.kind;
    long first = seen->channels && kind != KIND_ADAPTIVE ? tensor.index * view->gates : 0;
    if (kind == KIND_ADAPTIVE && seen->channels && tensor.index > 0) return; /* all ranks have the same */
    for (long g = 0; g < view->gates; g++) {
        long channel = first + g;
        if (kind == KIND_BOTTLENECK) {
            double u = 0;
            for (long j = 0; j < D; j++)
                u += weight(seen, edge, "delta_proj.weight", channel, j) * (double)delta[j];
            for (long j = 0; j < D; j++)
                sum[j] +=
                    weight(seen, edge, "output_proj.weight", j, channel) * u * (double)gate[g] * edge->scale;
        } else {
            long wide = kind == KIND_FULL ? 1 : D / G;
            double scale = kind == KIND_FULL ? 1 : edge->scale;
            for (long j = channel * wide; j < (channel + 1) * wide; j++)
                sum[j] += (double)delta[j] * (double)gate[g] * scale;
        }
    }
}

static void see(void *context, const struct delta_view *view) {
    struct seen *seen = context;
    const struct edge *edge = view->edge;
    const real *source = model_output(seen->part->model, 0, 0, edge->source);
    bool next = edge->target > seen->layer ||
                (edge->target == seen->layer && edge->connection > seen->connection);
    int n = seen->watched[edge->target]++;
    seen->calls++, seen->layer = edge->target, seen->connection = edge->connection;
    failures += !next || view->batch != B || view->length != S || view->D != D;
    failures += seen->channels ? !view->gate : !view->gate != (edge->connection % tensor.size != tensor.index);
    for (long i = 0; i < T * D; i++) {
        double target = (double)view->difference[i] + (double)source[i];
        if (!n) seen->target[edge->target][i] = target;
        if (fabs(target - seen->target[edge->target][i]) > 1e-6 * (1 + fabs(target))) failures++;
    }
    for (long t = 0; view->gate && t < T; t++) {
        double sum[D] = {0};
        contribute(seen, view, t, sum);
        for (long j = 0; j < D; j++)
            seen->sum[edge->target][t * D + j] += weight(seen, edge, "mix", 0, 0) * sum[j];
    }
}

/* The output, in this rank's own rows, is what came in and all contributions, to rounding: a few dozen
 * additions of numbers of order one. */
static void compare(struct seen *seen, const bool *layer, const char *what) {
    double tolerance = sizeof(real) == 8 ? 1e-13 : 2e-5;
    for (int l = 0; l < LAYERS; l++) {
        long rows;
        const real *z = model_output_rows(seen->part->model, 0, 0, l, T, &rows);
        MPI_Allreduce(MPI_IN_PLACE, seen->sum[l], T * D, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (!layer[l]) {
            failures += seen->watched[l] ? printf("%s: layer %d was watched\n", what, l) : 0;
            continue;
        }
        long first = rows < T ? axis_first_row(&tensor, T, tensor.index) : 0;
        for (long i = 0; i < rows * D; i++) {
            double own = seen->target[l][first * D + i] + seen->sum[l][first * D + i];
            if (fabs(own - (double)z[i]) <= tolerance * (1 + fabs(own))) continue;
            failures += printf("%s: output %ld of layer %d is %g, of what was seen %g\n", what, i, l,
                               (double)z[i], own);
            return;
        }
    }
}

static void check(int kind, bool by_connection, bool rows, const struct recompute *policies, int active) {
    struct model_config c = model_of(kind);
    struct fixture full;
    struct part part;
    struct loss_sums sums = {0};
    struct layout layout = divided_layout((by_connection ? 1 : 0) | (rows ? 2 : 0));
    struct loss_options o = fixture_options(&c, active, kind == 1);
    static int32_t tokens[B * (S + 1)];
    static real gradient[T * D];
    static struct seen seen;
    const bool layer[LAYERS] = {true, false, true, true, true};
    char text[100];
    snprintf(text, sizeof text, "kind %d, %s, %s, %d active", kind,
             by_connection ? "by connection" : "by channel", rows ? "rows divided" : "rows whole", active);
    fixture_rows(tokens, c.vocab_size);
    fixture_create(&full, &c, test_backends()[0], B, S, 3, 0.2);
    part_create_policies(&part, &full, &layout, &tensor, NULL, policies, test_backends()[0], B, S);
    seen = (struct seen){
        .full = &full, .part = &part, .channels = !by_connection || tensor.size == 1, .layer = -1};
    struct delta_watch watch = {see, &seen, layer};
    struct pass pass = {
        .rows = tokens, .batch = B, .length = S, .options = &o, .gradient = gradient, .watch = &watch};
    model_stage_forward(part.model, &pass, &sums);
    int calls = seen.calls, wanted = 0;
    struct edges edges;
    assert_int_equal(edges_create(&c, &edges), 0);
    for (int e = 0; e < edges.count; e++) wanted += layer[edges.edge[e].target] && edge_set_has(o.active, e);
    edges_free(&edges);
    compare(&seen, layer, text);
    model_stage_backward(part.model, &pass, LAYERS, -1, &sums);
    if (calls != wanted || seen.calls != calls)
        failures += printf("%s: %d calls, %d expected, and %d more on the way back\n", text, calls, wanted,
                           seen.calls - calls);
    failures += model_status(part.model) != 0;
    part_free(&part);
    fixture_free(&full);
}

static void test_seen(void **state) {
    (void)state;
    struct recompute policies[LAYERS];
    for (int kind = 0; kind < 3; kind++)
        for (int way = 0; way < 4; way++)
            for (int policy = 0; policy < 3; policy++) {
                fixture_policies(policies, LAYERS, policy);
                check(kind, way & 1, way & 2, policies, policy == 1 ? 2 : 3);
            }
    no_failures();
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_seen)};
    return run_on_ranks(tests, tensor_create, tensor_free);
}
