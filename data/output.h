/* A file that appears complete or not at all: it is written under a hidden name beside its own, brought to
 * disk and renamed. A symbolic link is followed: the file that it points to is written. Private to this room
 * and to what train writes. */
#ifndef GDN_OUTPUT_H
#define GDN_OUTPUT_H

#include <jansson.h>
#include <stddef.h>

/* Before the work whose result is to be written at `path`: GDN_INPUT where path is '', something is there
 * that is no file, or its folder is not there or may not be written. `option` is what messages call it:
 * "--output". Leaves nothing. */
int output_verify(const char *option, const char *path);

/* GDN_INPUT where a file at `path` is `input`, or lies in the folder `input`, however the two are spelt: a
 * command line that has an input's name for the output is a slip that would cost the input. `what` is what it
 * is: "a document". */
int output_refuse_input(const char *path, const char *input, const char *what);

/* What `path` is where it is no symbolic link, else what that points to, there or not; free() it. NULL
 * without memory. */
char *output_followed(const char *path);

struct output {
    char *path;    /* the name it will have */
    char *partial; /* the name it has until then, in the same folder */
    int descriptor;
};

/* Creates the partial file. Whatever happens then, output_close must follow. GDN_INPUT where it cannot be
 * created, or what is at `path` is no file. */
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

/* Gives the file its own name, replacing one of that name: for files of which the next start of the program
 * knows itself whether a power cut has spared them. */
int output_rename(struct output *output);

/* The same, and brings the name to disk. */
int output_publish(struct output *output);

/* The end of a file whose writing had this status: where it is GDN_OK, brings it to disk and gives it its
 * name; closes it in any case. Returns the status of all. */
int output_finish(struct output *output, int status);

/* A whole file: `size` bytes of text; or JSON, indented by `indent`, and a line's end, `root` being NULL
 * where there was no memory for it. GDN_INPUT where it cannot be written. */
int output_text(const char *path, const char *text, size_t size);
int output_json(const char *path, const json_t *root, int indent);

/* Frees everything and removes the partial file if it was not published. */
void output_close(struct output *output);

#endif
