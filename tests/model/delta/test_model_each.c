/* Sums of single connections (struct connection_sums): over all of them contributions add up to the sparsity
 * sum, and each one's gates to what a watcher sees of them; only where they are asked for, once a micro-batch
 * whatever is computed again, and of connections that are active. On several tensor ranks each has a part.
 * Runs on any number of ranks that divides 12. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "tests/model/tensor_ranks.h"

enum { B = FIXTURE_BATCH, S = FIXTURE_LENGTH, T = B * S, LAYERS = 4, EDGES = 32 };

static const int aggregates[] = {AGGREGATE_MEAN, AGGREGATE_LEARNED, AGGREGATE_ATTENTION, AGGREGATE_MULTIHEAD};

static struct model_config model_of(int kind, int aggregate) {
    struct model_config c = small_model();
    c.num_layers = LAYERS;
    c.hidden_size = 24;
    c.num_heads = c.num_kv_heads = c.intermediate_size = 12;
    c.delta.embedding_source = true;
    c.delta.hidden = c.delta.gate_hidden = c.delta.attention_heads = 12;
    c.delta.kind = kind;
    c.delta.aggregate = aggregate;
    return c;
}

/* Gates as they are seen, summed by connection. */
struct seen {
    const struct edges *edges;
    bool counts; /* this rank's gates are not the same as another's */
    double gate[EDGES];
};

static void see(void *context, const struct delta_view *view) {
    struct seen *seen = context;
    if (!view->gate || !seen->counts) return;
    for (long t = 0; t < T; t++)
        for (long g = 0; g < view->gates; g++)
            seen->gate[seen->edges->first[view->edge->target] + view->edge->connection] +=
                (double)view->gate[t * view->gate_ld + g];
}

static void compare(double got, double wanted, const char *text, int edge, const char *what) {
    double tolerance = sizeof(real) == 8 ? 1e-12 : 1e-5;
    if (fabs(got - wanted) <= tolerance * (1e-3 + fabs(wanted))) return;
    failures += printf("%s, connection %d: %s %.9g, not %.9g\n", text, edge, what, got, wanted);
}

static void check(int kind, int aggregate, bool by_connection, int policy, int active, bool each) {
    struct model_config c = model_of(kind, aggregate);
    struct fixture full;
    struct part part;
    struct edges edges;
    struct layout layout = divided_layout(by_connection);
    struct recompute policies[LAYERS];
    static int32_t tokens[B * (S + 1)];
    static real gradient[T * 24];
    struct connection_sums sums[EDGES] = {0};
    struct loss_sums all = {0};
    struct seen seen = {0};
    const bool layer[LAYERS] = {true, true, true, true};
    char text[120];
    snprintf(text, sizeof text, "kind %d, aggregate %d, %s, level %d, %d active", kind, aggregate,
             by_connection ? "by connection" : "by channel", policy, active);
    fixture_policies(policies, LAYERS, policy);
    assert_int_equal(edges_create(&c, &edges), 0);
    assert_true(edges.count <= EDGES);
    fixture_rows(tokens, c.vocab_size);
    fixture_create(&full, &c, test_backends()[0], B, S, 3, 0.2);
    part_create_policies(&part, &full, &layout, &tensor, NULL, policies, test_backends()[0], B, S);
    struct loss_options o = fixture_options(&c, active, false);
    o.measure = true, o.each = each;
    seen.edges = &edges;
    seen.counts = by_connection || kind != KIND_ADAPTIVE || tensor.index == 0;
    struct delta_watch watch = {see, &seen, layer};
    struct pass pass = {.rows = tokens,
                        .batch = B,
                        .length = S,
                        .options = &o,
                        .gradient = gradient,
                        .watch = &watch,
                        .connections = sums};
    double before = model_connection_seconds(part.model);
    model_stage_forward(part.model, &pass, &all);
    model_stage_backward(part.model, &pass, LAYERS, -1, &all);
    failures += !(model_connection_seconds(part.model) > before);
    failures += model_status(part.model) != 0;
    MPI_Allreduce(MPI_IN_PLACE, sums, 3 * EDGES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, seen.gate, EDGES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &all.sparsity, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double contributions = 0;
    for (int e = 0; e < EDGES; e++) {
        bool is =
            e < edges.count && edge_set_has(o.active, e);
        contributions += sums[e].contribution;
        compare(sums[e].gate, each ? seen.gate[e] : 0, text, e, "gate");
        if ((is && each) != (sums[e].contribution > 0) || (is && each) != (sums[e].gate > 0))
            failures += printf("%s: connection %d of %d %s\n", text, e, edges.count,
                               is ? "was not measured" : "was measured");
    }
    compare(contributions, each ? all.sparsity : 0, text, -1, "contributions");
    edges_free(&edges);
    part_free(&part);
    fixture_free(&full);
}

static void test_each(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < 4; i++)
            for (int by_connection = 0; by_connection < 2; by_connection++)
                check(kind, aggregates[i], by_connection, (i + by_connection) % 3, i == 1 ? 2 : 3, true);
    check(KIND_BOTTLENECK, AGGREGATE_MEAN, false, 0, 3, false);
    no_failures();
}

