/* Encodes and decodes what another program sends, which compares: encode_texts TOKENIZER
 *
 * Standard input is texts, each behind its length (uint32). For each, standard output has the number of its
 * tokens (uint32), these (int32), the length of what they are decoded to (uint32), and that. */
#include <stdio.h>
#include <stdlib.h>

#include "data/tokenizer/tokenizer.h"
#include "kernels/base/status.h"

static int answer(struct tokenizer *tokenizer, struct encoder *encoder, const char *text, size_t length) {
    struct ids ids = {0};
    struct text decoded = {0};
    int status = encoder_encode(encoder, text, length, false, &ids);
    if (!status) status = tokenizer_decode(tokenizer, ids.id, ids.count, false, &decoded);
    uint32_t count = (uint32_t)ids.count, size = (uint32_t)decoded.length;
    fwrite(&count, sizeof count, 1, stdout);
    if (count) fwrite(ids.id, sizeof *ids.id, count, stdout);
    fwrite(&size, sizeof size, 1, stdout);
    if (size) fwrite(decoded.bytes, 1, size, stdout);
    fflush(stdout);
    ids_free(&ids);
    text_free(&decoded);
    return status;
}

int main(int argc, char **argv) {
    struct tokenizer *tokenizer = NULL;
    struct encoder *encoder = NULL;
    uint32_t length;
    int status = argc == 2 ? tokenizer_open(argv[1], &tokenizer) : GDN_INPUT;
    if (!status) status = encoder_create(tokenizer, &encoder);
    while (!status && fread(&length, sizeof length, 1, stdin) == 1) {
        char *text = malloc(length + 1u);
        if (!text || fread(text, 1, length, stdin) != length) status = GDN_INTERNAL;
        if (!status) status = answer(tokenizer, encoder, text, length);
        free(text);
    }
    if (status) fprintf(stderr, "encode_texts: %s\n", gdn_failure());
    encoder_free(encoder);
    tokenizer_close(tokenizer);
    return status;
}
