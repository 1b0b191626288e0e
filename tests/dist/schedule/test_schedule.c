/* Schedules: lists of small cases word by word; facts of 1F1B and interleaved 1F1B (memory, bubble); and
 * thousands of random models and meshes, all of which the verifier must pass. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/dist/schedule/example.h"
#include "tests/support/unit.h"

static void assert_sound(const struct example *e) {
    if (!example_check(e)) return;
    example_print(&e->shape);
    fail_msg("%s", gdn_failure());
}

/* What a rank's list uses of each kind of buffer. */
struct usage {
    int activation_sets[64]; /* by chunk */
    int blocks, narrow_blocks, weight_sets;
};

static struct usage usage_of(const struct actions *list) {
    struct usage usage = {0};
    for (int i = 0; i < list->count; i++) {
        const struct action *a = &list->action[i];
        bool narrow = a->payload == PAYLOAD_PROJECTED || a->payload == PAYLOAD_PROJECTED_GRADIENT;
        int *max = narrow ? &usage.narrow_blocks : &usage.blocks;
        if (*max <= a->buffer) *max = a->buffer + 1;
        if (usage.weight_sets <= a->weight_set) usage.weight_sets = a->weight_set + 1;
        if (a->act == ACT_FORWARD && usage.activation_sets[a->chunk] <= a->activation_set)
            usage.activation_sets[a->chunk] = a->activation_set + 1;
    }
    return usage;
}

/* Every kind of action and of payload has its row; what has no row has words too. */
static void kinds(void **state) {
    (void)state;
    for (int act = 0; act < ACTS; act++) {
        struct action action = {.act = (enum act)act, .chunk = 1, .micro_batch = 2, .index = 3, .buffer = 4};
        char text[160];
        assert_non_null(act_kinds[act].text);
        assert_true(act_kinds[act].letter);
        action_text(&action, text);
        assert_null(strchr(text, '%'));
    }
    for (int payload = 0; payload < PAYLOADS; payload++) assert_non_null(payload_kinds[payload].text);
    struct action action = {.act = ACT_SEND, .payload = PAYLOAD_PROJECTED, .micro_batch = 2, .index = 3};
    char text[160];
    action.peer = 5, action.buffer = 4;
    action_text(&action, text);
    assert_string_equal(text,
                        "send the projected source of edge 3 of micro-batch 2 to rank 5 from narrow block 4");
    action.payload = PAYLOAD_SOURCE, action.buffer = -1, action.activation_set = 6;
    action_text(&action, text);
    assert_string_equal(text, "send source 3 of micro-batch 2 to rank 5 from activation set 6");
    action.act = ACTS;
    action_text(&action, text);
    assert_string_equal(text, "unknown action 17");
}

static void random_cases(void **state) {
    (void)state;
    for (unsigned n = 0; n < 4000; n++) {
        struct shape shape = example_random(1, n);
        struct example e;
        example_schedule(&shape, &e);
        assert_sound(&e);
        for (int r = 0; r < shape.pipeline; r++) { /* what is reserved is what is used */
            struct usage usage = usage_of(&e.schedule.rank[r]);
            assert_int_equal(usage.blocks, e.schedule.blocks[r]);
            assert_int_equal(usage.narrow_blocks, e.schedule.narrow_blocks[r]);
            assert_int_equal(usage.weight_sets, e.schedule.weight_sets[r]);
            for (int c = 0; c < shape.chunks; c++)
                assert_int_equal(usage.activation_sets[c], e.schedule.activation_sets[r * shape.chunks + c]);
        }
        example_free(&e);
    }
}

