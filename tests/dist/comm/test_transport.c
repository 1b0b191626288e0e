/* Messages between stages: contents by message number whatever the order of calls, waits by owner, bytes,
 * failures that stay. Runs on any number of ranks, in a ring; on one rank to itself. */
#include "dist/mpi/mpi_pieces.h"
#include "dist/comm/transport.h"
#include "tests/dist/comm/side.h"
#include "tests/support/rank_main.h"

enum { MESSAGES = 5, COUNT = 40000 /* elements: more than MPI sends before the receiver asks */ };

static struct mesh mesh;
static struct axis *axis;
static int next, before;
static real host_out[MESSAGES][COUNT], host_in[MESSAGES][COUNT];
static real *out[MESSAGES], *in[MESSAGES]; /* on the device */

static real element(int rank, int message, long i) {
    return (real)(rank * 100 + message * 10 + i % 7);
}

static void fill(void) {
    for (int m = 0; m < MESSAGES; m++) {
        for (long i = 0; i < COUNT; i++) host_out[m][i] = element(axis->index, m, i), host_in[m][i] = -1;
        side_put(out[m], host_out[m], COUNT);
        side_put(in[m], host_in[m], COUNT);
    }
}

static void assert_received(int message) {
    side_get(host_in[message], in[message], COUNT);
    for (long i = 0; i < COUNT; i++) assert_true(host_in[message][i] == element(before, message, i));
}

static void expect(struct transport *t, const int *message, int count) {
    int peer[MESSAGES];
    for (int i = 0; i < count; i++) peer[i] = before;
    transport_expect(t, count, peer, message);
}

/* A message as long as those of a step arrives while both ends do nothing but look after what is under way
 * now and then. */
static void messages_move_without_waits(void **state) {
    (void)state;
    struct transport *t;
    if (!axis->ops->device->host) return; /* on a device what has come may be looked at after a wait alone */
    fill();
    assert_int_equal(transport_create(axis, WIRE_STORED, 2, MESSAGES, &t), 0);
    expect(t, (int[]){0}, 1);
    transport_receive(t, 0, in[0], COUNT, before, 0, false);
    transport_send(t, 1, out[0], COUNT, next, 0, false);
    bool there = false;
    for (double began = MPI_Wtime(); !there && MPI_Wtime() - began < 20;) {
        transport_progress(t);
        side_get(host_in[0], in[0], COUNT);
        there = host_in[0][COUNT - 1] == element(before, 0, COUNT - 1);
    }
    assert_true(there);
    transport_finish(t);
    assert_int_equal(axis->status, 0);
    transport_free(t);
}

/* Received in another order than sent; one owner has two sends, whose buffer is free once both are done. */
static void messages_find_their_buffers(void **state) {
    (void)state;
    struct transport *t;
    fill();
    int64_t bytes = axis->bytes;
    assert_int_equal(transport_create(axis, WIRE_STORED, 2 * MESSAGES, MESSAGES, &t), 0);
    expect(t, (int[MESSAGES]){3, 4, 2, 1, 0}, MESSAGES);
    transport_receive(t, 3, in[3], COUNT, before, 3, false);
    for (int m = 0; m < MESSAGES; m++) transport_send(t, 10 + m / 2, out[m], COUNT, next, m, false);
    for (int m = MESSAGES - 1; m >= 0; m--) {
        if (m != 3) transport_receive(t, m, in[m], COUNT, before, m, false);
        transport_wait(t, m);
        assert_received(m);
    }
    transport_wait(t, 10);
    axis->ops->zero(COUNT, out[0]);
    axis->ops->zero(COUNT, out[1]);
    transport_finish(t);
    assert_int_equal(axis->status, 0);
    assert_int_equal(axis->bytes - bytes, MESSAGES * COUNT * (long)sizeof(real));
    transport_free(t);
}

static void empty_messages_arrive(void **state) {
    (void)state;
    struct transport *t;
    fill();
    assert_int_equal(transport_create(axis, WIRE_STORED, 2, 1, &t), 0);
    expect(t, (int[]){0}, 1);
    transport_send(t, 1, out[0], 0, next, 0, false);
    transport_receive(t, 0, in[0], 0, before, 0, false);
    transport_wait(t, 0);
    transport_finish(t);
    assert_int_equal(axis->status, 0);
    side_get(host_in[0], in[0], 1);
    assert_true(host_in[0][0] == -1);
    transport_free(t);
}

/* Long messages go in pieces, however many of one length they are. */
static void messages_in_pieces(void **state) {
    const long max = mpi_piece_max;
    side_longest();
    for (mpi_piece_max = COUNT; mpi_piece_max >= COUNT / MPI_PIECES; mpi_piece_max /= 3) {
        messages_find_their_buffers(state);
        assert_true(side_longest() <= mpi_piece_max);
        empty_messages_arrive(state);
    }
    mpi_piece_max = 1; /* no more pieces than that */
    messages_find_their_buffers(state);
    assert_true(side_longest() <= COUNT / MPI_PIECES);
    mpi_piece_max = max;
}

/* More than was reserved for is an error that stays; nothing is sent or received after it. */
static void failures_stay(void **state) {
    (void)state;
    struct transport *t;
    fill();
    assert_int_equal(transport_create(axis, WIRE_STORED, 1, 2, &t), 0);
    expect(t, (int[]){0, 1}, 2);
    transport_receive(t, 0, in[0], 0, before, 0, false);
    transport_receive(t, 1, in[1], COUNT, before, 1, false);
    assert_int_equal(axis->status, GDN_INTERNAL);
    int64_t bytes = axis->bytes;
    transport_send(t, 2, out[0], COUNT, next, 0, false);
    assert_int_equal(axis->bytes, bytes);
    axis->status = 0;
    gdn_failure_clear();
    MPI_Barrier(axis->comm);
    transport_free(t);
}

static int set_up(void) {
    TRY(side_mesh(1, 1, test_ranks, &mesh));
    axis = &mesh.axis[AXIS_PIPELINE];
    for (int m = 0; m < MESSAGES; m++) out[m] = side_make(NULL, COUNT), in[m] = side_make(NULL, COUNT);
    next = (test_rank + 1) % test_ranks, before = (test_rank + test_ranks - 1) % test_ranks;
    return 0;
}

static void tear_down(void) {
    for (int m = 0; m < MESSAGES; m++) side_drop(out[m]), side_drop(in[m]);
    mesh_free(&mesh);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_find_their_buffers),
        cmocka_unit_test(empty_messages_arrive),
        cmocka_unit_test(messages_in_pieces),
        cmocka_unit_test(messages_move_without_waits),
        cmocka_unit_test(failures_stay), /* last: it leaves a receive behind */
    };
    return run_on_ranks(tests, set_up, tear_down);
}
