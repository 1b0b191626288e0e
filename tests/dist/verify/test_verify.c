/* The schedule's verifier: faults planted in sound schedules are found before anything is sent, in words that
 * say where and what. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/random.h"
#include "tests/dist/verify/broken.h"
#include "tests/support/unit.h"

static void sound(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    assert_int_equal(example_check(&e), 0);
    example_free(&e);
    example_schedule(&with_projections, &e);
    assert_int_equal(example_check(&e), 0);
    assert_true(e.routes.projector[example_edge(&e, 0, 4)] >= 0);
    example_free(&e);
}

static void missing_receive(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    delete (&e, 2, find(&e, 2, ACT_RECEIVE, PAYLOAD_SOURCE, 0, 1));
    expect(&e, "pipeline rank 1", "nobody receives message");
}

static void missing_send(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    delete (&e, 1, find(&e, 1, ACT_SEND, PAYLOAD_SOURCE_GRADIENT, 0, 2));
    expect(&e, "pipeline rank 0", "nobody sends message");
}

/* Both ends left out, so that all that is sent is received. */
static void missing_source(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    delete (&e, 1, find(&e, 1, ACT_SEND, PAYLOAD_SOURCE, 0, 1));
    delete (&e, 2, find(&e, 2, ACT_RECEIVE, PAYLOAD_SOURCE, 0, 1));
    for (int i = list(&e, 2)->count - 1; i >= 0; i--) {
        const struct action *a = at(&e, 2, i);
        if ((a->act == ACT_POST || a->act == ACT_FREE) && a->payload == PAYLOAD_SOURCE && a->index == 0 &&
            a->micro_batch == 1)
            delete (&e, 2, i);
    }
    expect(&e, "pipeline rank 2", "layer 4 reads node 0, which is not on this rank");
}

/* Rank 0 waits for a gradient before it has sent what that takes. */
static void crossed_waits(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int send = find(&e, 0, ACT_SEND, PAYLOAD_SOURCE, 1, 0),
        receive = find(&e, 0, ACT_RECEIVE, PAYLOAD_STREAM_GRADIENT, -1, 0);
    move(&e, 0, send, receive + 1);
    expect(&e, "pipeline rank 0", "deadlock");
}

/* A buffer is wanted back before its receive can have begun: only sends that wait for it get stuck. */
static void send_that_waits(void **state) {
    (void)state;
    struct example e;
    struct shape two = {.layers = 2, .pipeline = 2, .chunks = 1, .micro_batches = 2};
    example_schedule(&two, &e);
    /* Rank 1 sends the gradient of micro-batch 0 and frees its block at once; rank 0, which has not posted
     * it, first wants the next gradient. */
    for (int i = list(&e, 0)->count - 1; i >= 0; i--)
        if (at(&e, 0, i)->act == ACT_POST) delete (&e, 0, i);
    int free_ = find(&e, 1, ACT_FREE, PAYLOAD_STREAM_GRADIENT, 0, 0);
    move(&e, 1, free_, find(&e, 1, ACT_SEND, PAYLOAD_STREAM_GRADIENT, 0, 0) + 1);
    int second = find(&e, 0, ACT_RECEIVE, PAYLOAD_STREAM_GRADIENT, 0, 1);
    at(&e, 0, second)->buffer = 0;
    move(&e, 0, second, find(&e, 0, ACT_RECEIVE, PAYLOAD_STREAM_GRADIENT, 0, 0));
    e.schedule.blocks[0] = 2;
    int first = find(&e, 0, ACT_RECEIVE, PAYLOAD_STREAM_GRADIENT, 0, 0);
    at(&e, 0, first)->buffer = 1;
    expect(&e, "pipeline rank 0", "deadlock");
}

static void wrong_peer(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    at(&e, 0, find(&e, 0, ACT_SEND, PAYLOAD_SOURCE, 1, 0))->peer = 2;
    expect(&e, "pipeline rank 0", "wrong peer");
}