static void expect_list(const struct example *e, int rank, const char *const *text, int count) {
    const struct actions *list = &e->schedule.rank[rank];
    for (int i = 0; i < count && i < list->count; i++) {
        char actual[160];
        action_text(&list->action[i], actual);
        assert_string_equal(actual, text[i]);
    }
    assert_int_equal(list->count, count);
}
#define EXPECT_LIST(e, rank, ...)                                                                            \
    expect_list(e, rank, (const char *[]){__VA_ARGS__},                                                      \
                sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static void one_rank(void **state) {
    (void)state;
    struct shape shape = {.layers = 3, .pipeline = 1, .chunks = 1, .micro_batches = 2, .distances = {1, 2}};
    struct example e;
    example_schedule(&shape, &e);
    assert_sound(&e);
    EXPECT_LIST(&e, 0,                                                                    //
                "forward chunk 0 of micro-batch 0 in activation set 0",                   //
                "take block 0 for the stream's gradient at node 2 of micro-batch 0",      //
                "backward chunk 0 of micro-batch 0, layers 3 to -1, in activation set 0", //
                "free block 0 of the stream's gradient at node -1 of micro-batch 0",      //
                "forward chunk 0 of micro-batch 1 in activation set 0",                   //
                "take block 0 for the stream's gradient at node 2 of micro-batch 1",      //
                "backward chunk 0 of micro-batch 1, layers 3 to -1, in activation set 0", //
                "free block 0 of the stream's gradient at node -1 of micro-batch 1");
    example_free(&e);
}

/* Three ranks of one layer: node 0 goes on to layer 2 through rank 1, its source gradient comes back through
 * it. */
static void three_ranks(void **state) {
    (void)state;
    struct shape shape = {.layers = 3, .pipeline = 3, .chunks = 1, .micro_batches = 1, .distances = {2}};
    struct example e;
    example_schedule(&shape, &e);
    assert_sound(&e);
    EXPECT_LIST(
        &e, 0,                                                                                           //
        "post the receive of the stream's gradient at node 0 of micro-batch 0 from rank 1 into block 0", //
        "forward chunk 0 of micro-batch 0 in activation set 0",                                          //
        "send source 0 of micro-batch 0 to rank 1 from activation set 0",                                //
        "receive the stream's gradient at node 0 of micro-batch 0 from rank 1 into block 0",             //
        "backward chunk 0 of micro-batch 0, layers 0 to -1, in activation set 0",                        //
        "free block 0 of the stream's gradient at node -1 of micro-batch 0");
    EXPECT_LIST(
        &e, 1,                                                                                           //
        "receive source 0 of micro-batch 0 from rank 0 into block 0",                                    //
        "send source 0 of micro-batch 0 to rank 2 from block 0",                                         //
        "post the receive of the stream's gradient at node 1 of micro-batch 0 from rank 2 into block 1", //
        "forward chunk 0 of micro-batch 0 in activation set 0",                                          //
        "send source 1 of micro-batch 0 to rank 2 from activation set 0",                                //
        "receive the gradient of source 0 of micro-batch 0 from rank 2 into block 2",                    //
        "receive the stream's gradient at node 1 of micro-batch 0 from rank 2 into block 1",             //
        "backward chunk 0 of micro-batch 0, layers 1 to 1, in activation set 0",                         //
        "send the stream's gradient at node 0 of micro-batch 0 to rank 0 from block 1",                  //
        "free block 2 of the gradient of source 0 of micro-batch 0",                                     //
        "free block 0 of source 0 of micro-batch 0",                                                     //
        "free block 1 of the stream's gradient at node 0 of micro-batch 0");
    EXPECT_LIST(&e, 2,                                                                          //
                "receive source 0 of micro-batch 0 from rank 1 into block 0",                   //
                "receive source 1 of micro-batch 0 from rank 1 into block 1",                   //
                "forward chunk 0 of micro-batch 0 in activation set 0",                         //
                "take block 2 for the gradient of source 0 of micro-batch 0",                   //
                "take block 3 for the stream's gradient at node 2 of micro-batch 0",            //
                "backward chunk 0 of micro-batch 0, layers 3 to 2, in activation set 0",        //
                "send the stream's gradient at node 1 of micro-batch 0 to rank 1 from block 3", //
                "send the gradient of source 0 of micro-batch 0 to rank 1 from block 2",        //
                "free block 0 of source 0 of micro-batch 0",                                    //
                "free block 1 of source 1 of micro-batch 0",                                    //
                "free block 3 of the stream's gradient at node 1 of micro-batch 0",             //
                "free block 2 of the gradient of source 0 of micro-batch 0");
    example_free(&e);
}

/* The same with projected sources: edge 0 is projected by rank 1, where node 0 has come as the stream. */
static void with_projected_sources(void **state) {
    (void)state;
    struct shape shape = {.layers = 3,
                          .pipeline = 3,
                          .chunks = 1,
                          .micro_batches = 1,
                          .distances = {2},
                          .narrow = true,
                          .node = 8,
                          .edge = 2};
    struct example e;
    example_schedule(&shape, &e);
    assert_sound(&e);
    EXPECT_LIST(
        &e, 1,                                                                                           //
        "receive source 0 of micro-batch 0 from rank 0 into block 0",                                    //
        "take narrow block 0 for the projected source of edge 0 of micro-batch 0",                       //
        "project the projected source of edge 0 of micro-batch 0 into narrow block 0",                   //
        "send the projected source of edge 0 of micro-batch 0 to rank 2 from narrow block 0",            //
        "post the receive of the stream's gradient at node 1 of micro-batch 0 from rank 2 into block 1", //
        "forward chunk 0 of micro-batch 0 in activation set 0",                                          //
        "send source 1 of micro-batch 0 to rank 2 from activation set 0",                                //
        "free narrow block 0 of the projected source of edge 0 of micro-batch 0",                        //
        "receive the projected gradient of edge 0 of micro-batch 0 from rank 2 into narrow block 0",     //
        "take block 2 for the gradient of source 0 of micro-batch 0",                                    //
        "unproject the projected gradient of edge 0 of micro-batch 0 from narrow block 0",               //
        "free narrow block 0 of the projected gradient of edge 0 of micro-batch 0",                      //
        "receive the stream's gradient at node 1 of micro-batch 0 from rank 2 into block 1",             //
        "backward chunk 0 of micro-batch 0, layers 1 to 1, in activation set 0",                         //
        "send the stream's gradient at node 0 of micro-batch 0 to rank 0 from block 1",                  //
        "free block 2 of the gradient of source 0 of micro-batch 0",                                     //
        "free block 0 of source 0 of micro-batch 0",                                                     //
        "free block 1 of the stream's gradient at node 0 of micro-batch 0");
    example_free(&e);
}

/* Four buckets on one rank of three layers: ready at 3 (head), 1, 1 and −1, the second one shared. */
static void buckets(void **state) {
    (void)state;
    struct shape shape = {.layers = 3, .pipeline = 1, .chunks = 1, .micro_batches = 1, .overlap = true};
    struct example e;
    example_routes(&shape, &e);
    struct bucket bucket[] = {{.ready = 3}, {.ready = 1, .shared = true}, {.ready = 1}, {.ready = -1}};
    struct shards shards = {.buckets = 4, .bucket = bucket};
    e.options = (struct schedule_options){
        .micro_batches = 1, .num_layers = 3, .overlap = true, .shards = &shards, .share = true};
    assert_int_equal(schedule_create(&e.edges, &e.routes, &e.layout, &e.options, &e.schedule), 0);
    assert_sound(&e);
    EXPECT_LIST(&e, 0,                                                                    //
                "forward chunk 0 of micro-batch 0 in activation set 0",                   //
                "take block 0 for the stream's gradient at node 2 of micro-batch 0",      //
                "backward chunk 0 of micro-batch 0, layers 3 to 3, in activation set 0",  //
                "reduce bucket 0",                                                        //
                "backward chunk 0 of micro-batch 0, layers 2 to 1, in activation set 0",  //
                "reduce bucket 2",                                                        //
                "backward chunk 0 of micro-batch 0, layers 0 to -1, in activation set 0", //
                "free block 0 of the stream's gradient at node -1 of micro-batch 0",      //
                "finish bucket 0", "reduce bucket 3",                                     //
                "sum shared gradients over the stages",                                   //
                "finish bucket 2", "reduce bucket 1", "finish bucket 3", "finish bucket 1",
                "global gradient norm",                                                     //
                "update bucket 0", "gather bucket 0", "update bucket 2", "gather bucket 2", //
                "update bucket 3", "gather bucket 3", "update bucket 1", "gather bucket 1", //
                "bucket 0 gathered", "bucket 2 gathered", "bucket 3 gathered", "bucket 1 gathered");
    schedule_free(&e.schedule);
    e.options.overlap = false;
    assert_int_equal(schedule_create(&e.edges, &e.routes, &e.layout, &e.options, &e.schedule), 0);
    assert_sound(&e);
    for (int i = 0, reduced = 0; i < e.schedule.rank[0].count; i++) { /* all after one whole backward pass */
        const struct action *a = &e.schedule.rank[0].action[i];
        if (a->act == ACT_BACKWARD) assert_true(a->layer == 3 && a->end == -1 && !reduced);
        reduced += a->act == ACT_REDUCE;
    }
    example_free(&e);
}

/* 1F1B: rank p keeps min(P − p, M) micro-batches, and stands still for P − 1 forward and backward passes. */
static void one_forward_one_backward(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks++)
        for (int most_micro_batches = 1; most_micro_batches <= 20; most_micro_batches++) {
            struct shape shape = {.layers = 16,
                                  .pipeline = ranks,
                                  .chunks = 1,
                                  .micro_batches = most_micro_batches,
                                  .distances = {1, 3, 9}};
            struct example e;
            example_schedule(&shape, &e);
            for (int r = 0; r < ranks; r++)
                assert_int_equal(e.schedule.activation_sets[r],
                                 ranks - r < most_micro_batches ? ranks - r : most_micro_batches);
            assert_int_equal(example_makespan(&e), 3 * (most_micro_batches + ranks - 1));
            example_free(&e);
        }
}

