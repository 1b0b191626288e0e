/* Placement and pipeline: what runs and plans compute before the first step. */
#include <string.h>
#include <time.h>

#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/rules/rules.h"
#include "model/table/flops.h"
#include "model/table/params.h"
#include "tests/train/config/config_fixture.h"
#include "tests/support/unit.h"
#include "train/partition/pipeline.h"
#include "train/partition/placement.h"

static const char *const staged =
    "model: {num_layers: 8, delta: {stage_steps: 5, embedding_source: true, hidden: 8}}\n"
    "mesh: {tensor: 2, pipeline: 2, interleave: 2, small: 100, bucket: 5000}";

static const struct partition_place one_copy = {.copies = 1, .batch_parts = 1},
                                    place = {.copies = 2, .copy = 1, .batch_parts = 2, .tensor_index = 1},
                                    many = {.copies = 16, .copy = 3, .batch_parts = 16, .tensor_index = 1};

static void placement(void **state) {
    (void)state;
    struct config config = right(staged, NULL, NULL);
    struct layout layout;
    assert_int_equal(placement_create(&config, 3, 1, 1, &layout), 0);
    assert_true(layout.size[AXIS_DATA] == 3 && layout.size[AXIS_TENSOR] == 2 &&
                layout.index[AXIS_TENSOR] == 1 && layout.size[AXIS_PIPELINE] == 2);
    assert_true(layout.index[AXIS_PIPELINE] == 1 && layout.chunks == 2 && layout.small == 100 &&
                layout.narrow);
    int layer = 0;
    for (int s = 0; s < 4; s++) { /* every layer once, in order */
        assert_true(layout.stage[s].first == layer && layout.stage[s].end > layer);
        layer = layout.stage[s].end;
    }
    assert_int_equal(layer, 8);
    placement_free(&layout);
    config_free(&config);

    /* A head that costs as much as two layers takes their place in the last stage. */
    config = right("model: {num_layers: 6, delta: {distances: []}}\nmesh: {pipeline: 2}", NULL, NULL);
    double cost[6];
    struct edges edges;
    assert_int_equal(edges_create(&config.model, &edges), 0);
    model_layer_flops(&config.model, &edges, NULL, config.train.sequence_length, cost);
    edges_free(&edges);
    config.model.vocab_size = (int)(2 * cost[0] / 2 / config.model.hidden_size);
    assert_int_equal(placement_create(&config, 1, 0, 0, &layout), 0);
    assert_true(layout.stage[0].end == 4 && layout.stage[1].end == 6);
    placement_free(&layout);
    config_free(&config);
}

/* The parts of the arithmetic add up to the whole. */
static void flops(void **state) {
    (void)state;
    struct config config = right("model: {delta: {aggregate: attention}}", NULL, NULL);
    struct edges edges;
    assert_int_equal(edges_create(&config.model, &edges), 0);
    for (int active = 0; active <= 4; active++) {
        struct edge_set set;
        assert_int_equal(edges_introduced(&edges, active, &set), 0);
        double layer[6], sum = model_head_flops(&config.model);
        model_layer_flops(&config.model, &edges, &set, 32, layer);
        for (int l = 0; l < 6; l++) sum += layer[l];
        assert_true(3 * sum == model_flops_per_token(&config.model, &edges, &set, 32));
        if (active) assert_true(layer[0] < layer[1]); /* nothing leads into the first */
        edge_set_free(&set);
    }
    edges_free(&edges);
    config_free(&config);
}

static void check_rank(const struct config *config, const struct pipeline *p, int rank) {
    struct layout layout;
    struct table table;
    assert_int_equal(placement_create(config, 2, 1, rank, &layout), 0);
    assert_int_equal(params_create(&config->model, &layout, &table), 0);
    assert_int_equal(table.rows, p->table[rank].rows);
    assert_int_equal(table.total, p->table[rank].total);
    long owned = 0;
    for (int b = 0; b < p->shards[rank].buckets; b++) owned += p->shards[rank].bucket[b].own_count;
    assert_int_equal(owned, p->shards[rank].moments);
    params_free(&table);
    placement_free(&layout);
}

