#include "data/left_over.h"

#include "data/packing.h"
#include "kernels/base/status.h"

enum { LENGTH_CLASSES = 5 };

/* The shortest class that holds so many tokens. */
static long class_of(long count, long length) {
    for (int i = 1; i < LENGTH_CLASSES && count <= (length + 1) / 2; i++) length = (length + 1) / 2;
    return length;
}

static struct left_over measure(const struct packing *packing, long length) {
    double tokens = 0, classes = 0, room = (double)length;
    for (long i = 0; i < packing->pieces; i++) {
        tokens += (double)packing->piece[i].length;
        classes += (double)class_of(packing->piece[i].length, length);
    }
    return (struct left_over){.packed = 1 - tokens / ((double)packing->samples * room),
                              .alone = 1 - tokens / ((double)packing->pieces * room),
                              .classes = 1 - tokens / classes,
                              .shortest = class_of(1, length)};
}

int tokens_left_over(struct tokens *tokens, long length, struct left_over *out) {
    struct packing packing;
    TRY(packing_create(tokens, 0, tokens_count(tokens), length, &packing));
    *out = measure(&packing, length);
    packing_free(&packing);
    return GDN_OK;
}