static void duplicate_message(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int first = at(&e, 0, find(&e, 0, ACT_SEND, PAYLOAD_SOURCE, 1, 0))->message;
    at(&e, 0, find(&e, 0, ACT_SEND, PAYLOAD_SOURCE, 1, 1))->message = first;
    expect(&e, "pipeline rank 0", "sent twice");
}

static void mismatched_ends(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    struct action *a = at(&e, 0, find(&e, 0, ACT_SEND, PAYLOAD_SOURCE, 1, 1));
    struct action *b = at(&e, 0, find(&e, 0, ACT_SEND, PAYLOAD_SOURCE, 1, 2));
    int message = a->message;
    a->message = b->message;
    b->message = message;
    expect(&e, "pipeline rank 0", "does not match");
}

static void backward_left_out(void **state) {
    (void)state;
    struct example e;
    struct shape alone = {.layers = 2, .pipeline = 1, .chunks = 1, .micro_batches = 1};
    example_schedule(&alone, &e);
    at(&e, 0, find(&e, 0, ACT_BACKWARD, -1, -1, 0))->end = 0;
    expect(&e, "pipeline rank 0", "the buffer does not hold it");
    example_schedule(&alone, &e);
    at(&e, 0, find(&e, 0, ACT_BACKWARD, -1, -1, 0))->layer = 1;
    expect(&e, "pipeline rank 0", "the layer to go on with is 2");
    example_schedule(&alone, &e);
    list(&e, 0)->count = 0;
    expect(&e, "pipeline rank 0", "no forward pass");
}

static void projections_in_disorder(void **state) {
    (void)state;
    struct example e;
    example_schedule(&with_projections, &e);
    int edge = example_edge(&e, 0, 4), by = e.routes.projector[edge];
    move(&e, by, find(&e, by, ACT_PROJECT, -1, edge, 0),
         find(&e, by, ACT_SEND, PAYLOAD_PROJECTED, edge, 0) + 1);
    expect(&e, "send", "the buffer is not filled yet");
    example_schedule(&with_projections, &e);
    delete (&e, by, find(&e, by, ACT_UNPROJECT, -1, edge, 1));
    expect(&e, "free", "never drained");
    example_schedule(&with_projections, &e);
    e.routes.projector[edge] = 2; /* the target's own stage */
    expect(&e, "schedule", "cannot be projected");
}

/* Any one action left out of any list is noticed, but for posts. */
static void any_one_left_out(void **state) {
    (void)state;
    int tried = 0;
    for (unsigned n = 0; n < 60; n++) {
        struct shape random = example_random(11, n);
        random.micro_batches = 1 + random.micro_batches % 4;
        struct example e;
        example_schedule(&random, &e);
        for (int k = 0; k < 20; k++) {
            int rank = (int)(random_bits(12, n, (uint64_t)k) % (uint64_t)random.pipeline);
            int i = (int)(random_bits(13, n, (uint64_t)k) % (uint64_t)list(&e, rank)->count);
            struct action kept = *at(&e, rank, i);
            if (kept.act == ACT_POST) continue;
            delete (&e, rank, i);
            if (!example_check(&e)) {
                char text[160];
                action_text(&kept, text);
                fail_msg("not missed: rank %d, action %d: %s", rank, i, text);
            }
            gdn_failure_clear();
            memmove(at(&e, rank, i + 1), at(&e, rank, i),
                    (size_t)(list(&e, rank)->count++ - i) * sizeof kept);
            *at(&e, rank, i) = kept;
            tried++;
        }
        example_free(&e);
    }
    assert_true(tried > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound),
        cmocka_unit_test(missing_receive),
        cmocka_unit_test(missing_send),
        cmocka_unit_test(missing_source),
        cmocka_unit_test(crossed_waits),
        cmocka_unit_test(send_that_waits),
        cmocka_unit_test(wrong_peer),
        cmocka_unit_test(duplicate_message),
        cmocka_unit_test(mismatched_ends),
        cmocka_unit_test(backward_left_out),
        cmocka_unit_test(projections_in_disorder),
        cmocka_unit_test(any_one_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
