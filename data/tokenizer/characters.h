/* Characters of UTF-8 text: their numbers, and the classes that tokenizers ask for. */
#ifndef GDN_TOKENIZER_CHARACTERS_H
#define GDN_TOKENIZER_CHARACTERS_H

#include <stdbool.h>

#include "data/tokenizer/text.h"

enum { CHARACTER_MAX = 0x110000 }; /* one more than the greatest */

/* The character at `at` of valid UTF-8, and how many bytes it has. */
static inline int32_t character_at(const char *at, size_t *size) {
    const unsigned char *b = (const unsigned char *)at;
    if (b[0] < 0x80) return *size = 1, b[0];
    if (b[0] < 0xe0) return *size = 2, (b[0] & 0x1f) << 6 | (b[1] & 0x3f);
    if (b[0] < 0xf0) return *size = 3, (b[0] & 0xf) << 12 | (b[1] & 0x3f) << 6 | (b[2] & 0x3f);
    return *size = 4, (b[0] & 7) << 18 | (b[1] & 0x3f) << 12 | (b[2] & 0x3f) << 6 | (b[3] & 0x3f);
}

/* Where the character that ends before `end` begins. */
static inline const char *character_before(const char *start, const char *end) {
    do end--;
    while (end > start && ((unsigned char)*end & 0xc0) == 0x80);
    return end;
}

/* Writes a character to out [4] and returns how many bytes it has. */
size_t character_put(int32_t character, char *out);

/* Appends `bytes`, with U+FFFD in place of each sequence that is no UTF-8: of each longest beginning of a
 * character, else of each byte, as Python's errors="replace" has it. */
int characters_repair(const char *bytes, size_t count, struct text *out);

/* The bytes before the first that are no UTF-8; `count` where all are. */
size_t characters_valid(const char *bytes, size_t count);

bool character_is_space(int32_t c);       /* Unicode's White_Space */
bool character_is_word(int32_t c);        /* \w of regular expressions, with Unicode's properties */
bool character_is_numeric(int32_t c);     /* categories Nd, Nl and No */
bool character_is_punctuation(int32_t c); /* categories P…, and ASCII's symbols */

#endif
