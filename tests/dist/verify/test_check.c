/* The schedule's checker: faults planted in sound schedules are found before anything is sent, in words that
 * say where and what. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/dist/schedule/example.h"
#include "kernels/base/random.h"
#include "tests/support/unit.h"

/* Three ranks of two layers; node 0 is read two stages on, buckets overlap. */
static const struct shape shape = {.layers = 6,
                                   .pipeline = 3,
                                   .chunks = 1,
                                   .micro_batches = 4,
                                   .distances = {1, 4},
                                   .buckets = 3,
                                   .overlap = true,
                                   .seed = 1};
static const struct shape with_strips = {.layers = 6,
                                         .pipeline = 3,
                                         .chunks = 1,
                                         .micro_batches = 2,
                                         .distances = {1, 4},
                                         .narrow = true,
                                         .node = 8,
                                         .edge = 2};

static struct actions *list(struct example *e, int rank) {
    return &e->schedule.rank[rank];
}

/* The place of a rank's action; `index` and `micro` −1: any. */
static int find(struct example *e, int rank, enum act act, int cargo, int index, int micro) {
    for (int i = 0; i < list(e, rank)->count; i++) {
        const struct action *a = &list(e, rank)->action[i];
        if (a->act == act && (cargo < 0 || (int)a->cargo == cargo) && (index < 0 || a->index == index) &&
            (micro < 0 || a->micro == micro))
            return i;
    }
    fail_msg("no such action");
    return -1;
}

static struct action *at(struct example *e, int rank, int i) {
    return &list(e, rank)->action[i];
}

static void delete (struct example *e, int rank, int i) {
    memmove(at(e, rank, i), at(e, rank, i + 1), (size_t)(--list(e, rank)->count - i) * sizeof(struct action));
}

/* Moves an action to before place `to`. */
static void move(struct example *e, int rank, int i, int to) {
    struct action a = *at(e, rank, i);
    if (i < to) {
        memmove(at(e, rank, i), at(e, rank, i + 1), (size_t)(to - 1 - i) * sizeof a);
        *at(e, rank, to - 1) = a;
    } else {
        memmove(at(e, rank, to + 1), at(e, rank, to), (size_t)(i - to) * sizeof a);
        *at(e, rank, to) = a;
    }
}

