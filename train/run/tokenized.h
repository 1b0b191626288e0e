/* Data that a tokenizer makes tokens of: each set of text files stands for the token file that the cache has
 * of it (data/documents/cache.h), which one process makes where it is missing, while the others wait. */
#ifndef GDN_TOKENIZED_H
#define GDN_TOKENIZED_H

#include <stdio.h>

#include "dist/mesh/mesh.h"
#include "train/config/config.h"
#include "train/run/tokenizer.h"

/* Which data are wanted. */
enum tokenized_sets { TOKENIZED_ALL, TOKENIZED_VALIDATION };

struct tokenized {
    struct config config; /* to open data by: the one that was given, but for data's paths and format, which
                             are those of token files; borrows all else of it */
    bool owned;           /* the paths are its own */
};

/* Finds or makes the token files of a configuration's data; where these are token files already, or bytes,
 * there is nothing to do. What is made, and how far it is, is told on rank 0's `log` (NULL: silent). While
 * one rank works the time-outs of all begin again. Collective; tokenized_free, whatever this returns.
 * GDN_INPUT where files cannot be read, are not what data.format says, or the cache cannot be written. */
int tokenized_open(const struct config *config, const struct run_tokenizer *tokenizer,
                   const struct mesh *mesh, enum tokenized_sets sets, FILE *log, struct tokenized *out);
void tokenized_free(struct tokenized *tokenized);

#endif
