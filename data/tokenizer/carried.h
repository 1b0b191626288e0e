/* A tokenizer's files as they are, which token caches, run directories, checkpoints and exports carry. */
#ifndef GDN_CARRIED_H
#define GDN_CARRIED_H

#include "data/tokenizer/tokenizer.h"

/* Zeros are none. */
struct carried {
    char *name;          /* "bytes", or where the tokenizer's file was, for messages; NULL: there is none */
    char *file;          /* tokenizer.json; NULL: bytes */
    char *configuration; /* tokenizer_config.json; NULL where there is none */
};

/* Reads the tokenizer that a user names (tokenizer_open), and the tokenizer_config.json beside its file. Not
 * collective. GDN_INPUT where it cannot be read. carried_free, whatever this returns. */
int carried_read(const char *name, struct carried *out);
void carried_free(struct carried *carried);

/* The path of a tokenizer_config.json beside a tokenizer's file, there or not; free() it. NULL without
 * memory. */
char *carried_configuration_path(const char *file);

/* The same of files that are at hand; `where` they are from is the name. File NULL: none, and `out` is zeros.
 * GDN_INTERNAL without memory. */
int carried_take(const char *where, const char *file, const char *configuration, struct carried *out);

/* Opens it, as tokenizer_open does. */
int carried_open(const struct carried *carried, struct tokenizer **out);

/* As tokenizer_hash has it; 0: bytes. */
uint64_t carried_hash(const struct carried *carried);

/* "bytes", or "xxh3 0123456789abcdef": what tells it from others. */
enum { CARRIED_TEXT = 32 };
const char *carried_text(const struct carried *carried, char out[CARRIED_TEXT]);

#endif
