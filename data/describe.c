/* tokens_describe: what a token stream holds, for people. */
#include <stdlib.h>

#include "data/stream.h"
#include "kernels/base/status.h"

enum { BLOCK = 4096, SAMPLE_BLOCKS = 256, FIRST = 16 };

struct extent {
    int32_t least, greatest;
    long seen;
};

/* Least and greatest value of the whole stream, or of SAMPLE_BLOCKS blocks spread evenly over a large one. */
static int find_extent(struct tokens *tokens, struct extent *out) {
    long count = tokens_count(tokens);
    long blocks = (count + BLOCK - 1) / BLOCK;
    long visited = blocks < SAMPLE_BLOCKS ? blocks : SAMPLE_BLOCKS;
    int32_t values[BLOCK];
    *out = (struct extent){.least = INT32_MAX, .greatest = INT32_MIN};
    for (long b = 0; b < visited; b++) {
        long first = (visited == blocks ? b : (long)((double)b * blocks / visited)) * BLOCK;
        long n = count - first < BLOCK ? count - first : BLOCK;
        TRY(tokens_read(tokens, first, n, values));
        for (long i = 0; i < n; i++) {
            if (values[i] < out->least) out->least = values[i];
            if (values[i] > out->greatest) out->greatest = values[i];
        }
        out->seen += n;
    }
    return GDN_OK;
}

int tokens_describe(struct tokens *tokens, FILE *out) {
    long count = tokens_count(tokens), bytes = 0, documents = 0;
    int32_t first[FIRST];
    long shown = count < FIRST ? count : FIRST;
    struct extent extent;
    TRY(tokens_read(tokens, 0, shown, first));
    TRY(find_extent(tokens, &extent));
    for (int i = 0; i < tokens->num_files; i++) {
        bytes += tokens->files[i].bytes;
        if (tokens->files[i].documents == NOT_RECORDED) documents = NOT_RECORDED;
        if (documents != NOT_RECORDED) documents += tokens->files[i].documents;
    }

    fprintf(out, "format     %s\n", tokens->format->name);
    fprintf(out, "files      %d: %s", tokens->num_files, tokens->files[0].path);
    if (tokens->num_files > 1) fprintf(out, " ... %s", tokens->files[tokens->num_files - 1].path);
    fprintf(out, "\ntokens     %ld\n", count);
    if (documents == NOT_RECORDED)
        fprintf(out, "documents  not recorded in this format\n");
    else
        fprintf(out, "documents  %ld\n", documents);
    fprintf(out, "stored as  %s\n", tokens->files[0].stored_as);
    fprintf(out, "bytes      %ld\n", bytes);
    fprintf(out, "values     %d to %d", extent.least, extent.greatest);
    if (extent.seen < count) fprintf(out, " in a sample of %ld tokens", extent.seen);
    fprintf(out, "\nfirst     ");
    for (long i = 0; i < shown; i++) fprintf(out, " %d", first[i]);
    fprintf(out, "\n");
    return GDN_OK;
}
