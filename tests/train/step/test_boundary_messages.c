/* Messages of compressed boundaries, one by one: what they bring of a gradient, feedback brings back what was
 * dropped, short messages, seeds, and settings that save nothing. */
#include <math.h>
#include <string.h>

#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "tests/support/backend.h"
#include "tests/support/unit.h"
#include "tests/train/config/config_fixture.h"
#include "tests/train/step/boundary_case.h"
#include "train/partition/pipeline.h"
#include "train/step/boundary.h"

enum { T = 6, D = 5 };

static const struct partition_place one_copy = {.copies = 1, .batch_parts = 1};

/* The second of two stages, with its actions of a training step, compresses to factors of rank 1. */
struct compressor {
    struct config config;
    struct pipeline pipeline;
    struct boundary boundary;
    struct arena arena, device;
    real *block; /* [T, D] on the device */
};

static const struct ops *side(void) {
    return test_backend("cpu");
}

static void begin(struct compressor *p, bool feedback, bool interleave) {
    char *set[] = {"mesh.pipeline=2", "mesh.narrow_sources=false",
                   interleave ? "mesh.interleave=2" : "mesh.interleave=1"};
    *p = (struct compressor){.arena.name = "test"};
    assert_int_equal(config_parse(base, "test", set, 3, &p->config), 0);
    assert_int_equal(pipeline_create(&p->config, &one_copy, 4, true, &p->pipeline), 0);
    struct layout *layout = &p->pipeline.layout[1];
    layout->compress = 0.2;
    layout->feedback = feedback;
    p->boundary = (struct boundary){.ops = side(),
                                    .pipeline = &p->pipeline,
                                    .layout = layout,
                                    .T = T,
                                    .D = D,
                                    .nodes = p->config.model.num_layers + 1};
    p->device = (struct arena){.name = "test", .device = side()->device};
    boundary_lay_out(&p->boundary, &p->arena, &p->device);
    assert_int_equal(arena_reserve(&p->arena), 0);
    assert_int_equal(arena_reserve(&p->device), 0);
    boundary_lay_out(&p->boundary, &p->arena, &p->device);
    p->block = side()->device->reserve(T * D * sizeof *p->block);
    boundary_begin(&p->boundary, 7, 4);
}

static void end(struct compressor *p) {
    arena_free(&p->arena);
    arena_free(&p->device);
    side()->device->release(p->block);
    pipeline_free(&p->pipeline);
    config_free(&p->config);
}

/* 3 a bᵀ + c dᵀ, where a and c, b and d stand at right angles and have length 1. */
static void fill(real *x) {
    static const double a[T] = {0.6, 0, 0.8}, c[T] = {0, 1}, b[D] = {0, 0.8, -0.6}, d[D] = {0, 0, 0, 1};
    for (int i = 0; i < T; i++)
        for (int j = 0; j < D; j++) x[i * D + j] = (real)(3 * a[i] * b[j] + c[i] * d[j]);
}

static const struct action *first_send(const struct actions *list, int chunk, enum payload payload,
                                       int micro_batch) {
    for (int i = 0; i < list->count; i++) {
        const struct action *a = &list->action[i];
        if (a->act == ACT_SEND && a->chunk == chunk && a->payload == payload && a->micro_batch == micro_batch)
            return a;
    }
    fail_msg("no message of payload %d", (int)payload);
    return NULL;
}

/* What arrives of x [rows, D] as the action's message. */
static void send_as(struct compressor *p, const struct action *a, long rows, const real *x, real *y) {
    const struct device *device = side()->device;
    size_t bytes = (size_t)(rows * D) * sizeof *x;
    device->upload(p->block, x, bytes);
    const real *message = boundary_compress(&p->boundary, &p->pipeline.schedule.rank[1], a, rows, p->block);
    assert_ptr_equal(message, boundary_room(&p->boundary, a->buffer));
    device->clear(p->block, bytes);
    boundary_decompress(&p->boundary, a->buffer, rows, p->block);
    device->download(y, p->block, bytes);
    assert_int_equal(device->status(), 0);
}

