/* The verifier finds each way to break what a schedule does with memory: buffers, activations, gradients
 * added by others, buckets. */
#include "tests/dist/verify/broken.h"
#include "tests/support/unit.h"

static void source_freed_too_early(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    move(&e, 2, find(&e, 2, ACT_FREE, PAYLOAD_SOURCE, 0, 1), find(&e, 2, ACT_BACKWARD, -1, -1, 1));
    expect(&e, "pipeline rank 2", "layer 4 reads node 0, which is not on this rank");
}

static void buffer_taken_twice(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int first = find(&e, 2, ACT_RECEIVE, PAYLOAD_SOURCE, 0, 0),
        second = find(&e, 2, ACT_RECEIVE, PAYLOAD_SOURCE, 3, 0);
    int block = at(&e, 2, first)->buffer;
    at(&e, 2, second)->buffer = block;
    expect(&e, "pipeline rank 2", "the buffer is taken already");
}

static void buffer_never_freed(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int last = list(&e, 2)->count - 1;
    while (at(&e, 2, last)->act != ACT_FREE) last--;
    delete (&e, 2, last);
    expect(&e, "pipeline rank 2", "is never freed");
}

/* The source gradient for node 0 comes home only after its backward pass. */
static void source_gradient_too_late(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int receive = find(&e, 0, ACT_RECEIVE, PAYLOAD_SOURCE_GRADIENT, 0, 3);
    move(&e, 0, receive, find(&e, 0, ACT_FREE, PAYLOAD_SOURCE_GRADIENT, 0, 3));
    expect(&e, "pipeline rank 0", "the gradient of source 0 is not on this rank");
}

/* Rank 1 takes the gradient of source 0 in and throws it away. */
static void source_gradient_never_drained(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    delete (&e, 1, find(&e, 1, ACT_SEND, PAYLOAD_SOURCE_GRADIENT, 0, 3));
    delete (&e, 0, find(&e, 0, ACT_RECEIVE, PAYLOAD_SOURCE_GRADIENT, 0, 3));
    for (int i = list(&e, 0)->count - 1; i >= 0; i--)
        if (at(&e, 0, i)->payload == PAYLOAD_SOURCE_GRADIENT && at(&e, 0, i)->index == 0 &&
            at(&e, 0, i)->micro_batch == 3 &&
            (at(&e, 0, i)->act == ACT_POST || at(&e, 0, i)->act == ACT_FREE))
            delete (&e, 0, i);
    /* Who runs first depends on nothing but the lists: rank 0 misses it, or rank 1 has it left. */
    expect(&e, "the gradient of", "source 0");
    example_schedule(&shape, &e);
    int send = find(&e, 2, ACT_SEND, PAYLOAD_STREAM_GRADIENT, -1, 3);
    move(&e, 2, find(&e, 2, ACT_FREE, PAYLOAD_SOURCE_GRADIENT, 0, 3), send);
    expect(&e, "pipeline rank 2", "never drained");
}

/* A source gradient is sent on before its stage has added to it. */
static void source_gradient_sent_too_early(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    move(&e, 2, find(&e, 2, ACT_SEND, PAYLOAD_SOURCE_GRADIENT, 0, 1), find(&e, 2, ACT_BACKWARD, -1, -1, 1));
    expect(&e, "pipeline rank 2", "no source gradient to add to for source 0");
}

/* Source gradients for node 1 join in the order of their targets: stage 2's (layer 5) before stage 1's (layer
 * 2). */
static void gradient_incomplete(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int receive = find(&e, 1, ACT_RECEIVE, PAYLOAD_SOURCE_GRADIENT, 1, 1);
    move(&e, 1, receive, find(&e, 1, ACT_FREE, PAYLOAD_SOURCE_GRADIENT, 1, 1));
    expect(&e, "pipeline rank 1", "before those of later targets");
}

static void activation_set_taken(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    at(&e, 0, find(&e, 0, ACT_FORWARD, -1, -1, 1))->activation_set =
        at(&e, 0, find(&e, 0, ACT_FORWARD, -1, -1, 0))->activation_set;
    expect(&e, "pipeline rank 0", "the activation set is taken by micro-batch 0");
}

