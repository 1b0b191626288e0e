#include "data/tokenizer/characters.h"

#include <string.h>
#include <utf8proc.h>

#include "kernels/base/status.h"
#include "kernels/base/utf8.h"

size_t character_put(int32_t character, char *out) {
    return (size_t)utf8proc_encode_char(character, (utf8proc_uint8_t *)out);
}

/* Bytes at `at`, of which `left` follow and that are no character, which one U+FFFD replaces: as many as a
 * character might begin with. */
static size_t broken_bytes(const char *at, size_t left) {
    const unsigned char *b = (const unsigned char *)at;
    size_t whole = b[0] >= 0xc2 && b[0] < 0xe0   ? 2
                   : b[0] >= 0xe0 && b[0] < 0xf0 ? 3
                   : b[0] >= 0xf0 && b[0] < 0xf5 ? 4
                                                 : 1;
    unsigned char low = b[0] == 0xe0 ? 0xa0 : b[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = b[0] == 0xed ? 0x9f : b[0] == 0xf4 ? 0x8f : 0xbf;
    size_t n = 1;
    for (; n < whole && n < left && b[n] >= low && b[n] <= high; n++) low = 0x80, high = 0xbf;
    return n;
}

size_t characters_valid(const char *bytes, size_t count) {
    size_t i = 0;
    while (i < count) {
        uint64_t eight;
        if (count - i >= sizeof eight) { /* mostly ASCII */
            memcpy(&eight, bytes + i, sizeof eight);
            if (!(eight & 0x8080808080808080u)) {
                i += sizeof eight;
                continue;
            }
        }
        size_t n = (unsigned char)bytes[i] < 0x80 ? 1 : utf8_bytes(bytes + i, count - i);
        if (!n) break;
        i += n;
    }
    return i;
}

int characters_repair(const char *bytes, size_t count, struct text *out) {
    for (size_t i = 0; i < count;) {
        size_t valid = characters_valid(bytes + i, count - i);
        TRY(text_add(out, bytes + i, valid));
        i += valid;
        if (i == count) break;
        TRY(text_add(out, "\xef\xbf\xbd", 3));
        i += broken_bytes(bytes + i, count - i);
    }
    return GDN_OK;
}

bool character_is_space(int32_t c) {
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Alphabetic characters (letters, letter numbers, and symbols with letters in them), marks, digits,
 * connectors and the two joiners: Unicode's annex on regular expressions. */
bool character_is_word(int32_t c) {
    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    if (c == 0x200c || c == 0x200d) return true;
    if ((c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
        (c >= 0x1f170 && c <= 0x1f189))
        return true;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return false;
    }
}

bool character_is_numeric(int32_t c) {
    if (c < 0x80) return c >= '0' && c <= '9';
    utf8proc_category_t category = utf8proc_category(c);
    return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool character_is_punctuation(int32_t c) {
    if (c < 0x80)
        return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || (c > 'z' && c < 0x7f);
    utf8proc_category_t category = utf8proc_category(c);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}
