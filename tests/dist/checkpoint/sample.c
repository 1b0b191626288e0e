#include "tests/dist/checkpoint/sample.h"

#include <fcntl.h>
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
static const struct moments moments = {2, {"exp_avg", "exp_avg_sq"}};

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
        row->local[0] = row->shape[0], row->local[1] = row->shape[1];
        row->count = row->shape[0] * row->shape[1];
        row->counted = true;
        row->treatment.moments = &moments;
        row->offset = at;
        at += row->count + GAP;
    }
    s->table.total = at;
    real **buffers[] = {&s->state.weight, &s->state.moment[0], &s->state.moment[1]};
    for (int b = 0; b < 3; b++) {
        *buffers[b] = malloc((size_t)at * sizeof(real));
        for (long i = 0; i < at; i++)
            (*buffers[b])[i] = (real)random_uniform((uint64_t)seed, (uint64_t)b, (uint64_t)i) - (real)0.5;
    }
    s->state.steps = malloc(ROWS * sizeof(int64_t));
    for (int i = 0; i < ROWS; i++) s->state.steps[i] = (int64_t)seed * 1000000007 + i;
    return s;
}

/* Copies this rank's part of one row between the whole tensor and its own place. */
static void copy_part(const struct row *row, const struct row *full, const real *from, real *to) {
    for (long r = 0; r < row->local[0]; r++)
        for (long c = 0; c < row->local[1]; c++) {
            long global = row->start[0] + r;
            long a = row->transposed ? c * row->shape[0] + global : global * row->shape[1] + c;
            long b = row->transposed ? c * row->local[0] + r : r * row->local[1] + c;
            to[row->offset + b] = from[full->offset + a];
        }
}

struct sample *sample_part(const struct sample *full, const struct mesh *mesh) {
    struct sample *part = sample_new(1, 99);
    long index = mesh->axis[AXIS_TENSOR].index, size = mesh->axis[AXIS_TENSOR].size, at = 0;
    memcpy(part->table.row, full->table.row, sizeof rows);
    for (int i = 0; i < ROWS; i++) {
        struct row *row = &part->table.row[i];
        if (row->shape[0] >= size) {
            row->start[0] = row->shape[0] * index / size;
            row->local[0] = row->shape[0] * (index + 1) / size - row->start[0];
        } else {
            row->counted = index == 0;
        }
        row->count = row->local[0] * row->local[1];
        row->offset = at;
        at += row->count + GAP;
    }
    part->table.total = at;
    const real *from[] = {full->state.weight, full->state.moment[0], full->state.moment[1]};
    real **to[] = {&part->state.weight, &part->state.moment[0], &part->state.moment[1]};
    for (int b = 0; b < 3; b++) {
        *to[b] = realloc(*to[b], (size_t)at * sizeof(real));
        for (int i = 0; i < ROWS; i++) copy_part(&part->table.row[i], &full->table.row[i], from[b], *to[b]);
    }
    memcpy(part->state.steps, full->state.steps, ROWS * sizeof(int64_t));
    return part;
}

enum checkpoint_files sample_files = FILES_ONE;
long sample_keep_every;

int sample_save(const struct mesh *mesh, const char *directory, const struct sample *sample,
                const struct checkpoint_info *info, int keep) {
    struct sample *part = sample_part(sample, mesh);
    struct checkpoint_content content = {
        .global = &sample->table, .table = &part->table, .state = &part->state};
    struct checkpoint_keep kept = {.newest = keep, .every = sample_keep_every};
    int status = checkpoint_save(mesh, directory, &content, info, &kept, sample_files);
    sample_free(part);
    return status;
}

struct checkpoint_content sample_content(struct sample *sample) {
    return (struct checkpoint_content){
        .global = &sample->table, .table = &sample->table, .state = &sample->state};
}

int sample_load(const struct mesh *mesh, const char *path, struct sample *sample,
                struct checkpoint_info *info) {
    static char config[300000], data[1000];
    struct checkpoint checkpoint;
    struct checkpoint_content content = sample_content(sample);
    int status = checkpoint_open(mesh, path, &checkpoint);
    if (status) return status;
    status = checkpoint_load(mesh, &checkpoint, &content);
    snprintf(config, sizeof config, "%s", checkpoint.info.config);
    snprintf(data, sizeof data, "%s", checkpoint.info.data ? checkpoint.info.data : "");
    if (info) *info = checkpoint.info, info->config = config, info->data = checkpoint.info.data ? data : NULL;
    checkpoint_close(&checkpoint);
    return status;
}

void sample_free(struct sample *s) {
    free(s->table.row);
    free(s->state.weight);
    free(s->state.moment[0]);
    free(s->state.moment[1]);
    free(s->state.steps);
    free(s);
}

bool sample_same(const struct sample *a, const struct sample *b) {
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &a->table.row[i];
        size_t bytes = (size_t)row->count * sizeof(real);
        if (memcmp(a->state.weight + row->offset, b->state.weight + row->offset, bytes)) return false;
        if (memcmp(a->state.moment[0] + row->offset, b->state.moment[0] + row->offset, bytes)) return false;
        if (memcmp(a->state.moment[1] + row->offset, b->state.moment[1] + row->offset, bytes)) return false;
    }
    return !memcmp(a->state.steps, b->state.steps, ROWS * sizeof(int64_t));
}

struct checkpoint_info sample_info(int64_t step, double loss, double best_loss) {
    return (struct checkpoint_info){.step = step,
                                    .samples = 32 * step,
                                    .config = "model:\n  hidden_size: 5 # größer\n",
                                    .data = "300 tokens, xxh3 0123456789abcdef\n",
                                    .loss = loss,
                                    .best_loss = best_loss};
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
