/* What samples of a length would leave empty, by how documents are put into them. */
#ifndef GDN_LEFT_OVER_H
#define GDN_LEFT_OVER_H

#include "data/tokens.h"

/* Of the tokens of all rows the part that is filling: */
struct left_over {
    double packed;  /* documents that fit together best in a sample (data/packing.h) */
    double alone;   /* each document, or piece of one that is longer than a sample, in a sample of its own */
    double classes; /* the same in batches of one class of lengths each, every document in the shortest that
                       holds it: the sample's length, half of it rounded up, and so on, five in all */
    long shortest;  /* of those classes, in tokens */
};

/* Of a stream's documents in samples of `length` tokens; after tokens_find_documents, reading all tokens.
 * Fails like packing_create. */
int tokens_left_over(struct tokens *tokens, long length, struct left_over *out);

#endif
