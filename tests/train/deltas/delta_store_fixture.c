#include "tests/train/deltas/delta_store_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/rules/rules.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"
#include "train/deltas/gates.h"

static const char base[] = "model:\n"
                           "  vocab_size: 257\n"
                           "  hidden_size: 24\n"
                           "  num_layers: 4\n"
                           "  num_heads: 2\n"
                           "  intermediate_size: 48\n"
                           "  delta: {distances: [1, 2], hidden: 8, gate_hidden: 4}\n"
                           "train: {steps: 100, batch_size: 2, sequence_length: 20}\n"
                           "delta_store: {interval: 5, ratio: 0.25}\n";

void create(struct fixture *f, char *first, char *second) {
    char *set[] = {first, second};
    gdn_failure_clear();
    *f = (struct fixture){.layout = layout_full(), .mesh = mesh_alone()};
    assert_int_equal(config_parse(base, "test", set, (first != NULL) + (second != NULL), &f->config), 0);
    assert_int_equal(edges_create(&f->config.model, &f->edges), 0);
    f->place = (struct delta_place){.config = &f->config,
                                    .layout = &f->layout,
                                    .edges = &f->edges,
                                    .ops = ops_find("cpu"),
                                    .mesh = &f->mesh,
                                    .batch = B,
                                    .directory = scratch()};
    f->memory = delta_store_memory(&f->place, 0, 0);
    assert_int_equal(delta_store_create(&f->place, &f->store), 0);
}

void destroy(struct fixture *f) {
    delta_store_free(f->store);
    for (int a = 0; a <= MAX_DISTANCES; a++) edge_set_free(&f->active[a]);
    edges_free(&f->edges);
    config_free(&f->config);
}

static real difference[T * D], gate[T * LD];

/* A matrix whose singular values fall quickly; edge by edge another. */
static void make_difference(const struct edge *edge) {
    uint64_t what = (uint64_t)(edge->target * 10 + edge->distance);
    for (long t = 0; t < T; t++)
        for (long i = 0; i < D; i++) {
            double sum = 0;
            for (uint64_t k = 0; k < D; k++)
                sum += exp(-(double)(DECAY * k) / 10) * random_normal(1, what, (uint64_t)t * D + k) *
                       random_normal(2, what, (uint64_t)i * D + k);
            difference[t * D + i] = (real)sum;
        }
    for (long t = 0; t < T; t++)
        for (long i = 0; i < LD; i++)
            gate[t * LD + i] = i < GATES ? (real)random_uniform(3, what, (uint64_t)(t * LD + i))
                                         : (real)1e6; /* a neighbour's */
}

static void show(const struct delta_watch *watch, const struct edge *edge, enum fault fault) {
    make_difference(edge);
    if (fault == NAN_DIFFERENCE) difference[T * D - 1] = NAN;
    if (fault == INFINITE_DIFFERENCE) difference[0] = -INFINITY;
    if (fault == NAN_GATE) gate[LD + 3] = NAN;
    const struct delta_view view = {.edge = edge,
                                    .batch = B,
                                    .length = S,
                                    .D = D,
                                    .difference = difference,
                                    .gate = gate,
                                    .gates = GATES,
                                    .gate_ld = LD};
    watch->see(watch->context, &view);
}

const struct edge_set *active_at(struct fixture *f, int64_t step) {
    int active = active_distances(&f->config.model.delta, (long)step);
    if (!f->active[active].has) assert_int_equal(edges_introduced(&f->edges, active, &f->active[active]), 0);
    return &f->active[active];
}

void pass(struct fixture *f, const struct delta_watch *watch, int64_t step, int faulty, enum fault fault) {
    const struct edge_set *active = active_at(f, step);
    for (int e = 0; e < f->edges.count; e++)
        if (edge_set_has(active, e) && watch->layer[f->edges.edge[e].target])
            show(watch, &f->edges.edge[e], e == faulty ? fault : NOTHING);
}

struct delta_report store(struct fixture *f, int64_t step, int faulty, enum fault fault) {
    struct delta_report report;
    const struct delta_watch *watch = delta_store_begin(f->store, step, active_at(f, step));
    assert_non_null(watch);
    pass(f, watch, step, faulty, fault);
    assert_int_equal(delta_store_poll(f->store, true, &report), 0);
    assert_true(report.done);
    assert_int_equal(report.step, step);
    assert_string_equal(gdn_failure(), "");
    return report;
}

static void check_gates(const struct delta_record *r) {
    double mean = 0, squares = 0, min = 1, max = 0;
    int64_t bin[DELTA_BINS] = {0};
    for (long t = 0; t < T; t++)
        for (long i = 0; i < GATES; i++) {
            double g = gate[t * LD + i];
            mean += g / (T * GATES);
            min = fmin(min, g), max = fmax(max, g);
            bin[(int)floor(32 * g)]++;
        }
    for (long t = 0; t < T; t++)
        for (long i = 0; i < GATES; i++) squares += (gate[t * LD + i] - mean) * (gate[t * LD + i] - mean);
    /* Doubles added up in another order: 320 of them, each rounding by 1e-16. */
    assert_float_equal(r->gate_mean, mean, 1e-13);
    assert_float_equal(r->gate_deviation, sqrt(squares / (T * GATES)), 1e-13);
    assert_true(r->gate_least == min && r->gate_most == max);
    assert_memory_equal(bin, r->gate_histogram, sizeof bin);
}

/* That the factors miss as much of the difference as they say. */
static void check_factors(const struct factors *f) {
    double norm = 0, missed = 0;
    for (long t = 0; t < T; t++)
        for (long i = 0; i < D; i++) {
            double x = difference[t * D + i], sum = 0;
            for (long k = 0; k < f->rank; k++)
                sum += (double)f->u[t * f->rank + k] * f->sigma[k] * f->vt[k * D + i];
            norm += x * x, missed += (x - sum) * (x - sum);
        }
    /* Rounding of the numbers themselves, the sums here being in doubles. */
    double rounding = sizeof(real) == sizeof(float) ? 1e-6 : 1e-14;
    assert_float_equal(f->norm, sqrt(norm), 10 * rounding * sqrt(norm));
    assert_float_equal(f->error, sqrt(missed / norm), rounding);
}

struct delta_list listed(void) {
    struct delta_list list;
    assert_int_equal(delta_list_open(scratch(), &list), 0);
    return list;
}

const struct delta_entry *find(const struct delta_list *list, int64_t step, const struct edge *edge) {
    for (int i = 0; i < list->count; i++) {
        const struct delta_entry *entry = &list->entry[i];
        if (entry->step == step && entry->layer == edge->target && entry->distance == edge->distance)
            return entry;
    }
    return NULL;
}

long check_stored(const struct delta_list *list, int64_t step, const struct edge *edge) {
    struct delta_record record;
    const struct delta_entry *entry = find(list, step, edge);
    assert_non_null(entry);
    assert_int_equal(delta_record_read(entry, &record), 0);
    make_difference(edge);
    assert_int_equal(record.source, edge->source);
    assert_int_equal(record.batch, B);
    assert_int_equal(record.length, S);
    check_gates(&record);
    check_factors(&record.factors);
    long rank = record.factors.rank;
    delta_record_free(&record);
    return rank;
}

int remove_files(void **state) {
    (void)state;
    char command[SCRATCH_LONGEST + 40];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch_path("deltas"));
    return system(command);
}