/* In evaluation an activation set may be overwritten, but not while another chunk reads it. */
static void activation_set_overwritten(void **state) {
    (void)state;
    struct shape evaluation = {
        .layers = 4, .pipeline = 2, .chunks = 2, .micro_batches = 2, .distances = {2}, .forward_only = true};
    struct example e;
    example_schedule(&evaluation, &e);
    assert_int_equal(example_check(&e), 0);
    for (int i = 0; i < list(&e, 0)->count; i++) {
        struct action *a = at(&e, 0, i);
        if (a->chunk == 0 && a->activation_set >= 0) a->activation_set = 0;
    }
    expect(&e, "pipeline rank 0", "layer 2 reads node 0, which is not on this rank");
}

static void bucket_reduced_too_early(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int last = 0; /* the bucket that is complete last */
    for (int b = 0; b < 3; b++)
        if (e.shards[1].bucket[b].ready < e.shards[1].bucket[last].ready) last = b;
    int i = list(&e, 1)->count - 1;
    while (at(&e, 1, i)->act != ACT_BACKWARD) i--;
    move(&e, 1, find(&e, 1, ACT_REDUCE, -1, last, -1), i);
    expect(&e, "pipeline rank 1", "a gradient in the bucket is still to come");
}

static void buckets_out_of_order(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    move(&e, 1, find(&e, 1, ACT_UPDATE, -1, 0, -1), find(&e, 1, ACT_NORM, -1, -1, -1));
    expect(&e, "pipeline rank 1", "the norm is not known yet");
    example_schedule(&shape, &e);
    move(&e, 1, find(&e, 1, ACT_FINISH, -1, 1, -1), find(&e, 1, ACT_NORM, -1, -1, -1) + 1);
    expect(&e, "pipeline rank 1", "bucket 1 is not finished");
    example_schedule(&shape, &e);
    delete (&e, 1, find(&e, 1, ACT_GATHERED, -1, 2, -1));
    expect(&e, "pipeline rank 1", "bucket 2 is not gathered");
    example_schedule(&shape, &e);
    delete (&e, 2, find(&e, 2, ACT_NORM, -1, -1, -1));
    expect(&e, "pipeline rank", "the norm is not known yet");
}

/* A shared bucket before the sum over the stages; the sum before the last backward pass. */
static void shared_too_early(void **state) {
    (void)state;
    struct shape shared = shape;
    shared.share = true;
    struct example e;
    example_schedule(&shared, &e);
    int bucket = -1, rank = -1;
    for (int r = 0; r < 3; r++)
        for (int b = 0; b < 3; b++)
            if (e.shards[r].bucket[b].shared) rank = r, bucket = b;
    assert_true(bucket >= 0); /* else choose another seed */
    move(&e, rank, find(&e, rank, ACT_REDUCE, -1, bucket, -1), find(&e, rank, ACT_SHARE, -1, -1, -1));
    expect(&e, "schedule", "a gradient in the bucket is still to come");
    example_schedule(&shared, &e);
    move(&e, 0, find(&e, 0, ACT_SHARE, -1, -1, -1), find(&e, 0, ACT_BACKWARD, -1, -1, 3));
    expect(&e, "pipeline rank 0", "a backward pass is still to come");
    example_schedule(&shared, &e);
    move(&e, 1, find(&e, 1, ACT_SHARE, -1, -1, -1), find(&e, 1, ACT_BACKWARD, -1, -1, 3));
    expect(&e, "pipeline rank", "deadlock");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(source_freed_too_early),
        cmocka_unit_test(buffer_taken_twice),
        cmocka_unit_test(buffer_never_freed),
        cmocka_unit_test(source_gradient_too_late),
        cmocka_unit_test(source_gradient_never_drained),
        cmocka_unit_test(source_gradient_sent_too_early),
        cmocka_unit_test(gradient_incomplete),
        cmocka_unit_test(activation_set_taken),
        cmocka_unit_test(activation_set_overwritten),
        cmocka_unit_test(bucket_reduced_too_early),
        cmocka_unit_test(buckets_out_of_order),
        cmocka_unit_test(shared_too_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
