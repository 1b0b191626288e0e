/* A file that appears complete or not at all: it is written under a hidden name beside its own, brought to
 * disk and renamed. Private to this room and to train's figures and rebuilt differences. */
#ifndef GDN_OUTPUT_H
#define GDN_OUTPUT_H

#include <stddef.h>

struct output {
    char *path;    /* the name it will have */
    char *partial; /* the name it has until then, in the same folder */
    int descriptor;
};

/* Creates the partial file. Whatever happens then, output_close must follow. GDN_INPUT where it cannot be
 * created. */
int output_open(const char *path, struct output *out);

/* Writes at the end of what was written. GDN_INPUT where it cannot be written, e.g. on a full disk. */
int output_write(struct output *output, const void *bytes, size_t size);

/* Checks that the file could take `size` bytes, as far as the file system tells before it has them, and a
 * first 64 KiB on disk; leaves it empty. For a writer that must not fail half-way. GDN_INPUT. */
int output_try(struct output *output, long size);

/* Writes go on at byte `offset`. */
int output_seek(struct output *output, long offset);

/* Brings what was written to disk. */
int output_sync(struct output *output);

/* Gives the file its own name, replacing one of that name. */
int output_publish(struct output *output);

/* Frees everything and removes the partial file if it was not published. */
void output_close(struct output *output);

#endif
