/* One checkpoint.h5: created, written, verified and read by the ranks of a file group. Private to dist/.
 *
 * There are two kinds of checksums. The digest (digest.h) covers every byte of the file and is verified
 * before HDF5 opens it, since HDF5 1.10 can hang or crash on damaged metadata. Attribute "placed_sum" of each
 * dataset (data/hdf5/sum.h) covers its elements and is computed from memory before they are written, so that
 * verifying after a save detects a faulty write and verifying at load a faulty read; it is kept where other
 * programs copy datasets. */
#ifndef GDN_CHECKPOINT_FILE_H
#define GDN_CHECKPOINT_FILE_H

#include <hdf5.h>
#include <stdint.h>

#include "dist/checkpoint/file_group.h"
#include "dist/checkpoint/parts.h"
#include "data/hdf5/h5.h"

enum { FORMAT_VERSION = 2 };

#define CHECKPOINT_FILE "checkpoint.h5"

enum {
    FILE_NAME = ROWS_NAME + 16,
    FILE_PART_NAME = 16,     /* "part_00000.h5" */
    FILE_OVERHEAD = 1 << 20, /* bytes of a file, at most, besides its datasets and its configuration */
    FILE_METADATA = 2048, /* bytes that a dataset takes besides its elements, at most: names, checksum, … */
};

#define FILE_SCALES "scales/product" /* dataset: content->scales */
#define FILE_SPIKES "spikes/window"  /* dataset: content->spikes */
#define FILE_PRUNING "pruning"        /* dataset of bytes: info->pruning */
#define FILE_TOKENIZER "tokenizer.json" /* datasets of bytes: info->tokenizer and tokenizer_config */
#define FILE_TOKENIZER_CONFIG "tokenizer_config.json"
#define FILE_PARTS "parts" /* root attribute: the files that a checkpoint.h5 joins, and their digests */

/* A dataset to be made. */
struct file_dataset {
    char name[FILE_NAME];
    int ndim;
    long shape[2];
    bool has_sum;
    uint64_t sum; /* its checksum */
};

/* A part of a dataset that lies in a file of its own (checkpoint/node.h). */
struct file_piece {
    int dataset, node, index; /* in the node's file its name is the dataset's with the index */
    long at[2], size[2];
};

/* A file to be made: datasets of reals, which ranks then fill, and what is small. */
struct file_plan {
    int datasets;
    const struct file_dataset *dataset;
    int pieces;                     /* 0: the datasets' elements are to lie in this file */
    const struct file_piece *piece; /* by dataset */
    const char *digests;            /* attribute FILE_PARTS; NULL: none */
    const struct table *global;
    const int64_t *steps;               /* [global->rows]; NULL: none */
    const uint32_t *scales;             /* [num_scales] */
    long num_scales;                    /* 0: none */
    const double *spikes;               /* [spike_values] */
    long spike_values;                  /* 0: none */
    const struct checkpoint_info *info; /* root attributes; NULL: none */
    int64_t bytes;                      /* that the file has at most */
};

/* Where file_fill writes: each part either has a dataset of its own, or lies in its tensor's. */
struct file_places {
    const int64_t *offset; /* [parts->count], or [parts->datasets] */
    bool own;
};

/* Makes a new file with all datasets in place, synced; offset [plan->datasets] receives where their elements
 * begin, where they lie in it. One process. GDN_INTERNAL; a part of the file may be left, for the caller to
 * remove. */
int file_make(const char *path, const struct file_plan *plan, int64_t *offset);

/* Refuses files longer than this process may write. Not collective. GDN_INTERNAL. */
int file_verify_limit(const char *path, int64_t bytes);

/* Writes this rank's parts into the file that file_make has made, and syncs. Not collective. GDN_INTERNAL. */
int file_fill(const char *path, const struct parts *parts, const struct file_places *places);

/* Bytes that a checkpoint's configuration and other texts take at most. */
int64_t file_text_bytes(const struct checkpoint_info *info);

/* Whether the file is whole, by its digest. Collective. GDN_INPUT where it is not, or has no digest. */
int file_verify(const struct file_group *group, const char *path);

/* Opens a file that was verified, and reads the root attributes: the strings of `info` are
 * the caller's, by file_info_free, the file to H5Fclose. Not collective. GDN_INPUT; then nothing is
 * open. */
int file_open(const char *path, hid_t *file, struct checkpoint_info *info);
/* Frees the three. */
void file_info_free(struct checkpoint_info *info);

/* What file_verify_datasets has counted. */
struct file_size {
    int datasets;
    int64_t bytes; /* of the elements */
};

/* Verifies every dataset's checksum of a file that is whole by its digest. Collective. GDN_INPUT. */
int file_verify_datasets(const struct file_group *group, const char *path, struct file_size *out);

#endif
