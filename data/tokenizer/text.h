/* Bytes and token ids that grow, for all files of this folder. */
#ifndef GDN_TOKENIZER_TEXT_H
#define GDN_TOKENIZER_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Zeros are an empty one; free with text_free. */
struct text {
    char *bytes; /* [length], with room for `room` */
    size_t length, room;
};

/* Makes room for `more` bytes behind those that are there. GDN_INTERNAL without memory, as the others. */
int text_reserve(struct text *text, size_t more);
int text_add(struct text *text, const char *bytes, size_t count);
void text_free(struct text *text);

/* Zeros are an empty list; free with ids_free. */
struct ids {
    int32_t *id; /* [count] */
    long count, room;
};

int ids_reserve(struct ids *ids, long more);
int ids_add(struct ids *ids, const int32_t *id, long count);
void ids_free(struct ids *ids);

/* Texts one behind the other. Zeros are an empty list; free with texts_free. */
struct texts {
    struct text all;
    size_t *end; /* [count] where each ends in `all` */
    long count, room;
};

int texts_add(struct texts *texts, const char *bytes, size_t count);
/* Ends a text whose bytes were appended to `all`. */
int texts_end(struct texts *texts);
/* Text i, and its length. */
const char *texts_at(const struct texts *texts, long i, size_t *length);
void texts_clear(struct texts *texts);
void texts_free(struct texts *texts);

#endif
