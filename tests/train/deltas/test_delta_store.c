/* A store of differences on one rank, shown made-up connections. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/backends/backends.h"
#include "tests/train/deltas/disk.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "tests/support/unit.h"
#include "train/deltas/file.h"
#include "train/deltas/gates.h"
#include "train/deltas/delta_store_private.h"

static const char base[] = "model:\n"
                           "  vocab_size: 257\n"
                           "  hidden_size: 24\n"
                           "  num_layers: 4\n"
                           "  num_heads: 2\n"
                           "  intermediate_size: 48\n"
                           "  delta: {distances: [1, 2], hidden: 8, gate_hidden: 4}\n"
                           "train: {steps: 100, batch_size: 2, sequence_length: 20}\n"
                           "delta_store: {interval: 5, ratio: 0.25}\n";

enum { B = 2, S = 20, T = B * S, D = 24, GATES = 8, LD = 11, DECAY = 5 };

static char directory[] = "/tmp/gdn-delta-store-XXXXXX";

static int make_directory(void **state) {
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

/* A store, and what it stands on. */
struct fixture {
    struct config config;
    struct layout layout;
    struct edges edges;
    struct mesh mesh;
    struct delta_place place;
    struct delta_store *store;
    long memory; /* as planned */
};

static void create(struct fixture *f, char *first, char *second) {
    char *set[] = {first, second};
    gdn_failure_clear();
    *f = (struct fixture){.layout = layout_whole(), .mesh = mesh_alone()};
    assert_int_equal(config_parse(base, "test", set, (first != NULL) + (second != NULL), &f->config), 0);
    assert_int_equal(edges_create(&f->config.model, &f->edges), 0);
    f->place = (struct delta_place){.config = &f->config,
                                    .layout = &f->layout,
                                    .edges = &f->edges,
                                    .ops = ops_find("cpu"),
                                    .mesh = &f->mesh,
                                    .batch = B,
                                    .directory = directory};
    f->memory = delta_store_memory(&f->place, 0);
    assert_int_equal(delta_store_create(&f->place, &f->store), 0);
}

static void destroy(struct fixture *f) {
    delta_store_free(f->store);
    edges_free(&f->edges);
    config_free(&f->config);
}

/* ---------------------------------------------------------------------------------- made-up connections */

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

/* What is wrong with a connection. */
enum fault { NOTHING, NAN_DIFFERENCE, INFINITE_DIFFERENCE, NAN_GATE };

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

/* A forward pass: all active connections of the layers that are watched; `faulty` is edge number of `fault`.
 */
static void pass(struct fixture *f, const struct delta_watch *watch, int64_t step, int faulty,
                 enum fault fault) {
    int active = active_distances(&f->config.model.delta, (long)step);
    for (int l = 0; l < f->config.model.num_layers; l++)
        for (int i = 0; i < active_edges(&f->edges, l, active) && watch->layer[l]; i++) {
            int e = f->edges.first[l] + i;
            show(watch, &f->edges.edge[e], e == faulty ? fault : NOTHING);
        }
}

static struct delta_report store(struct fixture *f, int64_t step, int faulty, enum fault fault) {
    struct delta_report report;
    const struct delta_watch *watch = delta_store_begin(f->store, step);
    assert_non_null(watch);
    pass(f, watch, step, faulty, fault);
    assert_int_equal(delta_store_settle(f->store, true, &report), 0);
    assert_true(report.settled);
    assert_int_equal(report.step, step);
    assert_string_equal(gdn_failure(), "");
    return report;
}

/* ----------------------------------------------------------------------------------------- what is stored */

