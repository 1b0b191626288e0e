#include "sample.h"

#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/base/random.h"

static const struct row rows[] = {
    {.name = "embed.weight", .ndim = 2, .shape = {7, 5}, .layer = -1},
    {.name = "layers.0.mlp.up.weight", .ndim = 2, .shape = {6, 5}, .transposed = true},
    {.name = "layers.0.norm.weight", .ndim = 1, .shape = {5, 1}},
    {.name = "layers.1.delta.1.gate_in.weight",
     .ndim = 2,
     .shape = {3, 5},
     .transposed = true,
     .distance = 1},
    {.name = "layers.1.delta.1.mix", .ndim = 1, .shape = {1, 1}, .distance = 1},
    {.name = "layers.1.select.weight", .ndim = 2, .shape = {1, 5}, .select = true},
    {.name = "norm.weight", .ndim = 1, .shape = {5, 1}, .layer = -1},
};
enum { ROWS = sizeof rows / sizeof *rows, GAP = 3 };

struct sample *sample_new(int scale, int seed) {
    struct sample *s = calloc(1, sizeof *s);
    s->table.rows = ROWS;
    s->table.row = malloc(sizeof rows);
    memcpy(s->table.row, rows, sizeof rows);
    long at = 0;
    for (int i = 0; i < ROWS; i++) {
        struct row *row = &s->table.row[i];
        row->shape[0] *= scale;
        if (row->ndim == 2) row->shape[1] *= scale;
        row->count = row->shape[0] * row->shape[1];
        row->offset = at;
        at += row->count + GAP;
    }
    s->table.total = at;
    real **buffers[] = {&s->state.weight, &s->state.exp_avg, &s->state.exp_avg_sq};
    for (int b = 0; b < 3; b++) {
        *buffers[b] = malloc((size_t)at * sizeof(real));
        for (long i = 0; i < at; i++)
            (*buffers[b])[i] = (real)random_uniform((uint64_t)seed, (uint64_t)b, (uint64_t)i) - (real)0.5;
    }
    s->state.steps = malloc(ROWS * sizeof(int64_t));
    for (int i = 0; i < ROWS; i++) s->state.steps[i] = (int64_t)seed * 1000000007 + i;
    return s;
}

void sample_free(struct sample *s) {
    free(s->table.row);
    free(s->state.weight);
    free(s->state.exp_avg);
    free(s->state.exp_avg_sq);
    free(s->state.steps);
    free(s);
}

bool sample_same(const struct sample *a, const struct sample *b) {
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &a->table.row[i];
        size_t bytes = (size_t)row->count * sizeof(real);
        if (memcmp(a->state.weight + row->offset, b->state.weight + row->offset, bytes)) return false;
        if (memcmp(a->state.exp_avg + row->offset, b->state.exp_avg + row->offset, bytes)) return false;
        if (memcmp(a->state.exp_avg_sq + row->offset, b->state.exp_avg_sq + row->offset, bytes)) return false;
    }
    return !memcmp(a->state.steps, b->state.steps, ROWS * sizeof(int64_t));
}

struct checkpoint_info sample_info(int64_t step, double loss, double best_loss) {
    return (struct checkpoint_info){.step = step,
                                    .samples = 32 * step,
                                    .config = "model:\n  hidden_size: 5 # größer\n",
                                    .loss = loss,
                                    .best_loss = best_loss};
}

char *scratch_new(const struct mesh *mesh) {
    const char *base = getenv("TMPDIR");
    char *path = calloc(1, 256);
    snprintf(path, 256, "%s/gdn-test-dist.XXXXXX", base ? base : "/tmp");
    if (mesh->rank == 0) assert_non_null(mkdtemp(path));
    assert_int_equal(mesh_broadcast(mesh, path, 256), 0);
    return path;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *walk) {
    (void)about, (void)kind, (void)walk;
    return remove(path);
}

void scratch_remove(const struct mesh *mesh, char *scratch) {
    MPI_Barrier(mesh->world);
    if (mesh->rank == 0) assert_int_equal(nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(scratch);
}

const char *format(const char *text, ...) {
    static char buffers[8][512];
    static int next;
    char *out = buffers[next++ % 8];
    va_list list;
    va_start(list, text);
    vsnprintf(out, sizeof buffers[0], text, list);
    va_end(list);
    return out;
}

long file_length(const char *path) {
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return (long)about.st_size;
}

void flip_bit(const char *path, long byte, int bit) {
    unsigned char c;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &c, 1, byte), 1);
    c ^= (unsigned char)(1u << bit);
    assert_int_equal(pwrite(fd, &c, 1, byte), 1);
    close(fd);
}

char *read_bytes(const char *path, long *length) {
    *length = file_length(path);
    char *bytes = calloc(1, (size_t)*length + 1);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, (size_t)*length, file), *length);
    fclose(file);
    return bytes;
}

void write_bytes(const char *path, const char *bytes, long length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, (size_t)length, file), length);
    assert_int_equal(fclose(file), 0);
}

void write_text(const char *path, const char *text) {
    write_bytes(path, text, (long)strlen(text));
}
