/* Schedules with weight sets: what ranks wait and hold, and a small case word by word. Random ones are among
 * those of test_schedule.c. */
#include "tests/dist/schedule/example.h"
#include "tests/support/unit.h"

static void assert_sound(const struct example *e) {
    if (!example_check(e)) return;
    example_print(&e->shape);
    fail_msg("%s", gdn_failure());
}

/* With p weight sets on rank p, ranks stand still for P forward passes alone, where there are enough
 * micro-batches, with one more for P − 1, as ZB-H1 says, and have the activation sets of 1F1B. Fewer sets are
 * in between. */
static void zero_bubble(void **state) {
    (void)state;
    for (int ranks = 2; ranks <= 8; ranks++)
        for (int micro_batches = 1; micro_batches <= 20; micro_batches++) {
            struct shape shape = {.layers = 16,
                                  .pipeline = ranks,
                                  .chunks = 1,
                                  .micro_batches = micro_batches,
                                  .distances = {1, 3, 9}};
            int before = 3 * (micro_batches + ranks - 1);
            for (shape.weight_sets = 1; shape.weight_sets < ranks; shape.weight_sets++) {
                struct example e;
                example_schedule(&shape, &e);
                assert_sound(&e);
                int span = example_makespan(&e);
                if (span > before)
                    fail_msg("%d ranks, %d micro-batches: %d after %d", ranks, micro_batches, span, before);
                before = span;
                for (int r = 0; r < ranks; r++) {
                    assert_int_equal(e.schedule.activation_sets[r],
                                     ranks - r < micro_batches ? ranks - r : micro_batches);
                    assert_true(e.schedule.weight_sets[r] <= (r < shape.weight_sets ? r : shape.weight_sets));
                }
                example_free(&e);
            }
            if (micro_batches < ranks) continue;
            assert_int_equal(before, 3 * micro_batches + ranks);
            struct example e;
            example_schedule(&shape, &e);
            for (int r = 0; r < ranks; r++) e.weight_sets[r] = r + 1;
            schedule_free(&e.schedule);
            assert_int_equal(schedule_create(&e.edges, &e.routes, &e.layout, &e.options, &e.schedule), 0);
            assert_sound(&e);
            assert_int_equal(example_makespan(&e), 3 * micro_batches + ranks - 1);
            example_free(&e);
        }
}

/* A step of two ranks, two micro-batches: the second rank's first gradients of weights wait for its second
 * backward pass, and the bucket for the second micro-batch's. */
static void zero_bubble_list(void **state) {
    (void)state;
    struct shape shape = {.layers = 2, .pipeline = 2, .chunks = 1, .micro_batches = 2, .weight_sets = 1};
    struct example e;
    example_routes(&shape, &e);
    struct bucket bucket[] = {{.ready = 2}, {.ready = 1}, {.ready = -1}};
    struct shards shards[] = {{.buckets = 1, .bucket = &bucket[2]}, {.buckets = 2, .bucket = bucket}};
    const int sets[] = {0, 1};
    e.options = (struct schedule_options){
        .micro_batches = 2, .num_layers = 2, .overlap = true, .shards = shards, .weight_sets = sets};
    assert_int_equal(schedule_create(&e.edges, &e.routes, &e.layout, &e.options, &e.schedule), 0);
    assert_sound(&e);
    const char *const expected[] = {
        "backward chunk 0 of micro-batch 0, layers 2 to 1, in activation set 0, into weight set 0",
        "gradients of weights of chunk 0 of micro-batch 0, layers 2 to 1, from weight set 0",
        "backward chunk 0 of micro-batch 1, layers 2 to 1, in activation set 0, into weight set 0",
        "gradients of weights of chunk 0 of micro-batch 1, layers 2 to 2, from weight set 0",
        "reduce bucket 0",
        "gradients of weights of chunk 0 of micro-batch 1, layers 1 to 1, from weight set 0",
        "reduce bucket 1",
    };
    size_t n = 0;
    for (int i = 0; i < e.schedule.rank[1].count; i++) {
        const struct action *a = &e.schedule.rank[1].action[i];
        char text[160];
        if (a->act != ACT_BACKWARD && a->act != ACT_WEIGHTS && a->act != ACT_REDUCE) continue;
        assert_true(n < sizeof expected / sizeof *expected);
        action_text(a, text);
        assert_string_equal(text, expected[n++]);
    }
    assert_int_equal(n, sizeof expected / sizeof *expected);
    for (int i = 0; i < e.schedule.rank[0].count; i++)
        assert_true(e.schedule.rank[0].action[i].act != ACT_WEIGHTS);
    example_free(&e);
}

/* In a V, where forward passes, gradients of inputs and of weights take the same time, ranks stand still for P − 1
 * passes of half a stage, with no more than two activation sets of half a stage for each of 1F1B's first rank's,
 * and P weight sets. With one weight set it is never slower than 1F1B. */
static void v(void **state) {
    (void)state;
    for (int ranks = 2; ranks <= 8; ranks++)
        for (int micro_batches = ranks; micro_batches <= 3 * ranks; micro_batches += 2) {
            struct shape shape = {.layers = 16,
                                  .pipeline = ranks,
                                  .chunks = 2,
                                  .v = true,
                                  .micro_batches = micro_batches,
                                  .distances = {1, 3, 9}};
            for (int full = 0; full < 2; full++) {
                struct example e;
                shape.weight_sets = full ? ranks : 1;
                example_schedule(&shape, &e);
                assert_sound(&e);
                int span = example_makespan(&e), usual = 3 * 2 * (micro_batches + ranks - 1);
                assert_true(span < usual);
                if (full && micro_batches >= 2 * ranks) assert_int_equal(span, 6 * micro_batches + ranks - 1);
                for (int r = 0; r < ranks && micro_batches >= 2 * ranks; r++)
                    assert_true(e.schedule.activation_sets[2 * r] + e.schedule.activation_sets[2 * r + 1] <= 2 * ranks);
                example_free(&e);
            }
        }
}

/* Several chunks a rank that are no V have no weight sets. */
static void one_chunk(void **state) {
    (void)state;
    struct shape shape = {.layers = 4, .pipeline = 2, .chunks = 2};
    const int sets[] = {0, 1};
    struct example e;
    example_routes(&shape, &e);
    e.options = (struct schedule_options){.micro_batches = 2, .num_layers = 4, .weight_sets = sets};
    assert_int_equal(schedule_create(&e.edges, &e.routes, &e.layout, &e.options, &e.schedule), GDN_INTERNAL);
    gdn_failure_clear();
    example_free(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(zero_bubble), cmocka_unit_test(zero_bubble_list),
                                       cmocka_unit_test(one_chunk), cmocka_unit_test(v)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
