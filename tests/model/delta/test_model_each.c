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
enum { SUMS = sizeof(struct connection_sums) / sizeof(double) };

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

/* A whole model, this rank's part of it, and what a pass of it sums. */
struct trial {
    struct model_config config;
    struct fixture full;
    struct part part;
    struct edges edges;
    struct connection_sums sums[EDGES];
    int32_t tokens[B * (S + 1)];
    real gradient[T * 24];
    char text[120];
};

static void begin(struct trial *t, const char *what, int kind, int aggregate, bool by_connection, int policy,
                  void (*change)(const struct fixture *)) {
    struct layout layout = divided_layout(by_connection);
    struct recompute policies[LAYERS];
    *t = (struct trial){.config = model_of(kind, aggregate)};
    snprintf(t->text, sizeof t->text, "%skind %d, aggregate %d, %s, level %d", what, kind, aggregate,
             by_connection ? "by connection" : "by channel", policy);
    fixture_policies(policies, LAYERS, policy);
    assert_int_equal(edges_create(&t->config, &t->edges), 0);
    assert_true(t->edges.count <= EDGES);
    fixture_rows(t->tokens, t->config.vocab_size);
    fixture_create(&t->full, &t->config, test_backends()[0], B, S, 3, 0.2);
    if (change) change(&t->full);
    part_create_policies(&t->part, &t->full, &layout, &tensor, NULL, policies, test_backends()[0], B, S);
}

/* Both passes, with sums over all ranks. */
static void run(struct trial *t, const struct loss_options *options, struct delta_watch *watch,
                struct loss_sums *all) {
    struct pass pass = {.rows = t->tokens,
                        .batch = B,
                        .length = S,
                        .options = options,
                        .gradient = t->gradient,
                        .watch = watch,
                        .connections = t->sums};
    model_stage_forward(t->part.model, &pass, all);
    model_stage_backward(t->part.model, &pass, LAYERS, -1, all);
    failures += model_status(t->part.model) != 0;
    MPI_Allreduce(MPI_IN_PLACE, t->sums, SUMS * EDGES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void end(struct trial *t) {
    edges_free(&t->edges);
    part_free(&t->part);
    fixture_free(&t->full);
}

static void check(int kind, int aggregate, bool by_connection, int policy, int active, bool each) {
    static struct trial t;
    struct loss_sums all = {0};
    struct seen seen = {0};
    const bool layer[LAYERS] = {true, true, true, true};
    begin(&t, "", kind, aggregate, by_connection, policy, NULL);
    snprintf(t.text + strlen(t.text), sizeof t.text - strlen(t.text), ", %d active", active);
    struct loss_options o = fixture_options(&t.config, active, false);
    o.measure = true, o.each = each;
    seen.edges = &t.edges;
    seen.counts = by_connection || kind != KIND_ADAPTIVE || tensor.index == 0;
    struct delta_watch watch = {see, &seen, layer};
    double before = model_connection_seconds(t.part.model);
    run(&t, &o, &watch, &all);
    failures += !(model_connection_seconds(t.part.model) > before);
    MPI_Allreduce(MPI_IN_PLACE, seen.gate, EDGES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &all.sparsity, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double contributions = 0;
    for (int e = 0; e < EDGES; e++) {
        bool is = e < t.edges.count && edge_set_has(o.active, e);
        contributions += t.sums[e].contribution;
        compare(t.sums[e].gate, each ? seen.gate[e] : 0, t.text, e, "gate");
        if ((is && each) != (t.sums[e].contribution > 0) || (is && each) != (t.sums[e].gate > 0))
            failures += printf("%s: connection %d of %d %s\n", t.text, e, t.edges.count,
                               is ? "was not measured" : "was measured");
    }
    compare(contributions, each ? all.sparsity : 0, t.text, -1, "contributions");
    end(&t);
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
    static struct trial t;
    struct loss_sums all = {0};
    const double near = sizeof(real) == 8 ? 1e-3 : 0.03;
    double left_out[EDGES], most = 0;
    begin(&t, "effects, ", kind, aggregate, by_connection, policy, shrink);
    struct loss_options o = fixture_options(&t.config, -1, false);
    o.measure = false, o.effects = true;
    run(&t, &o, NULL, &all);
    leave_out(&t.full, &t.edges, t.tokens, left_out);
    for (int e = 0; e < t.edges.count; e++) most = fmax(most, fabs(left_out[e]));
    for (int e = 0; e < t.edges.count; e++)
        if (!edge_set_has(o.active, e) ? t.sums[e].effect != 0
                                       : !(fabs(t.sums[e].effect - left_out[e]) <= near * most))
            failures +=
                printf("%s: connection %d: %.6g, left out %.6g\n", t.text, e, t.sums[e].effect, left_out[e]);
    end(&t);
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