/* Activation sets of all chunks in use at the same time. */
static int max_in_flight(const struct example *e, int rank) {
    int now = 0, max = 0;
    for (int i = 0; i < e->schedule.rank[rank].count; i++) {
        enum act act = e->schedule.rank[rank].action[i].act;
        now += act == ACT_FORWARD ? 1 : act == ACT_BACKWARD ? -1 : 0;
        if (max < now) max = now;
    }
    return max;
}

/* Interleaved, in passes of a chunk: the same P − 1, though each rank has `chunks` times as many passes, also
 * where the ranks do not divide the micro-batches. */
static void interleaved(void **state) {
    (void)state;
    for (int ranks = 2; ranks <= 8; ranks++)
        for (int chunks = 2; chunks <= 4; chunks++)
            for (int most_micro_batches = ranks; most_micro_batches <= 3 * ranks; most_micro_batches++) {
                struct shape shape = {.layers = 32,
                                      .pipeline = ranks,
                                      .chunks = chunks,
                                      .micro_batches = most_micro_batches,
                                      .distances = {1, 3, 9}};
                struct example e;
                example_schedule(&shape, &e);
                assert_int_equal(example_makespan(&e), 3 * (most_micro_batches * chunks + ranks - 1));
                for (int r = 0; r < ranks; r++) { /* the warm-up's passes and one more */
                    int warm_up = 2 * (ranks - 1 - r) + (chunks - 1) * ranks,
                        all = most_micro_batches * chunks;
                    if (most_micro_batches % ranks == 0)
                        assert_int_equal(max_in_flight(&e, r), warm_up < all ? warm_up + 1 : all);
                }
                example_free(&e);
            }
}

