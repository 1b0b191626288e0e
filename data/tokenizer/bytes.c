/* Bytes as tokens, and one token more, which stands between documents: what text is without a tokenizer's
 * file. */
#include <string.h>

#include "data/tokenizer/kind.h"
#include "data/tokens.h"
#include "kernels/base/status.h"

static const char separator[] = "<separator>";

static bool bytes_is_named(const char *name) {
    return !strcmp(name, "bytes");
}

static int bytes_open(struct tokenizer *tokenizer) {
    tokenizer->vocab = TEXT_SEPARATOR + 1;
    return GDN_OK;
}

static void bytes_close(struct tokenizer *tokenizer) {
    (void)tokenizer;
}

static int32_t bytes_id(const struct tokenizer *tokenizer, const char *name, size_t length) {
    (void)tokenizer;
    if (length == 1) return (unsigned char)name[0];
    return length == sizeof separator - 1 && !memcmp(name, separator, length) ? TEXT_SEPARATOR : -1;
}

static const char *bytes_name(const struct tokenizer *tokenizer, int32_t id, size_t *length) {
    static unsigned char byte[256];
    (void)tokenizer;
    if (id == TEXT_SEPARATOR) return *length = sizeof separator - 1, separator;
    if (id < 0 || id > TEXT_SEPARATOR) return NULL;
    byte[id] = (unsigned char)id; /* the same from any thread */
    return *length = 1, (const char *)&byte[id];
}

static bool bytes_is_special(const struct tokenizer *tokenizer, int32_t id) {
    (void)tokenizer;
    return id == TEXT_SEPARATOR;
}

static int bytes_encode(struct encoder *encoder, const char *text, size_t length, bool special,
                        struct ids *out) {
    (void)encoder, (void)special;
    TRY(ids_reserve(out, (long)length));
    for (size_t i = 0; i < length; i++) out->id[out->count++] = (unsigned char)text[i];
    return GDN_OK;
}

static int bytes_decode(const struct tokenizer *tokenizer, const int32_t *id, long count, bool skip_special,
                        bool raw, struct text *out) {
    (void)raw; /* they always are */
    for (long i = 0; i < count; i++) {
        size_t length;
        const char *name = bytes_name(tokenizer, id[i], &length);
        if (!name || (skip_special && id[i] == TEXT_SEPARATOR)) continue;
        TRY(text_add(out, name, length));
    }
    return GDN_OK;
}

const struct tokenizer_kind bytes_tokenizer = {
    .name = "bytes",
    .is_named = bytes_is_named,
    .open = bytes_open,
    .close = bytes_close,
    .id = bytes_id,
    .token_name = bytes_name,
    .is_special = bytes_is_special,
    .encode = bytes_encode,
    .decode = bytes_decode,
};
