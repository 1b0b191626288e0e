/* A tokenizer.json, and behind its first zero byte, where there is one, a text, which is encoded twice (the
 * second time its words are known), and decoded. */
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "harness.h"

static void encode(struct tokenizer *tokenizer, const char *text, size_t length) {
    struct encoder *encoder;
    if (!fuzz_status(encoder_create(tokenizer, &encoder), 1, "encoder_create")) return;
    struct ids ids[2] = {{0}};
    struct text decoded = {0};
    for (int i = 0; i < 2; i++)
        if (!fuzz_status(encoder_encode(encoder, text, length, i, &ids[i]), 1, "encoder_encode"))
            ids[i].count = 0;
    for (long i = 0; i < ids[0].count; i++)
        fuzz_check(ids[0].id[i] >= 0 && ids[0].id[i] < tokenizer_vocab(tokenizer),
                   "an id outside the vocabulary");
    fuzz_check(ids[1].count >= ids[0].count || !ids[1].count, "tokens that are known");
    fuzz_status(tokenizer_decode(tokenizer, ids[1].id, ids[1].count, true, &decoded), 1, "tokenizer_decode");
    ids_free(&ids[0]);
    ids_free(&ids[1]);
    text_free(&decoded);
    encoder_free(encoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t file = end ? (size_t)(end - data) : size;
    struct tokenizer *tokenizer;
    fuzz_write("tokenizer.json", data, file);
    if (!fuzz_status(tokenizer_open(fuzz_path("tokenizer.json"), &tokenizer), 1, "tokenizer_open")) return 0;
    if (end) encode(tokenizer, (const char *)end + 1, size - file - 1);
    tokenizer_close(tokenizer);
    return 0;
}