static int by_message(const void *a, const void *b) {
    const struct action *x = *(struct action *const *)a, *y = *(struct action *const *)b;
    if (x->boundary != y->boundary) return x->boundary - y->boundary;
    if (x->payload != y->payload) return x->payload < y->payload ? -1 : 1;
    if (x->index != y->index) return x->index - y->index;
    return x->micro_batch - y->micro_batch;
}

static void nothing_crosses_a_boundary_twice(void **state) {
    (void)state;
    for (unsigned n = 0; n < 200; n++) {
        struct shape shape = example_random(5, n);
        struct example e;
        example_schedule(&shape, &e);
        const struct action **sends = malloc((size_t)(e.schedule.messages + 1) * sizeof *sends);
        int count = 0;
        for (int r = 0; r < shape.pipeline; r++)
            for (int i = 0; i < e.schedule.rank[r].count; i++)
                if (e.schedule.rank[r].action[i].act == ACT_SEND)
                    sends[count++] = &e.schedule.rank[r].action[i];
        assert_int_equal(count, e.schedule.messages);
        qsort(sends, (size_t)count, sizeof *sends, by_message);
        for (int i = 1; i < count; i++) assert_true(by_message(&sends[i - 1], &sends[i]) < 0);
        free(sends);
        example_free(&e);
    }
}

static void no_micro_batch(void **state) {
    (void)state;
    struct shape shape = {.layers = 2, .pipeline = 2, .chunks = 1};
    struct example e;
    example_routes(&shape, &e);
    e.options.num_layers = 2;
    assert_int_equal(schedule_create(&e.edges, &e.routes, &e.layout, &e.options, &e.schedule), GDN_INPUT);
    gdn_failure_clear();
    example_free(&e);
}

/* 64 ranks with two chunks and 512 micro-batches: seconds, which are told and not compared. */
static void large(void **state) {
    (void)state;
    const struct shape shapes[] = {
        {.layers = 128, .pipeline = 64, .chunks = 2, .micro_batches = 512, .distances = {1, 2, 3, 4}},
        /* Sources live long: hundreds of buffers on a rank. */
        {.layers = 128,
         .pipeline = 64,
         .chunks = 1,
         .micro_batches = 512,
         .distances = {1, 12, 24, 36, 50, 64}},
    };
    for (int i = 0; i < 2; i++) {
        struct example e;
        clock_t begin = clock();
        example_schedule(&shapes[i], &e);
        assert_sound(&e);
        double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        print_message("64 ranks, %d chunks, 512 micro-batches, %d blocks: %.1f s\n", shapes[i].chunks,
                      e.schedule.blocks[32], seconds);
        example_free(&e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),          cmocka_unit_test(one_rank),
        cmocka_unit_test(three_ranks),    cmocka_unit_test(with_projected_sources),
        cmocka_unit_test(buckets),        cmocka_unit_test(one_forward_one_backward),
        cmocka_unit_test(interleaved),    cmocka_unit_test(nothing_crosses_a_boundary_twice),
        cmocka_unit_test(no_micro_batch), cmocka_unit_test(random_cases),
        cmocka_unit_test(large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
