#include "data/tokenizer/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/byte_level.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "kernels/base/status.h"
#include "kernels/base/utf8.h"

/* The character at `at` of a token of which `left` bytes follow. Behind ByteFallback and ByteLevel tokens are
 * any bytes: one that begins no character of its token is −1. */
static int32_t token_character(const char *at, size_t left, size_t *size) {
    if (utf8_bytes(at, left)) return character_at(at, size);
    return *size = 1, -1;
}

/* The bytes that a name's characters stand for; the name itself where one stands for none. */
static int add_bytes(const char *name, size_t length, struct text *out) {
    size_t begin = out->length, size;
    TRY(text_reserve(out, length));
    for (size_t i = 0; i < length; i += size) {
        int byte = byte_level_byte(token_character(name + i, length - i, &size));
        if (byte < 0) {
            out->length = begin;
            return text_add(out, name, length);
        }
        out->bytes[out->length++] = (char)byte;
    }
    return GDN_OK;
}

static int byte_level_decode(const struct decoder *decoder, const struct decoding *how,
                             const struct texts *in, struct texts *out) {
    (void)decoder;
    struct text bytes = {0};
    int status = GDN_OK;
    for (long i = 0; i < in->count && !status; i++) {
        size_t length;
        const char *name = texts_at(in, i, &length);
        status = add_bytes(name, length, &bytes);
    }
    if (!status)
        status = how->raw ? text_add(&out->all, bytes.bytes, bytes.length)
                          : characters_repair(bytes.bytes, bytes.length, &out->all);
    if (!status) status = texts_end(out);
    text_free(&bytes);
    return status;
}

static int metaspace_open_decoder(const struct place *place, const json_t *object, struct decoder *decoder) {
    struct step step = {.replacement_length = 0};
    TRY(metaspace_open(place, object, &step));
    TRY(field_character(place, object, "replacement", &decoder->character));
    decoder->first = step.prepend != PREPEND_NEVER;
    return GDN_OK;
}

static int metaspace_decode(const struct decoder *decoder, const struct decoding *how, const struct texts *in,
                            struct texts *out) {
    (void)how;
    for (long i = 0; i < in->count; i++) {
        size_t length, size;
        const char *name = texts_at(in, i, &length);
        for (size_t k = 0; k < length; k += size) {
            if (token_character(name + k, length - k, &size) != decoder->character)
                TRY(text_add(&out->all, name + k, size));
            else if (i || !decoder->first)
                TRY(text_add(&out->all, " ", 1));
        }
        TRY(texts_end(out));
    }
    return GDN_OK;
}

static int replace_open_decoder(const struct place *place, const json_t *object, struct decoder *decoder) {
    const char *text;
    size_t length;
    TRY(pattern_open(place, object, "pattern", &decoder->pattern));
    TRY(field_string(place, object, "content", &text, &length));
    return text_add(&decoder->content, text, length);
}

/* A token as an expression may search it: a byte that begins no character is NUL. */
static int add_searched(const char *name, size_t length, struct text *out) {
    out->length = 0;
    for (size_t i = 0, size; i < length; i += size) {
        bool character = token_character(name + i, length - i, &size) >= 0;
        TRY(text_add(out, character ? name + i : "", size));
    }
    return GDN_OK;
}

static int replace_decode(const struct decoder *decoder, const struct decoding *how, const struct texts *in,
                          struct texts *out) {
    for (long i = 0; i < in->count; i++) {
        size_t length, done = 0, start, end;
        const char *name = texts_at(in, i, &length), *searched = name;
        if (length && decoder->pattern.regex) {
            TRY(add_searched(name, length, how->searched));
            searched = how->searched->bytes;
        }
        struct search search = search_begin(&decoder->pattern, how->region, searched, length);
        for (bool found = length;;) {
            if (found) TRY(search_next(&search, &start, &end, &found));
            if (!found) break;
            TRY(text_add(&out->all, name + done, start - done));
            TRY(text_add(&out->all, decoder->content.bytes, decoder->content.length));
            done = end;
        }
        TRY(text_add(&out->all, name + done, length - done));
        TRY(texts_end(out));
    }
    return GDN_OK;
}

static int fuse_decode(const struct decoder *decoder, const struct decoding *how, const struct texts *in,
                       struct texts *out) {
    (void)decoder, (void)how;
    return texts_add(out, in->all.bytes, in->all.length);
}

static int strip_open(const struct place *place, const json_t *object, struct decoder *decoder) {
    TRY(field_character(place, object, "content", &decoder->character));
    TRY(field_integer(place, object, "start", 0, INT32_MAX, &decoder->start));
    return field_integer(place, object, "stop", 0, INT32_MAX, &decoder->stop);
}

