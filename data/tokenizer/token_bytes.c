#include "data/tokenizer/token_bytes.h"

#include <stdlib.h>

#include "kernels/base/status.h"

/* The bytes of tokens, in place of what is in `out`. */
static int decode(const struct tokenizer *tokenizer, const int32_t *id, long count, struct text *out) {
    out->length = 0;
    return tokenizer_decode_bytes(tokenizer, id, count, out);
}

/* A token that adds as many bytes behind itself as behind two of itself, behind which others are looked at;
 * −1: there is none. */
static int find_probe(const struct tokenizer *tokenizer, struct text *work, int32_t *probe) {
    const long vocab = tokenizer_vocab(tokenizer);
    for (*probe = 0; *probe < vocab; ++*probe) {
        if (tokenizer_is_special(tokenizer, *probe)) continue;
        const int32_t three[] = {*probe, *probe, *probe};
        size_t length[3];
        for (int i = 0; i < 3; i++) {
            TRY(decode(tokenizer, three, i + 1, work));
            length[i] = work->length;
        }
        if (length[1] > length[0] && length[2] - length[1] == length[1] - length[0]) return GDN_OK;
    }
    *probe = -1;
    return GDN_OK;
}

static int add(struct token_bytes *p, const struct tokenizer *tokenizer, int32_t probe, size_t before,
               int32_t id, struct text *work) {
    size_t length;
    if (id == p->separator || !tokenizer_name(tokenizer, id, &length)) return texts_end(&p->text);
    TRY(decode(tokenizer, &id, 1, work));
    p->first[id] = (int32_t)work->length;
    if (probe < 0) return texts_add(&p->text, work->bytes, work->length);
    TRY(decode(tokenizer, (const int32_t[]){probe, id}, 2, work));
    return work->length > before ? texts_add(&p->text, work->bytes + before, work->length - before)
                                 : texts_end(&p->text);
}

static int fill(struct token_bytes *p, const struct tokenizer *tokenizer, struct text *work) {
    const long vocab = tokenizer_vocab(tokenizer);
    size_t before = 0;
    int32_t probe;
    TRY(find_probe(tokenizer, work, &probe));
    if (probe >= 0) {
        TRY(decode(tokenizer, &probe, 1, work));
        before = work->length;
    }
    for (int32_t id = 0; id < vocab; id++) TRY(add(p, tokenizer, probe, before, id, work));
    return GDN_OK;
}

int token_bytes_create(const struct tokenizer *tokenizer, int32_t separator, struct token_bytes *out) {
    struct text work = {0};
    *out = (struct token_bytes){.separator = separator,
                                .first = calloc((size_t)tokenizer_vocab(tokenizer), sizeof *out->first)};
    if (!out->first) return gdn_fail(GDN_INTERNAL, "no memory for what tokens are");
    int status = fill(out, tokenizer, &work);
    text_free(&work);
    return status;
}

void token_bytes_free(struct token_bytes *bytes) {
    texts_free(&bytes->text);
    free(bytes->first);
    *bytes = (struct token_bytes){0};
}

const char *token_bytes_at(const struct token_bytes *bytes, int32_t id, size_t *length) {
    *length = 0;
    return id >= 0 && id < bytes->text.count ? texts_at(&bytes->text, id, length) : "";
}

long token_bytes_length(const struct token_bytes *bytes, int32_t before, int32_t id) {
    size_t length;
    token_bytes_at(bytes, id, &length);
    return length && before == bytes->separator ? bytes->first[id] : (long)length;
}
