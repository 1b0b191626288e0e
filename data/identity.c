#include "data/identity.h"

#include <stdbool.h>
#include <xxhash.h>

#include "kernels/base/status.h"

enum { BLOCKS = 1024, BLOCK = 1024 };

/* The token that block i begins with, of a stream of more than BLOCKS · BLOCK. No product overflows. */
static long block_start(long count, long i) {
    long room = count - BLOCK, each = room / (BLOCKS - 1), rest = room % (BLOCKS - 1);
    return each * i + rest * i / (BLOCKS - 1);
}

int tokens_identify(struct tokens *tokens, struct tokens_identity *out) {
    long count = tokens_count(tokens);
    bool all = count <= (long)BLOCKS * BLOCK;
    long blocks = all ? (count + BLOCK - 1) / BLOCK : BLOCKS;
    XXH3_state_t *state = XXH3_createState();
    if (!state) return gdn_fail(GDN_INTERNAL, "no memory for a checksum");
    XXH3_64bits_reset(state);
    for (long i = 0; i < blocks; i++) {
        int32_t block[BLOCK];
        long first = all ? i * BLOCK : block_start(count, i),
             n = count - first < BLOCK ? count - first : BLOCK;
        if (tokens_read(tokens, first, n, block)) {
            gdn_failure_clear();
            continue;
        }
        if (tokens_mark_uncounted(tokens, first, n, block)) gdn_failure_clear();
        XXH3_64bits_update(state, block, (size_t)n * sizeof *block);
    }
    *out = (struct tokens_identity){count, XXH3_64bits_digest(state)};
    XXH3_freeState(state);
    return GDN_OK;
}