/* The same as micro-batch `micro_batch`'s first message of a payload from the first chunk. */
static void send(struct compressor *p, enum payload payload, int micro_batch, long rows, real *x, real *y) {
    send_as(p, first_send(&p->pipeline.schedule.rank[1], 0, payload, micro_batch), rows, x, y);
}

static double difference(const real *x, const real *y, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return sqrt(sum);
}

/* Of a gradient of two singular values the next message of the same gradient, of nothing by itself, brings
 * what was dropped; no other one does, nor does the next step's. */
static void test_feedback(void **state) {
    (void)state;
    static const real zeros[T * D];
    for (int feedback = 0; feedback < 2; feedback++) {
        struct compressor p;
        real whole[T * D], x[T * D], first[T * D], other[T * D], second[T * D], third[T * D];
        const double exact = FULL_RANK;
        begin(&p, feedback, false);
        fill(whole);
        memcpy(x, whole, sizeof x);
        send(&p, PAYLOAD_STREAM_GRADIENT, 0, T, x, first);
        assert_true(difference(first, whole, T * D) > 0.9); /* rank 1 of values 3 and 1 */
        memcpy(x, zeros, sizeof x);
        send(&p, PAYLOAD_SOURCE_GRADIENT, 0, T, x, other);
        assert_true(difference(other, zeros, T * D) == 0);
        memcpy(x, zeros, sizeof x);
        send(&p, PAYLOAD_STREAM_GRADIENT, 1, T, x, second);
        for (int i = 0; i < T * D; i++) first[i] += second[i];
        assert_int_equal(difference(first, whole, T * D) < exact, feedback);
        memcpy(x, zeros, sizeof x);
        send(&p, PAYLOAD_STREAM_GRADIENT, 2, T, x, third);
        assert_true(difference(third, zeros, T * D) < exact); /* all has been said */

        memcpy(x, whole, sizeof x);
        send(&p, PAYLOAD_SOURCE_GRADIENT, 1, T, x, first);
        memcpy(x, zeros, sizeof x);
        send(&p, PAYLOAD_SOURCE_GRADIENT, 2, T, x, second);
        for (int i = 0; i < T * D; i++) first[i] += second[i];
        assert_int_equal(difference(first, whole, T * D) < exact, feedback);
        end(&p);

        begin(&p, feedback, false);
        memcpy(x, whole, sizeof x);
        send(&p, PAYLOAD_STREAM_GRADIENT, 0, T, x, first);
        boundary_begin(&p.boundary, 8, 4);
        memcpy(x, zeros, sizeof x);
        send(&p, PAYLOAD_STREAM_GRADIENT, 1, T, x, second);
        assert_true(difference(second, zeros, T * D) == 0);
        end(&p);
    }
}

/* Each message has what was dropped of its own: not of another payload, in fewer rows, nor of the same node's
 * source gradient from another chunk. */
static void test_own_feedback(void **state) {
    (void)state;
    static const enum payload payloads[] = {PAYLOAD_STREAM_GRADIENT, PAYLOAD_SOURCE_GRADIENT};
    static const real zeros[T * D];
    struct compressor p;
    real x[T * D], y[T * D];
    for (int i = 0; i < 2; i++) {
        begin(&p, true, false);
        fill(x);
        send(&p, payloads[i], 0, T, x, y);
        memcpy(x, zeros, sizeof x);
        send(&p, payloads[1 - i], 0, 2, x, y);
        assert_true(difference(y, zeros, 2 * D) == 0);
        end(&p);
    }
    begin(&p, true, true);
    const struct action *later = first_send(&p.pipeline.schedule.rank[1], 1, PAYLOAD_SOURCE_GRADIENT, 0),
                        *own = later;
    while (own->act != ACT_SEND || own->chunk || own->payload != PAYLOAD_SOURCE_GRADIENT ||
           own->index != later->index)
        own++;
    assert_true(own->micro_batch == 0);
    fill(x);
    send_as(&p, later, T, x, y);
    memcpy(x, zeros, sizeof x);
    send_as(&p, own, T, x, y);
    assert_true(difference(y, zeros, T * D) == 0);
    end(&p);
}

