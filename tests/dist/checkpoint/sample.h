/* A small parameter table and training state to save and load, and files that tests damage. */
#ifndef GDN_TEST_SAMPLE_H
#define GDN_TEST_SAMPLE_H

#include "dist/checkpoint/checkpoint.h"
#include "tests/support/unit.h"

struct sample {
    struct table table;
    struct state state;
};

/* A table with all kinds of rows (one and two dimensions, transposed, delta, select), with a gap between
 * rows, each dimension multiplied by `scale`, and a state that is a function of `seed`. */
struct sample *sample_new(int scale, int seed);
void sample_free(struct sample *sample);

/* The part of `full` that a rank of the mesh's tensor axis has: rows of every tensor that has enough of
 * them, of the others the first rank the whole. What it saves is then spread over the ranks. */
struct sample *sample_part(const struct sample *full, const struct mesh *mesh);

/* Saves through the ranks' parts; loads everything on every rank. As checkpoint_save, and checkpoint_open
 * with checkpoint_load, but with nothing to close: the information goes to `info` (NULL: nowhere), whose text
 * stays until the next call. */
extern enum checkpoint_files sample_files; /* how they are saved */
extern long sample_keep_every;             /* checkpoint_keep.every */
int sample_save(const struct mesh *mesh, const char *directory, const struct sample *sample,
                const struct checkpoint_info *info, int keep);
int sample_load(const struct mesh *mesh, const char *path, struct sample *sample,
                struct checkpoint_info *info);

/* To load everything. */
struct checkpoint_content sample_content(struct sample *sample);

/* Whether all tensors and step counts are the same bits. The gaps do not count. */
bool sample_same(const struct sample *a, const struct sample *b);

/* Information to go with it. */
struct checkpoint_info sample_info(int64_t step, double loss, double best_loss);

/* A path "format" in a buffer that is used again after eight more. */
const char *format(const char *text, ...) __attribute__((format(printf, 1, 2)));

long file_length(const char *path);
void flip_bit(const char *path, long byte, int bit);
void write_text(const char *path, const char *text);
char *read_bytes(const char *path, long *length); /* free() it; a zero byte follows the last */
void write_bytes(const char *path, const char *bytes, long length);

#endif