/* The check fails, and its words have these in them. Frees the example. */
static void expect(struct example *e, const char *first, const char *second) {
    assert_int_equal(example_check(e), GDN_INTERNAL);
    char words[600];
    snprintf(words, sizeof words, "%s", gdn_failure());
    gdn_failure_clear();
    if (!strstr(words, first) || !strstr(words, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", words, first, second);
    example_free(e);
}

static void sound(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    assert_int_equal(example_check(&e), 0);
    example_free(&e);
    example_schedule(&with_strips, &e);
    assert_int_equal(example_check(&e), 0);
    assert_true(e.routes.projector[example_edge(&e, 0, 4)] >= 0);
    example_free(&e);
}

static void missing_receive(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    delete (&e, 2, find(&e, 2, ACT_RECEIVE, CARGO_NODE, 0, 1));
    expect(&e, "pipeline rank 1", "nobody receives message");
}

static void missing_send(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    delete (&e, 1, find(&e, 1, ACT_SEND, CARGO_DEPOSIT, 0, 2));
    expect(&e, "pipeline rank 0", "nobody sends message");
}

/* Both ends left out, so that all that is sent is received. */
static void missing_source(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    delete (&e, 1, find(&e, 1, ACT_SEND, CARGO_NODE, 0, 1));
    delete (&e, 2, find(&e, 2, ACT_RECEIVE, CARGO_NODE, 0, 1));
    for (int i = list(&e, 2)->count - 1; i >= 0; i--) {
        const struct action *a = at(&e, 2, i);
        if ((a->act == ACT_POST || a->act == ACT_FREE) && a->cargo == CARGO_NODE && a->index == 0 &&
            a->micro == 1)
            delete (&e, 2, i);
    }
    expect(&e, "pipeline rank 2", "layer 4 reads node 0, which is not on this rank");
}

/* Rank 0 waits for a gradient before it has sent what that takes. */
static void crossed_waits(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int send = find(&e, 0, ACT_SEND, CARGO_NODE, 1, 0),
        receive = find(&e, 0, ACT_RECEIVE, CARGO_GRADIENT, -1, 0);
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
    int free_ = find(&e, 1, ACT_FREE, CARGO_GRADIENT, 0, 0);
    move(&e, 1, free_, find(&e, 1, ACT_SEND, CARGO_GRADIENT, 0, 0) + 1);
    int second = find(&e, 0, ACT_RECEIVE, CARGO_GRADIENT, 0, 1);
    at(&e, 0, second)->buffer = 0;
    move(&e, 0, second, find(&e, 0, ACT_RECEIVE, CARGO_GRADIENT, 0, 0));
    e.schedule.blocks[0] = 2;
    int first = find(&e, 0, ACT_RECEIVE, CARGO_GRADIENT, 0, 0);
    at(&e, 0, first)->buffer = 1;
    expect(&e, "pipeline rank 0", "deadlock");
}

static void source_freed_too_early(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    move(&e, 2, find(&e, 2, ACT_FREE, CARGO_NODE, 0, 1), find(&e, 2, ACT_BACKWARD, -1, -1, 1));
    expect(&e, "pipeline rank 2", "layer 4 reads node 0, which is not on this rank");
}

static void buffer_taken_twice(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int first = find(&e, 2, ACT_RECEIVE, CARGO_NODE, 0, 0),
        second = find(&e, 2, ACT_RECEIVE, CARGO_NODE, 3, 0);
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

/* The deposit for node 0 comes home only after its backward pass. */
static void deposit_too_late(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int receive = find(&e, 0, ACT_RECEIVE, CARGO_DEPOSIT, 0, 3);
    move(&e, 0, receive, find(&e, 0, ACT_FREE, CARGO_DEPOSIT, 0, 3));
    expect(&e, "pipeline rank 0", "the deposit for node 0 is not on this rank");
}

/* Rank 1 takes the deposit for node 0 in and throws it away. */
static void deposit_never_drained(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    delete (&e, 1, find(&e, 1, ACT_SEND, CARGO_DEPOSIT, 0, 3));
    delete (&e, 0, find(&e, 0, ACT_RECEIVE, CARGO_DEPOSIT, 0, 3));
    for (int i = list(&e, 0)->count - 1; i >= 0; i--)
        if (at(&e, 0, i)->cargo == CARGO_DEPOSIT && at(&e, 0, i)->index == 0 && at(&e, 0, i)->micro == 3 &&
            (at(&e, 0, i)->act == ACT_POST || at(&e, 0, i)->act == ACT_FREE))
            delete (&e, 0, i);
    /* Who runs first depends on nothing but the lists: rank 0 misses it, or rank 1 has it left. */
    expect(&e, "deposit", "node 0");
    example_schedule(&shape, &e);
    int send = find(&e, 2, ACT_SEND, CARGO_GRADIENT, -1, 3);
    move(&e, 2, find(&e, 2, ACT_FREE, CARGO_DEPOSIT, 0, 3), send);
    expect(&e, "pipeline rank 2", "never drained");
}

/* A deposit is sent on before its stage has added to it. */
static void deposit_sent_too_early(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    move(&e, 2, find(&e, 2, ACT_SEND, CARGO_DEPOSIT, 0, 1), find(&e, 2, ACT_BACKWARD, -1, -1, 1));
    expect(&e, "pipeline rank 2", "no deposit to add to for node 0");
}

/* Deposits for node 1 join in the order of their targets: stage 2's (layer 5) before stage 1's (layer 2). */
static void gradient_incomplete(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int receive = find(&e, 1, ACT_RECEIVE, CARGO_DEPOSIT, 1, 1);
    move(&e, 1, receive, find(&e, 1, ACT_FREE, CARGO_DEPOSIT, 1, 1));
    expect(&e, "pipeline rank 1", "before those of later targets");
}

static void wrong_peer(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    at(&e, 0, find(&e, 0, ACT_SEND, CARGO_NODE, 1, 0))->peer = 2;
    expect(&e, "pipeline rank 0", "wrong peer");
}

static void duplicate_message(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    int first = at(&e, 0, find(&e, 0, ACT_SEND, CARGO_NODE, 1, 0))->message;
    at(&e, 0, find(&e, 0, ACT_SEND, CARGO_NODE, 1, 1))->message = first;
    expect(&e, "pipeline rank 0", "sent twice");
}

static void mismatched_ends(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    struct action *a = at(&e, 0, find(&e, 0, ACT_SEND, CARGO_NODE, 1, 1));
    struct action *b = at(&e, 0, find(&e, 0, ACT_SEND, CARGO_NODE, 1, 2));
    int message = a->message;
    a->message = b->message;
    b->message = message;
    expect(&e, "pipeline rank 0", "does not match");
}

static void slot_taken(void **state) {
    (void)state;
    struct example e;
    example_schedule(&shape, &e);
    at(&e, 0, find(&e, 0, ACT_FORWARD, -1, -1, 1))->slot =
        at(&e, 0, find(&e, 0, ACT_FORWARD, -1, -1, 0))->slot;
    expect(&e, "pipeline rank 0", "the slot is taken by micro-batch 0");
}

/* In evaluation a slot may be overwritten, but not while another chunk reads it. */
static void slot_overwritten(void **state) {
    (void)state;
    struct shape evaluation = {
        .layers = 4, .pipeline = 2, .chunks = 2, .micro_batches = 2, .distances = {2}, .forward_only = true};
    struct example e;
    example_schedule(&evaluation, &e);
    assert_int_equal(example_check(&e), 0);
    for (int i = 0; i < list(&e, 0)->count; i++) {
        struct action *a = at(&e, 0, i);
        if (a->chunk == 0 && a->slot >= 0) a->slot = 0;
    }
    expect(&e, "pipeline rank 0", "layer 2 reads node 0, which is not on this rank");
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

static void strips_in_disorder(void **state) {
    (void)state;
    struct example e;
    example_schedule(&with_strips, &e);
    int edge = example_edge(&e, 0, 4), by = e.routes.projector[edge];
    move(&e, by, find(&e, by, ACT_PROJECT, -1, edge, 0), find(&e, by, ACT_SEND, CARGO_EDGE, edge, 0) + 1);
    expect(&e, "send", "the buffer is not filled yet");
    example_schedule(&with_strips, &e);
    delete (&e, by, find(&e, by, ACT_UNPROJECT, -1, edge, 1));
    expect(&e, "free", "never drained");
    example_schedule(&with_strips, &e);
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
                char words[160];
                action_words(&kept, words);
                fail_msg("not missed: rank %d, action %d: %s", rank, i, words);
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
        cmocka_unit_test(source_freed_too_early),
        cmocka_unit_test(buffer_taken_twice),
        cmocka_unit_test(buffer_never_freed),
        cmocka_unit_test(deposit_too_late),
        cmocka_unit_test(deposit_never_drained),
        cmocka_unit_test(deposit_sent_too_early),
        cmocka_unit_test(gradient_incomplete),
        cmocka_unit_test(wrong_peer),
        cmocka_unit_test(duplicate_message),
        cmocka_unit_test(mismatched_ends),
        cmocka_unit_test(slot_taken),
        cmocka_unit_test(slot_overwritten),
        cmocka_unit_test(backward_left_out),
        cmocka_unit_test(bucket_reduced_too_early),
        cmocka_unit_test(buckets_out_of_order),
        cmocka_unit_test(shared_too_early),
        cmocka_unit_test(strips_in_disorder),
        cmocka_unit_test(any_one_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