/* A single row has rank 1, and nothing at all is no message. */
static void test_few_rows(void **state) {
    (void)state;
    struct compressor p;
    real x[T * D], whole[D], y[D] = {0};
    begin(&p, true, false);
    fill(x);
    memcpy(whole, x, sizeof whole);
    send(&p, PAYLOAD_STREAM_GRADIENT, 0, 1, x, y);
    assert_true(difference(y, whole, D) < FULL_RANK);
    send(&p, PAYLOAD_STREAM_GRADIENT, 1, 0, x, y);
    assert_true(difference(y, whole, D) < FULL_RANK); /* not touched */
    assert_int_equal(boundary_elements(p.boundary.layout, 0, D), 0);
    assert_int_equal(boundary_elements(p.boundary.layout, 1, D), 1 + D);
    assert_int_equal(boundary_elements(p.boundary.layout, T, D), T + D);
    end(&p);
}

/* The same content gives the same bits with the same step and message, and begins elsewhere with others. */
static void test_seed(void **state) {
    (void)state;
    static const struct {
        uint64_t step;
        int micro_batch;
    } cases[] = {{8, 0}, {8, 0}, {9, 0}, {8, 1}};
    real x[T * D], y[4][T * D];
    for (int i = 0; i < 4; i++) {
        struct compressor p;
        begin(&p, true, false);
        boundary_begin(&p.boundary, cases[i].step, 4);
        for (int j = 0; j < T * D; j++) x[j] = (real)random_normal(1, 2, (uint64_t)j);
        send(&p, PAYLOAD_STREAM_GRADIENT, cases[i].micro_batch, T, x, y[i]);
        end(&p);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_true(memcmp(y[0], y[2], sizeof y[0]) && memcmp(y[0], y[3], sizeof y[0]));
}

/* ------------------------------------------------------------------------------------------------- errors */

/* A block of 12·24 elements; factors of rank k have 36·k: up to 7 of 12 save something. */
static void test_errors(void **state) {
    (void)state;
    struct pipeline pipeline;
    struct config config = right(base, "mesh.pipeline=2", "mesh.compress_boundary=0.58");
    assert_int_equal(pipeline_create(&config, &one_copy, 8, true, &pipeline), 0);
    pipeline_free(&pipeline);
    config.mesh.compress_boundary = 0.67; /* rank 8: 288 elements instead of 288 */
    assert_int_equal(pipeline_create(&config, &one_copy, 8, true, &pipeline), GDN_INPUT);
    static const char *const text[] = {"mesh.compress_boundary: 0.67", "model.hidden_size 24",
                                       "train.micro_batch_size 1", "train.sequence_length 12",
                                       "at most 0.5833"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) failure_has(text[i]);
    failure_is_short();
    gdn_failure_clear();
    assert_int_equal(pipeline_create(&config, &one_copy, 8, false, &pipeline), 0); /* evaluation: exact */
    assert_true(pipeline.layout[0].compress == 0);
    pipeline_free(&pipeline);
    config.train.sequence_length = 1; /* one token: as many elements as its factors, but one */
    assert_int_equal(pipeline_create(&config, &one_copy, 8, true, &pipeline), GDN_INPUT);
    failure_has("none saves");
    gdn_failure_clear();
    config_free(&config);
    refused(base, "mesh.compress_boundary=0.5", "mesh.compress_boundary: 0.5", "mesh.pipeline: 1", NULL);
    refused(base, "mesh.compress_boundary=1.5", "mesh.compress_boundary", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_feedback), cmocka_unit_test(test_own_feedback),
                                       cmocka_unit_test(test_few_rows), cmocka_unit_test(test_seed),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
