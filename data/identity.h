/* What tells one stream of tokens from another without reading all of it: whether a run that goes on finds
 * the data that it began with.
 *
 * Seen: every change of the number of tokens, and every change of a token that is read here: of all tokens
 * where there are at most 2^20, else of 1024 blocks of 1024 tokens, the first and the last of the stream and
 * the rest evenly between. So files that are replaced, added, taken away, cut, written by another tokenizer
 * or put in another order are seen, unless they are so many and so alike that no block differs. Not seen:
 * edits between the blocks that keep the length; the files' names, places and format, and how a stream is cut
 * into files, none of which changes a sample. */
#ifndef GDN_IDENTITY_H
#define GDN_IDENTITY_H

#include "data/tokens.h"

struct tokens_identity {
    long tokens;
    uint64_t hash; /* XXH3 of the tokens read, as int32 */
};

/* Reads at most 2^20 tokens. A block that cannot be read counts as one without tokens: whoever trains on it
 * is told. Not collective. GDN_INTERNAL without memory. */
int tokens_identify(struct tokens *tokens, struct tokens_identity *out);

#endif
