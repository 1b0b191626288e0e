/* Stored differences of delta connections: RUN/deltas/step_00000100/layer_003.h5, one file for each layer and
 * step, whatever mesh wrote it. HDF5, readable with h5ls and h5py: a group `distance_D` for each connection
 * with `U` [T, rank], `sigma` [rank], `Vt` [rank, hidden] and `gate_histogram` [DELTA_BINS], each with its
 * checksum (attribute "xxh3"), and the rest of struct delta_record as attributes of the group; root
 * attributes `format_version` 1, `step`, `layer`. Numbers are of the build's type. */
#ifndef GDN_DELTA_FILE_H
#define GDN_DELTA_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/lowrank/lowrank.h"

enum { DELTA_BINS = 32 };

/* One connection's difference δ = target − source of one micro-batch. */
struct delta_record {
    int64_t step; /* 0-based, as in metrics.jsonl */
    int layer, distance, source;
    long batch, length;     /* T = batch·length: `original_shape` is [batch, length, hidden] */
    struct factors factors; /* attributes `rank`, `relative_error`, `norm` */
    /* Over all of the connection's gates: `gate_mean`, `gate_deviation`, `gate_least`, `gate_most`, and how
     * many lie in each 32nd of [0, 1]. */
    double gate_mean, gate_deviation, gate_least, gate_most;
    int64_t gate_histogram[DELTA_BINS];
};

/* Bytes that a file of so many records has, at most. */
long delta_file_max(long count, long T, long D, long rank);

/* Makes the file of `count` records of one step and layer in memory. *image is the caller's to free().
 * GDN_INTERNAL. Touches no disk. */
int delta_file_image(const struct delta_record *record, int count, void **image, size_t *bytes);

/* Writes it as DIRECTORY/step_N/layer_NNN.h5: under another name, synced, then renamed, so that it is
 * complete or not there. Uses no HDF5 and may run on another thread; returns 0 or errno, and makes the name
 * in `path`. */
int delta_file_write(const char *directory, int64_t step, int layer, const void *image, size_t bytes,
                     char path[4096]);

/* What a run has stored. */
struct delta_entry {
    char *path;
    int64_t step;
    int layer, distance;
};
struct delta_list {
    int count;
    struct delta_entry *entry; /* by step, layer, distance */
};

/* Lists RUN/deltas (or that directory itself). GDN_INPUT where there is none, or a file is damaged: names
 * it. */
int delta_list_open(const char *run, struct delta_list *out);
void delta_list_free(struct delta_list *list);

/* Reads one, checking its checksums; with its factors, the caller's to free with delta_record_free.
 * GDN_INPUT. */
int delta_record_read(const struct delta_entry *entry, struct delta_record *out);
void delta_record_free(struct delta_record *record);

#endif
