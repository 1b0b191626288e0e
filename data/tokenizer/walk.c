/* How a piece goes from step to step. */
#include "data/tokenizer/pre_tokenizer.h"
#include "kernels/base/status.h"

int walk_step(const struct walk *walk, int i, struct passage piece) {
    if (!piece.length) return GDN_OK;
    if (i == walk->count) return walk->take(walk->input, piece.text, piece.length);
    return walk->step[i].kind->run(walk, i, piece);
}

struct passage passage_part(struct passage passage, size_t start, size_t end) {
    size_t head = passage.head > start ? passage.head - start : 0;
    return (struct passage){passage.text + start, end - start, head < end - start ? head : end - start};
}
