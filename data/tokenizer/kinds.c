/* The table of kinds, and what tokenizer.h offers by way of it. */
#include "data/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/kind.h"
#include "kernels/base/status.h"

/* The last one takes whatever name is left. */
static const struct tokenizer_kind *const kinds[] = {&bytes_tokenizer, &huggingface_tokenizer};

int tokenizer_open(const char *name, struct tokenizer **out) {
    return tokenizer_open_text(name, NULL, out);
}

int tokenizer_open_text(const char *name, const char *text, struct tokenizer **out) {
    int i = 0;
    *out = NULL;
    while (!kinds[i]->is_named(name)) i++;
    struct tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    if (tokenizer) tokenizer->path = strdup(name);
    if (!tokenizer || !tokenizer->path) {
        free(tokenizer);
        return gdn_fail(GDN_INTERNAL, "%s: no memory", name);
    }
    tokenizer->kind = kinds[i];
    tokenizer->text = text;
    int status = tokenizer->kind->open(tokenizer);
    tokenizer->text = NULL;
    if (status)
        tokenizer_close(tokenizer);
    else
        *out = tokenizer;
    return status;
}

void tokenizer_close(struct tokenizer *tokenizer) {
    if (!tokenizer) return;
    tokenizer->kind->close(tokenizer);
    free(tokenizer->path);
    free(tokenizer);
}

const char *tokenizer_path(const struct tokenizer *tokenizer) {
    return tokenizer->path;
}

long tokenizer_vocab(const struct tokenizer *tokenizer) {
    return tokenizer->vocab;
}

uint64_t tokenizer_hash(const struct tokenizer *tokenizer) {
    return tokenizer->hash;
}

int32_t tokenizer_id(const struct tokenizer *tokenizer, const char *name, size_t length) {
    return tokenizer->kind->id(tokenizer, name, length);
}

const char *tokenizer_name(const struct tokenizer *tokenizer, int32_t id, size_t *length) {
    return tokenizer->kind->token_name(tokenizer, id, length);
}

bool tokenizer_is_special(const struct tokenizer *tokenizer, int32_t id) {
    return tokenizer->kind->is_special(tokenizer, id);
}

int encoder_create(const struct tokenizer *tokenizer, struct encoder **out) {
    struct encoder *encoder = calloc(1, sizeof *encoder);
    *out = NULL;
    if (!encoder) return gdn_fail(GDN_INTERNAL, "%s: no memory", tokenizer->path);
    encoder->tokenizer = tokenizer;
    int status = tokenizer->kind->encoder_create ? tokenizer->kind->encoder_create(encoder) : GDN_OK;
    if (status)
        encoder_free(encoder);
    else
        *out = encoder;
    return status;
}

void encoder_free(struct encoder *encoder) {
    if (!encoder) return;
    if (encoder->tokenizer->kind->encoder_free) encoder->tokenizer->kind->encoder_free(encoder);
    free(encoder);
}

int encoder_encode(struct encoder *encoder, const char *text, size_t length, bool special, struct ids *out) {
    return encoder->tokenizer->kind->encode(encoder, text, length, special, out);
}

int tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *id, long count, bool skip_special,
                     struct text *out) {
    return tokenizer->kind->decode(tokenizer, id, count, skip_special, false, out);
}

int tokenizer_decode_bytes(const struct tokenizer *tokenizer, const int32_t *id, long count,
                           struct text *out) {
    return tokenizer->kind->decode(tokenizer, id, count, false, true, out);
}
