/* What a token stream holds, in numbers and for people. */
#include <stdlib.h>

#include "data/stream.h"
#include "kernels/base/marks.h"
#include "kernels/base/status.h"

enum { BLOCK = 4096, SAMPLE_BLOCKS = 256 };

/* Least and greatest value of the whole stream, or of SAMPLE_BLOCKS blocks spread evenly over a large one. */
static int find_extent(struct tokens *tokens, struct tokens_summary *out) {
    long count = tokens_count(tokens);
    long blocks = (count + BLOCK - 1) / BLOCK;
    long visited = blocks < SAMPLE_BLOCKS ? blocks : SAMPLE_BLOCKS;
    int32_t values[BLOCK];
    out->min = INT32_MAX;
    out->max = INT32_MIN;
    for (long b = 0; b < visited; b++) {
        long first = (visited == blocks ? b : (long)((double)b * blocks / visited)) * BLOCK;
        long n = count - first < BLOCK ? count - first : BLOCK;
        TRY(tokens_read(tokens, first, n, values));
        for (long i = 0; i < n; i++) {
            if (values[i] < out->min) out->min = values[i];
            if (values[i] > out->max) out->max = values[i];
            values[i] = 0;
        }
        if (out->counted >= 0) TRY(tokens_mark_uncounted(tokens, first, n, values));
        for (long i = 0; out->counted >= 0 && i < n; i++) out->counted += values[i] != MARK_UNCOUNTED;
        out->seen += n;
    }
    return GDN_OK;
}

int tokens_summarize(struct tokens *tokens, struct tokens_summary *out) {
    long count = tokens_count(tokens);
    *out = (struct tokens_summary){
        .format = tokens->format->name,
        .files = tokens->num_files,
        .first_file = tokens->files[0].path,
        .last_file = tokens->files[tokens->num_files - 1].path,
        .stored_as = tokens->files[0].stored_as,
        .tokens = count,
        .counted = tokens_masked(tokens) ? 0 : -1,
        .shown = count < TOKENS_SHOWN ? (int)count : TOKENS_SHOWN,
    };
    for (int i = 0; i < tokens->num_files; i++) {
        out->bytes += tokens->files[i].bytes;
        if (tokens->files[i].documents == NOT_RECORDED) out->documents = NOT_RECORDED;
        if (out->documents != NOT_RECORDED) out->documents += tokens->files[i].documents;
    }
    TRY(tokens_read(tokens, 0, out->shown, out->first));
    return find_extent(tokens, out);
}

int tokens_describe(struct tokens *tokens, FILE *out) {
    struct tokens_summary about;
    TRY(tokens_summarize(tokens, &about));
    fprintf(out, "format     %s\n", about.format);
    fprintf(out, "files      %d: %s", about.files, about.first_file);
    if (about.files > 1) fprintf(out, " ... %s", about.last_file);
    fprintf(out, "\ntokens     %ld\n", about.tokens);
    if (about.documents == NOT_RECORDED)
        fprintf(out, "documents  not recorded in this format\n");
    else
        fprintf(out, "documents  %ld\n", about.documents);
    fprintf(out, "stored as  %s\n", about.stored_as);
    fprintf(out, "bytes      %ld\n", about.bytes);
    fprintf(out, "values     %d to %d", about.min, about.max);
    if (about.seen < about.tokens) fprintf(out, " in a sample of %ld tokens", about.seen);
    if (about.counted >= 0)
        fprintf(out, "\ncounted    %.4g of the tokens in the loss, by loss_mask",
                (double)about.counted / (double)about.seen);
    fprintf(out, "\nfirst     ");
    for (int i = 0; i < about.shown; i++) fprintf(out, " %d", about.first[i]);
    fprintf(out, "\n");
    return GDN_OK;
}
