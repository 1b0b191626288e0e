/* Text that was made tokens once is kept: an HDF5 token file in a folder, whose name is a hash of what it is
 * made of (the files' content, tokenizer, separator, template, and how documents are read), so that who asks
 * for the same again finds it, by whatever path, and what has changed is made anew. Beside KEY.h5 lies
 * KEY.xxh3, a line with the file's own hash and length, which is written last: without it, or where it does
 * not agree, the file is not whole and is made anew. A lock (KEY.lock) lets one process at a time make it. */
#ifndef GDN_DOCUMENTS_CACHE_H
#define GDN_DOCUMENTS_CACHE_H

#include "data/paths.h"
#include "data/tokenizer/carried.h"

struct cache_options {
    const char *folder;
    const struct carried *tokenizer;
    bool lines;              /* files are lines of JSON (.jsonl); else a file is a document */
    const char *field;       /* of lines: where the text is, or messages */
    const char *messages;    /* a template (conversation.h): these are messages; NULL: text */
    struct path_list inputs; /* paths and globs, in order */
    /* Told now and then that it goes on: bytes of the files that have become tokens, and of all (0: what is
     * done is something else). May be NULL. */
    void (*progress)(void *input, long done, long all);
    void *input;
};

enum { CACHE_KEY = 33 };

/* The key of what the options name: 32 hexadecimal digits. Reads all of the files, on all threads. GDN_INPUT
 * where one cannot be read or is not of the kind that `lines` says. Not collective. */
int cache_key(const struct cache_options *options, char key[CACHE_KEY]);

/* Where the token file of a key is; to be freed. GDN_INTERNAL without memory. */
int cache_path(const char *folder, const char key[CACHE_KEY], char **path);

/* Makes sure that the token file of `key` is there and whole: *path, to be freed. *made: it was not;
 * *damaged: one was there, but was not whole. What the files are must be what the key was made of. GDN_INPUT
 * where something cannot be read or written, or the files are others; then nothing that is not whole is left
 * under its name. Not collective; any number of processes may do the same at a time. */
int cache_need(const struct cache_options *options, const char key[CACHE_KEY], char **path, bool *made,
               bool *damaged);

#endif
