/* Which documents go into which sample where whole documents are packed (data.packing: best_fit). Private to
 * this room. */
#ifndef GDN_PACKING_H
#define GDN_PACKING_H

#include "data/tokens.h"

/* A document in a sample, or of one longer than a sample a part. */
struct piece {
    long first; /* its first token in the stream */
    long length;
    long next; /* the one behind it in its sample; −1: none */
};

struct packing {
    struct piece *piece; /* [pieces] in the order of the stream */
    long *sample;        /* [samples] the first piece of each */
    long pieces, samples;
};

/* Packs the documents of tokens [from, to) into samples of at most `length` tokens, best fit decreasing: from
 * the longest to the shortest, each goes where least is left over (Johnson 1973; Ding et al. 2024). Documents
 * longer than that are cut, and their ends packed like the others. Samples are in the order of their first
 * pieces. After tokens_find_documents; reads all tokens. Fails like tokens_read. */
int packing_create(struct tokens *tokens, long from, long to, long length, struct packing *out);
void packing_free(struct packing *packing);

#endif
