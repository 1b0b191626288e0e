/* A fingerprint of a token stream, by which a resumed run recognises the data it began with, without
 * reading all of it. Detected: every change of the number of tokens, and every change of a token that is
 * read here (all tokens up to 2^20; beyond that 1024 blocks of 1024 tokens, evenly spaced, with the first
 * and the last of the stream). So replaced, added, removed, truncated, reordered or differently tokenized
 * files are detected, unless no block differs. Not detected: edits between the blocks that keep the
 * length, and the files' names, paths, formats and how the stream is cut into files, none of which changes
 * a sample. */
#ifndef GDN_IDENTITY_H
#define GDN_IDENTITY_H

#include "data/tokens.h"

struct tokens_identity {
    long tokens;
    uint64_t hash; /* XXH3 of the tokens read, as int32, marked where a loss mask leaves one out */
};

/* Reads at most 2^20 tokens. A block that cannot be read counts as one without tokens: whoever trains on it
 * is told. Not collective. GDN_INTERNAL without memory. */
int tokens_identify(struct tokens *tokens, struct tokens_identity *out);

#endif