/* A list for every number of distances that a run goes through, and the most that any needs. */
static void pipelines(void **state) {
    (void)state;
    struct config config = right(staged, NULL, NULL);
    for (int training = 0; training < 2; training++) {
        struct pipeline p;
        if (pipeline_create(&config, &place, 4, training, &p)) fail_msg("%s", gdn_failure());
        assert_true(p.ranks == 2 && p.distances == 4 && p.micro_batches == 4);
        for (int rank = 0; rank < p.ranks; rank++) {
            check_rank(&config, &p, rank);
            int blocks = 0;
            for (int active = 1; active <= 4; active++) {
                const struct schedule *s = pipeline_schedule(&p, 4, pipeline_active(&p, active));
                assert_int_equal(s->ranks, 2);
                assert_true(s->rank[rank].count > 0);
                if (s->blocks[rank] > blocks) blocks = s->blocks[rank];
                for (int chunk = 0; chunk < 2; chunk++)
                    assert_true(s->activation_sets[rank * 2 + chunk] <= p.activation_sets[rank * 2 + chunk]);
            }
            assert_int_equal(p.blocks[rank], blocks);
        }
        assert_int_equal(p.introduced[0].ranks, 0);
        pipeline_keep(&p, 1);
        assert_int_equal(pipeline_schedule(&p, 4, pipeline_active(&p, 2))->rank[0].count, 0);
        assert_true(pipeline_schedule(&p, 4, pipeline_active(&p, 2))->rank[1].count > 0 &&
                    p.schedule.rank[1].count > 0);
        pipeline_free(&p);
    }
    config_free(&config);
}

/* Steps of a ramp have schedules of their own, and all find room in what is counted. */
static void ramp(void **state) {
    (void)state;
    struct config config = right(staged, "train.batch_ramp=[[0, 8], [10, 32], [20, 8], [30, 16]]", NULL);
    struct pipeline p, alone;
    if (pipeline_create(&config, &place, 8, true, &p)) fail_msg("%s", gdn_failure());
    assert_int_equal(p.num_smaller, 2);
    for (int micro_batches = 1; micro_batches <= 9; micro_batches++) {
        bool there = micro_batches == 2 || micro_batches == 4 || micro_batches == 8;
        for (int active = 1; active <= 4; active++) {
            const struct schedule *s = pipeline_schedule(&p, micro_batches, pipeline_active(&p, active));
            assert_int_equal(s != NULL, there);
            for (int rank = 0; there && rank < 2; rank++) {
                assert_true(s->rank[rank].count > 0);
                assert_true(s->blocks[rank] <= p.blocks[rank] &&
                            s->narrow_blocks[rank] <= p.narrow_blocks[rank]);
                for (int chunk = 0; chunk < 2; chunk++)
                    assert_true(s->activation_sets[rank * 2 + chunk] <= p.activation_sets[rank * 2 + chunk]);
            }
        }
    }
    /* The same actions as of a run with no other batch. */
    struct config plain = right(staged, "train.batch_size=16", NULL);
    if (pipeline_create(&plain, &place, 4, true, &alone)) fail_msg("%s", gdn_failure());
    const struct actions *a = &pipeline_schedule(&p, 4, pipeline_active(&p, 3))->rank[1],
                         *b = &pipeline_schedule(&alone, 4, pipeline_active(&alone, 3))->rank[1];
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->action, b->action, (size_t)a->count * sizeof *a->action);
    pipeline_keep(&p, 1);
    assert_true(pipeline_schedule(&p, 2, pipeline_active(&p, 4))->rank[1].count > 0 &&
                !pipeline_schedule(&p, 2, pipeline_active(&p, 4))->rank[0].count);
    pipeline_free(&p);
    pipeline_free(&alone);
    config_free(&plain);
    config_free(&config);
}

/* Any set of edges, one after the other, has schedules of its own for all numbers of micro-batches, in the room that
 * all edges need; then those of all are there again. */