/* ------------------------------------------------------------------------------------------- effects */

/* Makes contributions small, so that what is left out of second order is. */
static void shrink(const struct fixture *full) {
    const double by = sizeof(real) == 8 ? 1e-4 : 0.03;
    for (int i = 0; i < full->table.rows; i++) {
        const struct row *row = &full->table.row[i];
        if (!strstr(row->name, ".mix") && !strstr(row->name, ".output_proj.weight")) continue;
        for (long k = 0; k < row->count; k++) full->state.weight[row->offset + k] *= (real)by;
    }

}

/* The loss without each connection less that with all. */
static void leave_out(struct fixture *full, const struct edges *edges, const int32_t *tokens, double *out) {
    struct loss_options o = fixture_options(&full->config, -1, false);
    struct loss_sums sums;
    const struct edge_set *active = o.active;
    const double all = fixture_loss(full, tokens, B, S, &o, false, &sums);
    for (int e = 0; e < edges->count; e++) {
        bool has[EDGES];
        struct edge_set without;
        for (int i = 0; i < edges->count; i++) has[i] = i != e && edge_set_has(active, i);
        assert_int_equal(edge_set_create(edges, has, &without), 0);
        o.active = &without;
        out[e] = fixture_loss(full, tokens, B, S, &o, false, &sums) - all;
        edge_set_free(&without);
    }
}

/* By first order as by leaving out one after the other, with shares of the others made anew. */
static void check_effects(int kind, int aggregate, bool by_connection, int policy) {
    struct model_config c = model_of(kind, aggregate);
    struct fixture full;
    struct part part;
    struct edges edges;
    struct layout layout = divided_layout(by_connection);
    struct recompute policies[LAYERS];
    static int32_t tokens[B * (S + 1)];
    static real gradient[T * 24];
    struct connection_sums sums[EDGES] = {0};
    struct loss_sums all = {0};
    double left_out[EDGES], most = 0;
    char text[120];
    snprintf(text, sizeof text, "effects, kind %d, aggregate %d, %s, level %d", kind, aggregate,
             by_connection ? "by connection" : "by channel", policy);
    fixture_policies(policies, LAYERS, policy);
    assert_int_equal(edges_create(&c, &edges), 0);
    fixture_rows(tokens, c.vocab_size);
    fixture_create(&full, &c, test_backends()[0], B, S, 3, 0.2);
    shrink(&full);
    part_create_policies(&part, &full, &layout, &tensor, NULL, policies, test_backends()[0], B, S);
    struct loss_options o = fixture_options(&c, -1, false);
    o.measure = false, o.effects = true;
    struct pass pass = {
        .rows = tokens, .batch = B, .length = S, .options = &o, .gradient = gradient, .connections = sums};
    model_stage_forward(part.model, &pass, &all);
    model_stage_backward(part.model, &pass, LAYERS, -1, &all);
    failures += model_status(part.model) != 0;
    MPI_Allreduce(MPI_IN_PLACE, sums, 3 * EDGES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    leave_out(&full, &edges, tokens, left_out);
    for (int e = 0; e < edges.count; e++) most = fmax(most, fabs(left_out[e]));
    for (int e = 0; e < edges.count; e++)
        if (!edge_set_has(o.active, e) ? sums[e].effect != 0
                                       : !(fabs(sums[e].effect - left_out[e]) <= (sizeof(real) == 8 ? 1e-3 : 0.03) * most))
            failures += printf("%s: connection %d: %.6g, left out %.6g\n", text, e, sums[e].effect, left_out[e]);
    edges_free(&edges);
    part_free(&part);
    fixture_free(&full);
}

static void test_effects(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < 4; i++)
            for (int by_connection = 0; by_connection < 2; by_connection++)
                check_effects(kind, aggregates[i], by_connection, (i + by_connection) % 3);
    no_failures();
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each), cmocka_unit_test(test_effects)};
    return run_on_ranks(tests, tensor_create, tensor_free);
}
