#include "data/tokenizer/text.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

/* Room for `need` elements of `size` bytes, at least half as much again as there was. */
static int grow(void **array, size_t size, size_t need, size_t *room) {
    if (need <= *room) return GDN_OK;
    size_t wanted = need + *room / 2 + 16;
    void *grown = wanted < need || wanted > SIZE_MAX / size ? NULL : realloc(*array, wanted * size);
    if (!grown) return gdn_fail(GDN_INTERNAL, "no memory for %zu bytes of text or tokens", need);
    *array = grown;
    *room = wanted;
    return GDN_OK;
}

int text_reserve(struct text *text, size_t more) {
    return grow((void **)&text->bytes, 1, text->length + more, &text->room);
}

int text_add(struct text *text, const char *bytes, size_t count) {
    TRY(text_reserve(text, count));
    if (count) memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    return GDN_OK;
}

void text_free(struct text *text) {
    free(text->bytes);
    *text = (struct text){0};
}

int ids_reserve(struct ids *ids, long more) {
    size_t room = (size_t)ids->room;
    TRY(grow((void **)&ids->id, sizeof *ids->id, (size_t)(ids->count + more), &room));
    ids->room = (long)room;
    return GDN_OK;
}

int ids_add(struct ids *ids, const int32_t *id, long count) {
    TRY(ids_reserve(ids, count));
    if (count) memcpy(ids->id + ids->count, id, (size_t)count * sizeof *id);
    ids->count += count;
    return GDN_OK;
}

void ids_free(struct ids *ids) {
    free(ids->id);
    *ids = (struct ids){0};
}

int texts_end(struct texts *texts) {
    size_t room = (size_t)texts->room;
    TRY(grow((void **)&texts->end, sizeof *texts->end, (size_t)texts->count + 1, &room));
    texts->room = (long)room;
    texts->end[texts->count++] = texts->all.length;
    return GDN_OK;
}

int texts_add(struct texts *texts, const char *bytes, size_t count) {
    TRY(text_add(&texts->all, bytes, count));
    return texts_end(texts);
}

const char *texts_at(const struct texts *texts, long i, size_t *length) {
    size_t start = i ? texts->end[i - 1] : 0;
    *length = texts->end[i] - start;
    return texts->all.bytes ? texts->all.bytes + start : "";
}

void texts_clear(struct texts *texts) {
    texts->all.length = 0;
    texts->count = 0;
}

void texts_free(struct texts *texts) {
    text_free(&texts->all);
    free(texts->end);
    *texts = (struct texts){0};
}