static void chosen(void **state) {
    (void)state;
    struct config config = right(staged, "train.batch_ramp=[[0, 8], [10, 32], [20, 8], [30, 16]]",
                                 "model.delta.stage_steps=0");
    struct pipeline p;
    if (pipeline_create(&config, &place, 8, true, &p)) fail_msg("%s", gdn_failure());
    const struct edge_set *all = pipeline_active(&p, 4);
    const int actions = pipeline_schedule(&p, 8, all)->rank[1].count;
    bool has[64];
    assert_true(p.edges.count <= 64);
    for (uint64_t round = 0; round < 60; round++) {
        int left = 0;
        for (int e = 0; e < p.edges.count; e++) left += has[e] = random_bits(5, round, (uint64_t)e) % 64 > round;
        if (pipeline_choose(&p, has, 1)) fail_msg("%s", gdn_failure());
        const struct edge_set *active = pipeline_active(&p, 4);
        assert_true(active != all && active->count == left);
        for (int e = 0; e < p.edges.count; e++) assert_true(edge_set_has(active, e) == has[e]);
        for (int micro_batches = 1; micro_batches <= 9; micro_batches++) {
            const struct schedule *s = pipeline_schedule(&p, micro_batches, active);
            assert_int_equal(s != NULL, micro_batches == 2 || micro_batches == 4 || micro_batches == 8);
            assert_true(!s || (s->rank[1].count > 0 && !s->rank[0].count));
        }
        const int now = pipeline_schedule(&p, 8, active)->rank[1].count;
        assert_true(now <= actions && (left > p.edges.count / 2 || now < actions));
    }
    assert_int_equal(pipeline_choose(&p, NULL, 1), 0);
    assert_ptr_equal(pipeline_active(&p, 4), all);
    assert_ptr_equal(pipeline_schedule(&p, 8, all), &p.schedule);

    /* What does not fit is refused, and those before stay. */
    assert_int_equal(pipeline_choose(&p, has, 1), 0);
    const struct edge_set *before = pipeline_active(&p, 4);
    for (int i = 0; i < 2 * p.layout->chunks; i++) p.activation_sets[i] = 0;
    for (int e = 0; e < p.edges.count; e++) has[e] = true;
    assert_int_equal(pipeline_choose(&p, has, 1), GDN_INTERNAL);
    gdn_failure_clear();
    assert_ptr_equal(pipeline_active(&p, 4), before);
    pipeline_free(&p);
    config_free(&config);
}

static void one_rank(void **state) {
    (void)state;
    struct config config = right("model: {delta: {distances: []}}", NULL, NULL);
    struct pipeline p;
    if (pipeline_create(&config, &one_copy, 1, true, &p)) fail_msg("%s", gdn_failure());
    assert_true(p.ranks == 1 && !p.share && p.activation_sets[0] == 1 && p.schedule.messages == 0);
    assert_ptr_equal(pipeline_schedule(&p, 1, pipeline_active(&p, 0)), &p.schedule);
    pipeline_free(&p);
    config_free(&config);
}

/* 64 pipeline ranks, 128 layers, 512 micro-batches: seconds, which are told and not compared. */
static void large(void **state) {
    (void)state;
    struct config config = right("model: {num_layers: 128, delta: {distances: [1, 2, 4, 8]}}\n"
                                 "mesh: {pipeline: 64, tensor: 2}\ntrain: {batch_size: 512}",
                                 NULL, NULL);
    clock_t began = clock();
    struct pipeline p;
    if (pipeline_create(&config, &many, 512, true, &p)) fail_msg("%s", gdn_failure());
    pipeline_free(&p);
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    print_message("%.2f s\n", seconds);
    config_free(&config);
}

/* Of twelve connections each one, and each two, may go. With others other sources travel, so that some need
 * more buffers than all: these are counted, and `raised` says so. */
static void fewer_connections(void **state) {
    (void)state;
    struct config config = right("model: {num_layers: 6, delta: {distances: [], edges: [[2, 1], [3, 1], [4, "
                                 "-1], [1, 0], [4, 0], [2, 0], [3, -1], "
                                 "[5, -1], [5, 3], [4, 2], [3, 0], [5, 4]]}}\n"
                                 "mesh: {pipeline: 3, interleave: 2, overlap: false, narrow_sources: false}",
                                 NULL, NULL);
    struct pipeline p;
    bool has[12];
    int needed_more = 0;
    assert_int_equal(pipeline_create(&config, &one_copy, 3, true, &p), 0);
    assert_int_equal(p.edges.count, 12);
    for (int a = 0; a < 12; a++)
        for (int b = a; b < 12; b++) {
            const int raised = p.raised;
            for (int e = 0; e < 12; e++) has[e] = e != a && e != b;
            assert_int_equal(pipeline_choose(&p, has, 1), 0);
            const struct schedule *schedule = pipeline_schedule(&p, 3, pipeline_active(&p, 0));
            for (int r = 0; r < 3; r++) assert_true(schedule->blocks[r] <= p.blocks[r]);
            assert_true(schedule->rank[1].count <= p.actions[1] && schedule->messages <= p.messages);
            needed_more += p.raised > raised;
        }
    assert_true(needed_more > 0);
    pipeline_free(&p);
    config_free(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_connections), cmocka_unit_test(placement), cmocka_unit_test(flops),
        cmocka_unit_test(pipelines),         cmocka_unit_test(ramp),      cmocka_unit_test(chosen),
        cmocka_unit_test(one_rank),          cmocka_unit_test(large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
