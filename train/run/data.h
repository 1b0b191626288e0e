/* The data that a run trains and is measured on. */
#ifndef GDN_RUN_DATA_H
#define GDN_RUN_DATA_H

#include <stdio.h>

#include "data/sampler.h"
#include "dist/mesh/mesh.h"
#include "train/evaluation/validation.h"
#include "train/run/position.h"
#include "train/run/tokenizer.h"

/* Of the first and second half of a batch: what the means of the loss are over. */
struct batch_counts {
    int64_t targets[2]; /* that count in the loss */
    int64_t tokens[2];  /* inputs but padding: the connections' terms */
};

struct run_data {
    struct run_tokenizer tokenizer;
    struct sampler *sampler; /* training samples */
    struct validation validation;
    struct validation few; /* of its first set, what train.prune measures on by leave_one_out; else no sets */
    int32_t
        *rows; /* [share, sequence_length + 1] this data rank's part of the next batch, from the first on:
                 whole sequences, on all context ranks */
    int32_t *pieces; /* [2 · share, piece + 1] this rank's pieces of them (dist/layout/pieces.h), with several
                        context ranks; else NULL */
    /* What counts of the next batch's two halves, on all data ranks: everything, unless the data are
     * `masked`: some tokens do not (kernels/base/marks.h). The same on all ranks once run_data_count has been
     * called. */
    bool masked;
    struct batch_counts counted;
    char *text;   /* what the training data are, as checkpoints hold it; NULL before run_data_match */
    bool changed; /* since the checkpoint that the run goes on from */
};

/* What the weights were trained on that the run goes on from, or starts with. */
struct run_data_origin {
    struct carried tokenizer; /* of rank 0; name NULL: not known */
    const char *owner;        /* whose it is, for messages */
};

/* Opens training and validation data, after a tokenizer has made tokens of them where it is to (tokenized.h;
 * told on rank 0's `log`), and reads the first batch, of at most `share` sequences a data rank.
 * Collective; run_data_free follows, whatever this returns. GDN_INPUT for what is not readable, lies outside
 * the vocabulary, or is not the same on all ranks. */
int run_data_open(const struct config *config, const struct mesh *mesh, const struct run_position *position,
                  long share, const struct run_data_origin *origin, FILE *log, struct run_data *out);
void run_data_free(struct run_data *data);

/* Sequences of the next step on each data rank (train.batch_ramp). */
long run_data_share(const struct config *config, const struct mesh *mesh,
                    const struct run_position *position);

/* Reads this data rank's part of the batch at the position into `rows`. Not collective. GDN_INPUT where a
 * token lies outside the vocabulary. */
int run_data_read(struct run_data *data, const struct config *config, const struct mesh *mesh,
                  const struct run_position *position);

/* Completes `counted` once all ranks have read their parts, which takes an exchange where the data are
 * masked. Collective. GDN_INTERNAL. */
int run_data_count(struct run_data *data, struct mesh *mesh);

/* Finds what the training data are (data/identity.h), and compares it with `before`, which the checkpoint
 * says that the run goes on from (NULL: nothing is known, or it starts). Where they differ: GDN_INPUT naming
 * the source and how much it has and had; with `accept` a note on `log`. Collective. (identity.c) */
int run_data_match(struct run_data *data, const struct config *config, const struct mesh *mesh,
                   const char *before, bool accept, FILE *log);

#endif
