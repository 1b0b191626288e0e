/* Gradients of weights that wait: each fault planted in a sound schedule is found. */
#include "tests/dist/verify/broken.h"

#include "tests/support/unit.h"

/* Rank 2 of three has two weight sets, and four micro-batches. */
static void make(struct example *e) {
    struct shape waiting = shape;
    waiting.weight_sets = 2;
    example_schedule(&waiting, e);
    assert_int_equal(example_check(e), 0);
    assert_int_equal(e->schedule.weight_sets[2], 2);
}

/* The first piece of a rank's work on a micro-batch. */
static int weights(struct example *e, int rank, int micro_batch) {
    return find(e, rank, ACT_WEIGHTS, -1, -1, micro_batch);
}

static void left_out(void **state) {
    (void)state;
    struct example e;
    make(&e);
    delete (&e, 2, weights(&e, 2, 0));
    expect(&e, "pipeline rank 2", "the weight set is taken by micro-batch 0");
    make(&e);
    while (find(&e, 2, ACT_NORM, -1, -1, -1) > weights(&e, 2, 3)) {
        int i = weights(&e, 2, 3);
        if (at(&e, 2, i)->end == 4) break;
        delete (&e, 2, i);
    }
    expect(&e, "pipeline rank 2", "");
}

static void twice(void **state) {
    (void)state;
    struct example e;
    make(&e);
    *at(&e, 2, weights(&e, 2, 1)) = *at(&e, 2, weights(&e, 2, 0));
    expect(&e, "gradients of weights", "the weight set does not hold the micro-batch");
}

static void before_its_backward_pass(void **state) {
    (void)state;
    struct example e;
    make(&e);
    move(&e, 2, weights(&e, 2, 0), find(&e, 2, ACT_BACKWARD, -1, -1, 0));
    expect(&e, "gradients of weights", "the weight set does not hold the micro-batch");
}

static void out_of_order(void **state) {
    (void)state;
    struct example e;
    make(&e);
    int first = weights(&e, 2, 0), second = weights(&e, 2, 1);
    struct action kept = *at(&e, 2, first);
    *at(&e, 2, first) = *at(&e, 2, second);
    *at(&e, 2, second) = kept;
    expect(&e, "gradients of weights", "of micro-batch 0 come before it");
}

static void taken_set(void **state) {
    (void)state;
    struct example e;
    make(&e);
    at(&e, 2, find(&e, 2, ACT_BACKWARD, -1, -1, 1))->weight_set = 0;
    expect(&e, "backward", "the weight set is taken by micro-batch 0");
    make(&e);
    at(&e, 2, find(&e, 2, ACT_BACKWARD, -1, -1, 1))->weight_set = 2;
    expect(&e, "backward", "there is no such weight set: the rank has 2");
    make(&e);
    at(&e, 2, weights(&e, 2, 1))->weight_set = 0;
    expect(&e, "gradients of weights", "the weight set does not hold the micro-batch");
    make(&e); /* the first micro-batch's wait, and the second adds at once */
    at(&e, 2, find(&e, 2, ACT_BACKWARD, -1, -1, 1))->weight_set = -1;
    expect(&e, "backward", "gradients of weights of micro-batch 0 come before it");
}

static void bound(void **state) {
    (void)state;
    struct example e;
    make(&e);
    e.weight_sets[2] = 1;
    expect(&e, "pipeline rank 2", "2 weight sets, of at most 1");
    make(&e);
    e.options.weight_sets = NULL;
    expect(&e, "pipeline rank", "of at most 0");
}

static void summed_too_early(void **state) {
    (void)state;
    struct example e;
    make(&e);
    move(&e, 2, find(&e, 2, ACT_REDUCE, -1, -1, -1), weights(&e, 2, 3));
    expect(&e, "reduce", "a gradient in the bucket is still to come");
    struct shape shared = shape;
    shared.weight_sets = 2, shared.share = true;
    example_schedule(&shared, &e);
    for (int r = 0; r < 3; r++) { /* on all, or they wait for each other */
        int to = r ? weights(&e, r, 3) : find(&e, r, ACT_BACKWARD, -1, -1, 3);
        move(&e, r, find(&e, r, ACT_SHARE, -1, -1, -1), to);
    }
    expect(&e, "sum shared gradients", "a backward pass is still to come");
}

static void layers(void **state) {
    (void)state;
    struct example e;
    make(&e);
    at(&e, 2, weights(&e, 2, 0))->layer = 4;
    expect(&e, "gradients of weights", "the layer to go on with is 6");
    make(&e);
    at(&e, 2, weights(&e, 2, 0))->end = 3;
    expect(&e, "gradients of weights", "the chunk's layers are 6 to 4");
    make(&e);
    at(&e, 2, weights(&e, 2, 0))->end = 5;
    expect(&e, "pipeline rank 2", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_out),
        cmocka_unit_test(twice),
        cmocka_unit_test(before_its_backward_pass),
        cmocka_unit_test(out_of_order),
        cmocka_unit_test(taken_set),
        cmocka_unit_test(bound),
        cmocka_unit_test(summed_too_early),
        cmocka_unit_test(layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
