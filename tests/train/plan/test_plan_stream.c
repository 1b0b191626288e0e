/* A plan follows the stream's width: with a stream twice as wide, outputs of nodes and messages between
 * stages take twice the bytes, and weights what they took. The program has functions of its own that
 * stand for the model's (params/stream.c): the linker takes no member of a library whose names are all there. */
#include "kernels/base/status.h"
#include "kernels/lowrank/lowrank.h"
#include "model/model.h"
#include "model/params/stream.h"
#include "tests/support/unit.h"
#include "tests/train/config/config_fixture.h"
#include "train/plan/plan.h"

static int streams = 1;

int stream_count(const struct model_config *config) {
    (void)config;
    return streams;
}

long stream_width(const struct model_config *config) {
    return (long)stream_count(config) * config->hidden_size;
}

/* Sizes that are whole lines of memory; all projections of a node together are narrower than it. */
#define MODEL                                                                                                \
    "model: {hidden_size: 64, num_layers: 8, delta: {embedding_source: true, hidden: 4, gate_hidden: 4}}\n"  \
    "train: {sequence_length: 32, batch_size: 8, micro_batch_size: 2}\n"

static const struct plan_machine machine = {
    .flops = 1e9, .bandwidth = {1e6, 1e6, 1e6, 1e6}, .latency = 1e-6, .memory = 1e9};

static struct plan planned(const struct config *config, int wide) {
    struct plan plan;
    streams = wide;
    if (plan_create(config, 0, &machine, &plan)) fail_msg("%s", gdn_failure());
    return plan;
}

/* Elements of a message with a block. */
static long elements(const struct config *config, long T, long W) {
    double ratio = config->mesh.compress_boundary;
    return ratio > 0 ? lowrank_of_ratio(T, W, ratio) * (T + W) : T * W;
}

/* Every action's bytes on the pipeline axis, and how many messages with blocks and with projections there
 * are. */
static void check_actions(const struct config *config, const struct plan *one, const struct plan *two,
                          int *wide, int *narrow) {
    long D = config->model.hidden_size, T = one->micro_batch * config->train.sequence_length;
    for (int r = 0; r < one->pipeline.ranks; r++) {
        const struct actions *list = &one->pipeline.schedule.rank[r];
        assert_int_equal(list->count, two->pipeline.schedule.rank[r].count);
        for (int i = 0; i < list->count; i++) {
            const struct action *a = &list->action[i];
            int64_t before = one->slowest[r][i].bytes[AXIS_PIPELINE],
                    now = two->slowest[r][i].bytes[AXIS_PIPELINE];
            bool sends = a->act == ACT_SEND, block = sends && !payload_is_narrow(a->payload);
            *wide += block, *narrow += sends && !block;
            if (block) assert_int_equal(before, elements(config, T, D) * (long)sizeof(real));
            assert_int_equal(now, block ? elements(config, T, 2 * D) * (long)sizeof(real) : before);
        }
    }
}

static void check(const char *mesh) {
    struct config config = right(MODEL, mesh, "mesh.small=0");
    struct plan one = planned(&config, 1), two = planned(&config, 2);
    int wide = 0, narrow = 0;
    check_actions(&config, &one, &two, &wide, &narrow);
    assert_true(wide > 0 && (narrow > 0) == config.mesh.narrow_sources);
    long block =
        one.micro_batch * config.train.sequence_length * config.model.hidden_size * (long)sizeof(real);
    double waits = 0;
    for (long r = 0; r < one.ranks; r++) {
        const struct memory *a = &one.rank[r].memory, *b = &two.rank[r].memory;
        int64_t guards =
            2 * a->bytes[MEMORY_SOURCES] - b->bytes[MEMORY_SOURCES]; /* behind each node, not wider */
        assert_true(ARENA_GUARD ? guards > 0 && guards % ARENA_GUARD == 0 && guards < block : guards == 0);
        assert_int_equal(b->bytes[MEMORY_WEIGHTS], a->bytes[MEMORY_WEIGHTS]);
        assert_int_equal(b->bytes[MEMORY_GRADIENTS], a->bytes[MEMORY_GRADIENTS]);
        assert_int_equal(b->bytes[MEMORY_OPTIMIZER], a->bytes[MEMORY_OPTIMIZER]);
        long blocks = one.pipeline.blocks[r / config.mesh.size[AXIS_TENSOR]] * block,
             more = b->bytes[MEMORY_COMMUNICATION] - a->bytes[MEMORY_COMMUNICATION] - blocks;
        bool alone = config.mesh.size[AXIS_TENSOR] == 1 && !(config.mesh.compress_boundary > 0);
        assert_true(alone ? more == 0 : more > 0); /* sums over tensor ranks, factors */
        assert_true(b->bytes[MEMORY_ACTIVATIONS] > a->bytes[MEMORY_ACTIVATIONS]);
        assert_true(b->bytes[MEMORY_WORKSPACE] > a->bytes[MEMORY_WORKSPACE]);
    }
    for (int r = 0; r < one.step.ranks; r++)
        waits += two.step.rank[r].exposed[AXIS_PIPELINE] - one.step.rank[r].exposed[AXIS_PIPELINE];
    assert_true(waits > 0 && two.step.seconds > one.step.seconds);
    plan_free(&one);
    plan_free(&two);
    config_free(&config);
}

static void test_plan(void **state) {
    (void)state;
    check("mesh={pipeline: 2, interleave: 2, narrow_sources: false}");
    check("mesh={pipeline: 4}");
    check("mesh={pipeline: 2, tensor: 2, sequence_parallel: true}");
    check("mesh={pipeline: 2, narrow_sources: false, compress_boundary: 0.25}");
}

/* What a node weighs against its projections. */
static void test_routes(void **state) {
    (void)state;
    struct config config = right(MODEL, NULL, NULL);
    struct layout layout = layout_full();
    for (streams = 1; streams <= 4; streams *= 2)
        assert_int_equal(model_route_widths(&config.model, &layout).node, 64 * streams);
    config_free(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_routes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
