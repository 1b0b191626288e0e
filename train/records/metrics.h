/* metrics.jsonl: one JSON object a line, appended, never rewritten (interfaces.md). Each line is one write.
 * Numbers have as many digits as it takes to read the same value back; NaN and infinities, which JSON lacks,
 * become null. */
#ifndef GDN_METRICS_H
#define GDN_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "dist/layout/axes.h"
#include "model/params/config.h"
#include "dist/layout/edge.h"
#include "train/records/tally.h"

/* An open file and the line being built. */
struct metrics {
    int file; /* descriptor; −1: closed */
    char path[4096];
    char line[65536];
    int used;               /* bytes of `line` */
    int status;             /* first failure; once set, nothing more is written */
    struct tallies tallies; /* of all lines in the file */
};

/* Opens `directory`/metrics.jsonl for appending, creating it; an unterminated last line, left by a run that
 * died while writing, is cut off. Not collective. GDN_INPUT where it cannot be written. */
int metrics_open(const char *directory, struct metrics *metrics);
void metrics_close(struct metrics *metrics);

/* A line: begin with its event's name, add values, end. On a closed `metrics` (every rank but one) these do
 * nothing. */
void metrics_begin(struct metrics *metrics, const char *event);
void metrics_integer(struct metrics *metrics, const char *key, int64_t value);
void metrics_number(struct metrics *metrics, const char *key, double value); /* NaN, infinite: null */
void metrics_text(struct metrics *metrics, const char *key, const char *value);
void metrics_boolean(struct metrics *metrics, const char *key, bool value);
/* Values added until the object's end are its members. */
void metrics_object(struct metrics *metrics, const char *key);
void metrics_object_end(struct metrics *metrics);
/* Lists. */
void metrics_integers(struct metrics *metrics, const char *key, const int *values, int count);
void metrics_numbers(struct metrics *metrics, const char *key, const double *values, int count);
/* Writes the line, with the time (Unix seconds) as its last value. GDN_INTERNAL where that fails (a full
 * disk); what was half written is cut off, and all later calls return the same status. */
int metrics_end(struct metrics *metrics);

/* What one training step has to tell; metrics.jsonl, TensorBoard and the progress line all show it. */
struct step_report {
    int64_t step;   /* 0-based */
    long sequences; /* of its batch */
    double loss, ce;
    double sparsity, entropy; /* NAN where they were not computed */
    double z_loss, l1;        /* R_z and R_1 (model.md, 5); 0 without a weight for them */
    double exits[MAX_EXITS];  /* cross entropy at each of the model's num_exits exits; NAN of those that the
                                 step leaves out */
    int num_exits;
    double grad_norm;         /* before clipping */
    double lr;
    int active_distances;
    int active_edges;              /* delta connections in use */
    const struct edge_set *active; /* of which these are so many of the configuration's; the run's */
    int64_t tokens; /* consumed so far, this step included */
    int64_t counted; /* targets of its batch that count in the loss; without any nothing is updated, and loss
                        and ce are NAN */
    int64_t unpadded; /* tokens of its batch but for padding */
    bool masked; /* not all of the data's do */
    double tokens_per_second, step_seconds;
    /* Of rank 0, over each axis of the mesh: spent inside calls, handed over for other ranks. */
    double communication_seconds[AXES];
    int64_t communication_bytes[AXES];
};

/* Writes the line of a training step. */
int metrics_step(struct metrics *metrics, const struct step_report *report);

#endif