static void check_gates(const struct delta_record *r) {
    double mean = 0, squares = 0, least = 1, most = 0;
    int64_t bin[DELTA_BINS] = {0};
    for (long t = 0; t < T; t++)
        for (long i = 0; i < GATES; i++) {
            double g = gate[t * LD + i];
            mean += g / (T * GATES);
            least = fmin(least, g), most = fmax(most, g);
            bin[(int)floor(32 * g)]++;
        }
    for (long t = 0; t < T; t++)
        for (long i = 0; i < GATES; i++) squares += (gate[t * LD + i] - mean) * (gate[t * LD + i] - mean);
    /* Doubles added up in another order: 320 of them, each rounding by 1e-16. */
    assert_float_equal(r->gate_mean, mean, 1e-13);
    assert_float_equal(r->gate_deviation, sqrt(squares / (T * GATES)), 1e-13);
    assert_true(r->gate_least == least && r->gate_most == most);
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

static struct delta_list listed(void) {
    struct delta_list list;
    assert_int_equal(delta_list_open(directory, &list), 0);
    return list;
}

/* The stored connection, or NULL. */
static const struct delta_entry *find(const struct delta_list *list, int64_t step, const struct edge *edge) {
    for (int i = 0; i < list->count; i++) {
        const struct delta_entry *entry = &list->entry[i];
        if (entry->step == step && entry->layer == edge->target && entry->distance == edge->distance)
            return entry;
    }
    return NULL;
}

/* Checks a stored connection against the made-up one; its rank. */
static long check_stored(const struct delta_list *list, int64_t step, const struct edge *edge) {
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

static int remove_files(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s/deltas'", directory);
    return system(command);
}

static void stores_every_connection(void **state) {
    (void)state;
    struct fixture f;
    create(&f, NULL, NULL);
    assert_null(delta_store_begin(f.store, 4));
    struct delta_report none, report = store(&f, 5, -1, NOTHING);
    assert_int_equal(delta_store_settle(f.store, true, &none), 0);
    assert_false(none.settled); /* told once */
    struct delta_list list = listed();
    assert_int_equal(f.edges.count, 5); /* layers 1 to 3 at distance 1, 2 and 3 at 2 */
    assert_int_equal(list.count, 5);
    for (int e = 0; e < f.edges.count; e++)
        assert_int_equal(check_stored(&list, 5, &f.edges.edge[e]), 6); /* a quarter of 24 */
    assert_int_equal(report.tally.files, 3);
    assert_int_equal(report.tally.connections, 5);
    assert_int_equal(report.tally.rank, 30);
    assert_int_equal(report.tally.failed, 0);
    assert_int_equal(report.tally.plain_bytes, 5 * T * D * (long)sizeof(real));
    assert_true(report.tally.error > 0 && report.tally.error < 0.2);
    assert_true(report.factorise_seconds > 0 && report.stall_seconds > 0);
    delta_list_free(&list);
    destroy(&f);
}

static void stores_chosen_layers(void **state) {
    (void)state;
    struct fixture f;
    create(&f, "delta_store.layers=[0, 2]", NULL);
    struct delta_report report = store(&f, 0, -1, NOTHING);
    assert_int_equal(report.tally.files, 1);
    assert_int_equal(report.tally.connections, 2);
    destroy(&f);
}

/* Distances that are not introduced yet are not waited for. */
static void stores_active_connections(void **state) {
    (void)state;
    struct fixture f;
    create(&f, "model.delta.stage_steps=7", NULL);
    struct delta_report report = store(&f, 5, -1, NOTHING);
    assert_int_equal(report.tally.files, 3);
    assert_int_equal(report.tally.connections, 3);
    report = store(&f, 10, -1, NOTHING);
    assert_int_equal(report.tally.connections, 5);
    destroy(&f);
}

static void keeps_to_a_tolerance(void **state) {
    (void)state;
    struct fixture f;
    create(&f, "delta_store={ratio: 0, tolerance: 0.05}", NULL);
    struct delta_report report = store(&f, 0, -1, NOTHING);
    assert_true(report.tally.error <= 0.05);
    struct delta_list list = listed();
    for (int e = 0; e < f.edges.count; e++) {
        struct delta_record record;
        assert_int_equal(delta_record_read(find(&list, 0, &f.edges.edge[e]), &record), 0);
        struct factors *factors = &record.factors;
        assert_true(factors->error <= 0.05);
        /* One column less would miss more: what that column holds comes to it. */
        double last = (double)factors->sigma[factors->rank - 1] / factors->norm;
        assert_true(hypot(factors->error, last) > 0.05);
        delta_record_free(&record);
        check_stored(&list, 0, &f.edges.edge[e]);
    }
    delta_list_free(&list);
    destroy(&f);
}

/* All that is reserved, and all files of a step with the greatest rank, with what HDF5 needs to make one. */
static void takes_the_memory_planned(void **state) {
    (void)state;
    char *const set[][2] = {{NULL, NULL},
                            {"delta_store.ratio=1", NULL},
                            {"delta_store={ratio: 0, tolerance: 1e-9}", NULL},
                            {"delta_store.layers=[3]", "model.hidden_size=128"}};
    for (int i = 0; i < 4; i++) {
        struct fixture f;
        create(&f, set[i][0], set[i][1]);
        assert_int_equal(f.store->arena.used, f.store->arena.size);
        assert_true(delta_store_memory(&f.place, 1) == 0);
        if (i < 3) {
            struct delta_report report = store(&f, 0, -1, NOTHING);
            long files = (long)f.store->arena.size + report.tally.bytes;
            assert_true(f.memory >= files);
            assert_true(f.memory < files + 8 * 8192); /* what is left of the room for eight headers */
        }
        destroy(&f);
    }
    struct fixture off;
    create(&off, "delta_store.interval=0", NULL);
    assert_null(off.store);
    assert_int_equal(off.memory, 0);
    struct delta_report report;
    assert_null(delta_store_begin(off.store, 0));
    assert_int_equal(delta_store_settle(off.store, true, &report), 0);
    assert_false(report.settled);
    destroy(&off);
}

/* ---------------------------------------------------------------------------------------- what is not */

static void leaves_out_what_cannot_be(void **state) {
    (void)state;
    static const struct {
        enum fault fault;
        const char *words;
    } faults[] = {{NAN_DIFFERENCE, "NaN or infinite"},
                  {INFINITE_DIFFERENCE, "NaN or infinite"},
                  {NAN_GATE, "1 of its gates are NaN or infinite"}};
    struct fixture f;
    create(&f, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        int64_t step = 5 * (i + 1);
        const struct edge *bad = &f.edges.edge[2]; /* layer 2, distance 2 */
        struct delta_report report = store(&f, step, 2, faults[i].fault);
        assert_int_equal(report.tally.files, 3);
        assert_int_equal(report.tally.connections, 4);
        assert_int_equal(report.tally.failed, 1);
        assert_int_equal(report.failure.layer, 2);
        assert_int_equal(report.failure.distance, 2);
        assert_non_null(strstr(report.failure.words, faults[i].words));
        struct delta_list list = listed();
        assert_null(find(&list, step, bad));
        for (int e = 0; e < f.edges.count; e++)
            if (e != 2) check_stored(&list, step, &f.edges.edge[e]);
        delta_list_free(&list);
    }
    struct delta_report report = store(&f, 20, 0, NAN_DIFFERENCE); /* the only one of its layer */
    assert_int_equal(report.tally.files, 2);
    report = store(&f, 25, -1, NOTHING); /* nothing of that is left */
    assert_int_equal(report.tally.connections, 5);
    assert_int_equal(report.tally.failed, 0);
    assert_string_equal(report.failure.words, "");
    destroy(&f);
}

/* Words that others have recorded, and will need, stay. */
static void leaves_others_words_alone(void **state) {
    (void)state;
    struct fixture f;
    struct delta_report report;
    create(&f, NULL, NULL);
    const struct delta_watch *watch = delta_store_begin(f.store, 0);
    gdn_fail(GDN_INTERNAL, "words of another");
    pass(&f, watch, 0, 1, NAN_DIFFERENCE);
    assert_int_equal(delta_store_settle(f.store, true, &report), 0);
    assert_string_equal(gdn_failure(), "words of another");
    assert_int_equal(report.tally.failed, 1);
    assert_null(strstr(report.failure.words, "words of another"));
    gdn_failure_clear();
    destroy(&f);
}

static void tells_of_a_full_disk(void **state) {
    (void)state;
    struct fixture f;
    create(&f, NULL, NULL);
    store(&f, 0, -1, NOTHING);
    disk_full(3000, ENOSPC); /* in the middle of the first file */
    struct delta_report report = store(&f, 5, -1, NOTHING);
    disk_full(0, 0);
    assert_int_equal(report.tally.files, 0);
    assert_int_equal(report.tally.failed, 5);
    assert_int_equal(report.failure.layer, 1);
    assert_int_equal(report.failure.distance, 0);
    assert_non_null(strstr(report.failure.words, "step_00000005/layer_001.h5 cannot be written: "));
    assert_non_null(strstr(report.failure.words, strerror(ENOSPC)));
    struct delta_list list = listed(); /* refuses damaged files */
    assert_int_equal(list.count, 5);
    delta_list_free(&list);
    report = store(&f, 10, -1, NOTHING);
    assert_int_equal(report.tally.files, 3);
    assert_string_equal(report.failure.words, "");
    destroy(&f);
}

/* ------------------------------------------------------------------------------------- beside training */

static void does_not_wait_for_the_disk(void **state) {
    (void)state;
    struct fixture f;
    struct delta_report report;
    create(&f, NULL, NULL);
    disk_wait();
    pass(&f, delta_store_begin(f.store, 0), 0, -1, NOTHING); /* comes back */
    assert_int_equal(delta_store_settle(f.store, false, &report), 0);
    assert_false(report.settled);
    disk_go_on();
    while (!report.settled) {
        assert_int_equal(delta_store_settle(f.store, false, &report), 0);
        usleep(1000);
    }
    assert_int_equal(report.tally.files, 3);

    pass(&f, delta_store_begin(f.store, 5), 5, -1, NOTHING);
    destroy(&f); /* waits for what is under way */
    struct delta_list list = listed();
    assert_int_equal(list.count, 10);
    delta_list_free(&list);
}

/* ------------------------------------------------------------------------------------------- gates */

static void check_joined(const struct gates *a, const struct gates *b) {
    assert_true(a->count == b->count && a->least == b->least && a->most == b->most &&
                a->strange == b->strange);
    assert_memory_equal(a->bin, b->bin, sizeof a->bin);
    assert_float_equal(a->mean, b->mean, 1e-15);       /* of numbers up to 1 in a thousand doubles, */
    assert_float_equal(a->squares, b->squares, 1e-12); /* and squares that add up to about 100 */
}

static void gates_of_parts_are_those_of_all(void **state) {
    (void)state;
    enum { ROWS = 100, WIDTH = 12 };
    real x[ROWS * WIDTH];
    struct gates all, part[5], joined;
    for (uint64_t i = 0; i < ROWS * WIDTH; i++)
        x[i] = (real)(0.7 + 0.3 * random_uniform(1, 2, i)); /* far from a mean of 0 */
    x[0] = 0, x[5] = 1, x[20] = NAN;
    gates_measure(x, ROWS, WIDTH, WIDTH, &all);
    assert_true(all.count == ROWS * WIDTH - 1 && all.strange == 1 && all.least == 0 && all.most == 1);
    const int cuts[][5] = {{6, 6}, {3, 3, 3, 3}, {0, 12, 0}, {1, 0, 5, 0, 6}};
    for (int c = 0; c < 4; c++) {
        int at = 0;
        for (int i = 0; i < 5; at += cuts[c][i++])
            gates_measure(cuts[c][i] ? x + at : NULL, ROWS, cuts[c][i], WIDTH, &part[i]);
        gates_join(part, 5, &joined);
        check_joined(&joined, &all);
    }
}

static void gates_fall_into_bins(void **state) {
    (void)state;
    const real x[] = {0, (real)0.03124, (real)0.03125, (real)0.5, (real)0.99999, 1, (real)1.0000002};
    struct gates gates;
    struct delta_record record;
    gates_measure(x, 1, 7, 7, &gates);
    gates_record(&gates, &record);
    const int64_t expected[DELTA_BINS] = {[0] = 2, [1] = 1, [16] = 1, [31] = 3};
    assert_memory_equal(record.gate_histogram, expected, sizeof expected);
    gates_measure(NULL, 1, 7, 7, &gates);
    gates_record(&gates, &record);
    assert_true(record.gate_mean == 0 && record.gate_deviation == 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(stores_every_connection, remove_files),
        cmocka_unit_test_teardown(stores_chosen_layers, remove_files),
        cmocka_unit_test_teardown(stores_active_connections, remove_files),
        cmocka_unit_test_teardown(keeps_to_a_tolerance, remove_files),
        cmocka_unit_test_teardown(takes_the_memory_planned, remove_files),
        cmocka_unit_test_teardown(leaves_out_what_cannot_be, remove_files),
        cmocka_unit_test_teardown(leaves_others_words_alone, remove_files),
        cmocka_unit_test_teardown(tells_of_a_full_disk, remove_files),
        cmocka_unit_test_teardown(does_not_wait_for_the_disk, remove_files),
        cmocka_unit_test(gates_of_parts_are_those_of_all),
        cmocka_unit_test(gates_fall_into_bins),
    };
    int failed = cmocka_run_group_tests(tests, make_directory, remove_directory);
    MPI_Finalize();
    return failed;
}
