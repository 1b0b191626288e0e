/* Writes the files of stored differences on a thread of its own, so that training goes on meanwhile. The
 * thread uses neither HDF5 nor MPI, and holds all signals back (train/health/signals.h); a file larger than
 * the process may write fails like a full disk. */
#ifndef GDN_DELTA_WRITER_H
#define GDN_DELTA_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What became of connections that were to be stored. */
struct delta_tally {
    long files, connections; /* stored */
    long bytes, plain_bytes; /* of the files; of the differences that are in them */
    long rank;               /* of all factors, added up */
    long failed;             /* connections that are not stored */
    double error;            /* greatest relative error of factors */
};

/* The first of them that failed, and why. */
struct delta_failure {
    int layer, distance; /* distance 0: all connections of a file */
    char text[1024];     /* "": none has failed */
};

/* A file to be written. */
struct delta_job {
    int64_t step;
    int layer;
    void *image;
    size_t bytes;
    struct delta_tally tally; /* what it stores */
};

struct delta_writer; /* opaque */

/* Starts the thread, for files in `directory`, of which at most `room` ≥ 1 wait in memory. GDN_INTERNAL. */
int delta_writer_create(const char *directory, int room, struct delta_writer **out);

/* Waits for all files, ends the thread. NULL is allowed. */
void delta_writer_free(struct delta_writer *writer);

/* Hands over a file, whose image the writer will free(). Waits where `room` of them are there. */
void delta_writer_give(struct delta_writer *writer, const struct delta_job *job);

/* Whether all files given are written or have failed. */
bool delta_writer_idle(struct delta_writer *writer);

/* Waits until they are; adds what became of them since the last call to the tally, and the first failure to
 * `failure` where it has none. */
void delta_writer_take(struct delta_writer *writer, struct delta_tally *tally, struct delta_failure *failure);

/* Adds one tally to another. */
void delta_tally_add(struct delta_tally *sum, const struct delta_tally *tally);

#endif
