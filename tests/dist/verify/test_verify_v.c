/* Schedules of a V: each fault planted in a sound one is found. */
#include "tests/dist/verify/broken.h"

#include "tests/support/unit.h"

/* Three ranks, six stages of two layers, four micro-batches: nodes 2 and 3 of stage 1 are read by stage 5, and sent
 * there by stage 4 of the same rank. */
static const struct shape turned = {.layers = 12,
                                    .pipeline = 3,
                                    .chunks = 2,
                                    .v = true,
                                    .micro_batches = 4,
                                    .distances = {1, 8},
                                    .buckets = 4,
                                    .overlap = true,
                                    .weight_sets = 2};

static void make(struct example *e) {
    example_schedule(&turned, e);
    assert_int_equal(example_check(e), 0);
}

/* The first action of a kind of a chunk. */
static int find_chunk(struct example *e, int rank, enum act act, int chunk, int micro_batch) {
    int i = 0;
    while (at(e, rank, i)->act != act || at(e, rank, i)->chunk != chunk || at(e, rank, i)->micro_batch != micro_batch)
        i++;
    return i;
}

static void where_stages_are(void **state) {
    (void)state;
    struct example e;
    make(&e);
    for (int rank = 0; rank < 3; rank++)
        for (int chunk = 0; chunk < 2; chunk++) {
            int stage = layout_stage(&e.layout, rank, chunk);
            assert_int_equal(stage, chunk ? 5 - rank : rank);
            assert_int_equal(layout_rank_of(&e.layout, stage), rank);
            assert_int_equal(layout_chunk_of(&e.layout, stage), chunk);
        }
    for (int boundary = 0; boundary < 5; boundary++)
        assert_int_equal(layout_turns(&e.layout, boundary), boundary == 2);
    example_free(&e);
}

static void nothing_crosses_the_turn(void **state) {
    (void)state;
    struct example e;
    make(&e);
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < list(&e, r)->count; i++) assert_int_not_equal(at(&e, r, i)->boundary, 2);
    at(&e, 2, find(&e, 2, ACT_SEND, -1, -1, 0))->boundary = 2;
    expect(&e, "pipeline rank 2", "both ends of boundary 2 are this rank");
}

static void wrong_chunk(void **state) {
    (void)state;
    struct example e;
    make(&e);
    at(&e, 1, find_chunk(&e, 1, ACT_SEND, 0, 0))->chunk = 1;
    expect(&e, "pipeline rank 1", "which is not this chunk");
    make(&e);
    at(&e, 1, find_chunk(&e, 1, ACT_RECEIVE, 1, 0))->peer = 0;
    expect(&e, "pipeline rank 1", "wrong peer: the other end of boundary 3 is rank 2");
}

/* A node of the first chunk that the second sends. */
static void own_node(void **state) {
    (void)state;
    struct example e;
    make(&e);
    int i = find(&e, 1, ACT_SEND, PAYLOAD_SOURCE, 2, 0);
    assert_int_equal(at(&e, 1, i)->boundary, 4);
    assert_int_equal(at(&e, 1, i)->buffer, -1);
    at(&e, 1, i)->activation_set++;
    expect(&e, "send source 2 of micro-batch 0", "activation set");
    make(&e);
    delete (&e, 1, find(&e, 1, ACT_SEND, PAYLOAD_SOURCE, 2, 0));
    expect(&e, "pipeline rank 0", "nobody sends message");
    make(&e); /* of another rank */
    i = find(&e, 1, ACT_SEND, PAYLOAD_SOURCE, 2, 0);
    at(&e, 1, i)->index = 0;
    for (int k = 0; k < list(&e, 0)->count; k++)
        if (at(&e, 0, k)->message == at(&e, 1, i)->message) at(&e, 0, k)->index = 0;
    expect(&e, "send source 0", "not an output of the rank's");
}

/* The stream's gradient stays on the rank of the turn. */
static void turn(void **state) {
    (void)state;
    struct example e;
    make(&e);
    move(&e, 2, find_chunk(&e, 2, ACT_BACKWARD, 0, 0), find_chunk(&e, 2, ACT_BACKWARD, 1, 0));
    expect(&e, "backward chunk 0 of micro-batch 0", "the gradient of node 5 is not on this rank");
    make(&e);
    move(&e, 2, find_chunk(&e, 2, ACT_FORWARD, 1, 0), find_chunk(&e, 2, ACT_FORWARD, 0, 0));
    expect(&e, "forward chunk 1 of micro-batch 0", "is not on this rank");
}

static void weights_of_chunks(void **state) {
    (void)state;
    struct example e;
    make(&e);
    at(&e, 1, find_chunk(&e, 1, ACT_WEIGHTS, 1, 0))->chunk = 0;
    expect(&e, "gradients of weights of chunk 0", "the weight set does not hold the micro-batch");
    make(&e);
    delete (&e, 1, find_chunk(&e, 1, ACT_WEIGHTS, 0, 1));
    expect(&e, "pipeline rank 1", "");
    make(&e);
    at(&e, 0, find_chunk(&e, 0, ACT_BACKWARD, 1, 1))->weight_set = 2;
    expect(&e, "backward", "there is no such weight set: the rank has 2");
    make(&e);
    move(&e, 1, find(&e, 1, ACT_REDUCE, -1, -1, -1), find_chunk(&e, 1, ACT_WEIGHTS, 1, 3));
    expect(&e, "reduce", "a gradient in the bucket is still to come");
}

static void deadlock(void **state) {
    (void)state;
    struct example e;
    make(&e);
    int receive = find_chunk(&e, 0, ACT_RECEIVE, 1, 0), post = find_chunk(&e, 0, ACT_POST, 1, 0);
    if (post < receive) at(&e, 0, post)->act = ACT_TAKE; /* another fault, but it does not come to it */
    move(&e, 0, receive, 0);
    expect(&e, "pipeline rank 0", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_stages_are), cmocka_unit_test(nothing_crosses_the_turn), cmocka_unit_test(wrong_chunk),
        cmocka_unit_test(own_node),         cmocka_unit_test(turn),                     cmocka_unit_test(weights_of_chunks),
        cmocka_unit_test(deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
