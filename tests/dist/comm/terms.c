#include "tests/dist/comm/terms.h"

#include <stdlib.h>

#include "dist/mpi/mpi_pieces.h"
#include "kernels/base/random.h"
#include "tests/support/unit.h"

struct mesh mesh;
struct axis *axis;
real *terms, right[PERIOD];

static void draw(void) {
    terms = malloc((size_t)mesh.size * PERIOD * sizeof *terms);
    for (int r = 0; r < mesh.size; r++)
        for (int i = 0; i < PERIOD; i++) {
            double x = random_normal(7, (uint64_t)r, (uint64_t)i);
            terms[r * PERIOD + i] = (real)(random_bits(8, (uint64_t)r, (uint64_t)i) % 2 ? x * 1e5 : x);
        }
    long order_matters = 0;
    for (int i = 0; i < PERIOD; i++) {
        right[i] = terms[i];
        for (int r = 1; r < mesh.size; r++) right[i] += terms[r * PERIOD + i];
        real backwards = terms[(mesh.size - 1) * PERIOD + i];
        for (int r = mesh.size - 2; r >= 0; r--) backwards += terms[r * PERIOD + i];
        order_matters += backwards != right[i];
    }
    if (mesh.size > 2) assert_true(order_matters > 0); /* else these tests could not tell */
}

struct buffer mine(long count) {
    struct buffer b = {.host = malloc((size_t)(count + 1) * sizeof *b.host), .count = count};
    for (long i = 0; i < count; i++) b.host[i] = terms[mesh.rank * PERIOD + i % PERIOD];
    b.host[count] = 12345;
    b.x = side_make(b.host, count + 1);
    return b;
}

void put(const struct buffer *b) {
    side_put(b->x, b->host, b->count + 1);
}

void get(const struct buffer *b) {
    side_get(b->host, b->x, b->count + 1);
    assert_true(b->host[b->count] == 12345);
}

void drop(struct buffer *b) {
    side_drop(b->x);
    free(b->host);
}

void check_pieces(long min) {
    assert_true(side_longest() <= (min > mpi_piece_max ? min : mpi_piece_max));
}

int64_t counted(void) {
    static int64_t before;
    int64_t now = axis->bytes - before;
    before = axis->bytes;
    return now;
}

int terms_set_up(void) {
    TRY(side_mesh(0, 1, 1, &mesh));
    axis = &mesh.axis[AXIS_DATA];
    draw();
    return 0;
}

void terms_tear_down(void) {
    free(terms);
    mesh_free(&mesh);
}