static int strip_decode(const struct decoder *decoder, const struct decoding *how, const struct texts *in,
                        struct texts *out) {
    (void)how;
    for (long i = 0; i < in->count; i++) {
        size_t length, size;
        const char *at = texts_at(in, i, &length), *end = at + length;
        for (long n = 0; n < decoder->start && at < end; n++) {
            if (token_character(at, (size_t)(end - at), &size) != decoder->character) break;
            at += size;
        }
        for (long n = 0; n < decoder->stop && at < end; n++) {
            const char *last = character_before(at, end);
            if (token_character(last, (size_t)(end - last), &size) != decoder->character) break;
            if (last + size < end) break; /* what ends the token is no character */
            end = last;
        }
        TRY(texts_add(out, at, (size_t)(end - at)));
    }
    return GDN_OK;
}

/* The byte that a name such as <0x0A> says; −1 where it says none. */
static int byte_of_name(const char *name, size_t length) {
    char digits[3] = {0}, *end;
    if (length != 6 || memcmp(name, "<0x", 3) || name[5] != '>') return -1;
    memcpy(digits, name + 3, 2);
    if (digits[0] == '+') digits[0] = '0'; /* as the reference implementation reads numbers */
    if (digits[0] == '-' || digits[0] <= ' ') return -1;
    long byte = strtol(digits, &end, 16);
    return *end ? -1 : (int)byte;
}

/* Bytes in a row are text where they are UTF-8 together, else U+FFFD each. */
static int end_bytes(struct text *bytes, bool raw, struct texts *out) {
    int status = GDN_OK;
    if (bytes->length && (raw || characters_valid(bytes->bytes, bytes->length) == bytes->length))
        status = texts_add(out, bytes->bytes, bytes->length);
    else
        for (size_t i = 0; i < bytes->length && !status; i++) status = texts_add(out, "\xef\xbf\xbd", 3);
    bytes->length = 0;
    return status;
}

static int byte_fallback_decode(const struct decoder *decoder, const struct decoding *how,
                                const struct texts *in, struct texts *out) {
    (void)decoder;
    struct text bytes = {0};
    int status = GDN_OK;
    for (long i = 0; i < in->count && !status; i++) {
        size_t length;
        const char *name = texts_at(in, i, &length);
        int byte = byte_of_name(name, length);
        if (byte >= 0) {
            status = text_add(&bytes, &(char){(char)byte}, 1);
            continue;
        }
        status = end_bytes(&bytes, how->raw, out);
        if (!status) status = texts_add(out, name, length);
    }
    if (!status) status = end_bytes(&bytes, how->raw, out);
    text_free(&bytes);
    return status;
}

static const struct decoder_kind kinds[] = {
    {"ByteLevel", byte_level_known, NULL, byte_level_decode},
    {"Metaspace", metaspace_known, metaspace_open_decoder, metaspace_decode},
    {"Replace", "type pattern content", replace_open_decoder, replace_decode},
    {"Fuse", "type", NULL, fuse_decode},
    {"Strip", "type content start stop", strip_open, strip_decode},
    {"ByteFallback", "type", NULL, byte_fallback_decode},
};

static int take(const struct place *place, const json_t *object, void *input) {
    struct decoders *decoders = input;
    const void *kind;
    TRY(field_row(place, object, kinds, sizeof *kinds, sizeof kinds / sizeof *kinds, &kind));
    struct decoder *rows = realloc(decoders->row, (size_t)(decoders->count + 1) * sizeof *rows);
    if (!rows) return gdn_fail(GDN_INTERNAL, "no memory for a decoder");
    decoders->row = rows;
    struct decoder *row = &rows[decoders->count++];
    *row = (struct decoder){.kind = kind};
    TRY(fields_known(place, object, row->kind->known));
    return row->kind->open ? row->kind->open(place, object, row) : GDN_OK;
}

int decoders_open(const struct place *place, const json_t *object, struct decoders *out) {
    *out = (struct decoders){0};
    return fields_each(place, object, "decoders", take, out);
}

void decoders_close(struct decoders *decoders) {
    for (int i = 0; i < decoders->count; i++) {
        pattern_close(&decoders->row[i].pattern);
        text_free(&decoders->row[i].content);
    }
    free(decoders->row);
    *decoders = (struct decoders){0};
}

static int join(const struct texts *names, const char *between, struct text *out) {
    for (long i = 0; i < names->count; i++) {
        size_t length;
        const char *name = texts_at(names, i, &length);
        if (i) TRY(text_add(out, between, strlen(between)));
        TRY(text_add(out, name, length));
    }
    return GDN_OK;
}

int decoders_run(const struct decoders *decoders, bool raw, struct texts *names, struct text *out) {
    struct texts other = {.count = 0}, swap;
    struct text searched = {0};
    const struct decoding how = {onig_region_new(), &searched, raw};
    int status = how.region ? GDN_OK : gdn_fail(GDN_INTERNAL, "no memory to decode");
    for (int i = 0; i < decoders->count && !status; i++) {
        texts_clear(&other);
        status = decoders->row[i].kind->run(&decoders->row[i], &how, names, &other);
        swap = *names, *names = other, other = swap;
    }
    if (!status) status = join(names, decoders->count ? "" : " ", out);
    texts_free(&other);
    text_free(&searched);
    if (how.region) onig_region_free(how.region, 1);
    return status;
}
