#include "data/tokenizer/byte_level.h"

#include "data/tokenizer/characters.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "kernels/base/status.h"

/* How words are cut where the tokenizer brings no expression of its own: GPT-2's. */
#define WORDS "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* Bytes up to `byte` that are not printable: 0 to 32, 127 to 160 and 173. */
int32_t byte_level_character(unsigned char byte) {
    if (byte <= 0x20) return 0x100 + byte;
    if (byte < 0x7f) return byte;
    if (byte <= 0xa0) return 0x100 + 0x21 + byte - 0x7f;
    return byte == 0xad ? 0x100 + 0x43 : byte;
}

int byte_level_byte(int32_t c) {
    if (c >= 0x100 && c <= 0x120) return c - 0x100;
    if (c > 0x120 && c <= 0x142) return c - 0x121 + 0x7f;
    if (c == 0x143) return 0xad;
    return (c > 0x20 && c < 0x7f) || (c > 0xa0 && c < 0x100 && c != 0xad) ? c : -1;
}

int byte_level_open(const struct place *place, const json_t *object, struct step *step) {
    bool trim;
    step->behavior = ISOLATED;
    TRY(field_bool(place, object, "add_prefix_space", MUST, &step->prefix_space));
    TRY(field_bool(place, object, "trim_offsets", true, &trim));
    TRY(field_bool(place, object, "use_regex", true, &step->use_regex));
    return step->use_regex ? pattern_open_regex(WORDS, &step->pattern) : GDN_OK;
}

/* Each byte as its character, behind the piece's own in the step's buffer. */
static int map(const struct walk *walk, int i, struct passage piece) {
    struct text *out = &walk->buffer[i];
    size_t begin = out->length, head = 0;
    TRY(text_reserve(out, 2 * piece.length));
    char *to = out->bytes + begin;
    for (size_t k = 0; k < piece.length; k++) {
        int32_t c = byte_level_character((unsigned char)piece.text[k]);
        if (c < 0x80) {
            *to++ = (char)c;
        } else {
            *to++ = (char)(0xc0 | c >> 6);
            *to++ = (char)(0x80 | (c & 0x3f));
        }
        if (k + 1 == piece.head) head = (size_t)(to - out->bytes) - begin;
    }
    char *from = out->bytes + begin;
    return walk_step(walk, i + 1, (struct passage){from, (size_t)(to - from), head});
}

int byte_level_run(const struct walk *walk, int i, struct passage piece) {
    const struct step *step = &walk->step[i];
    struct text *buffer = &walk->buffer[i];
    buffer->length = 0;
    if (step->prefix_space && piece.text[0] != ' ') {
        TRY(text_reserve(buffer, 3 * (piece.length + 1))); /* so that map() moves nothing */
        TRY(text_add(buffer, " ", 1));
        TRY(text_add(buffer, piece.text, piece.length));
        piece = (struct passage){buffer->bytes, buffer->length, piece.head ? piece.head + 1 : 0};
    }
    if (!step->use_regex) return map(walk, i, piece);
    struct search search = search_begin(&step->pattern, walk->region, piece.text, piece.length);
    size_t done = 0, start, end;
    for (bool found;; done = end) {
        TRY(search_next(&search, &start, &end, &found));
        if (!found) start = piece.length;
        if (done < start) TRY(map(walk, i, passage_part(piece, done, start)));
        if (!found) return GDN_OK;
        TRY(map(walk, i, passage_part(piece, start, end)));
    }
}
