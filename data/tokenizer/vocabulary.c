#include "data/tokenizer/vocabulary.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "kernels/base/status.h"

static size_t first_slot(const struct vocabulary *v, const char *name, size_t length) {
    return XXH3_64bits(name, length) & (v->slots - 1);
}

static void put(struct vocabulary *v, int32_t id) {
    size_t at = first_slot(v, v->names.bytes + v->start[id], (size_t)v->length[id]);
    while (v->slot[at] >= 0) at = (at + 1) & (v->slots - 1);
    v->slot[at] = id;
}

/* Slots are twice the ids, or more. */
static int more_slots(struct vocabulary *v) {
    size_t slots = v->slots ? 2 * v->slots : 1024;
    int32_t *slot = malloc(slots * sizeof *slot);
    if (!slot) return gdn_fail(GDN_INTERNAL, "no memory for a vocabulary of %ld tokens", v->count);
    memset(slot, 0xff, slots * sizeof *slot);
    free(v->slot);
    v->slot = slot;
    v->slots = slots;
    for (int32_t id = 0; id < v->end; id++)
        if (v->length[id] >= 0) put(v, id);
    return GDN_OK;
}

static int more_ids(struct vocabulary *v, long end) {
    if (end > v->room) {
        long room = end + end / 2 + 256;
        size_t *start = realloc(v->start, (size_t)room * sizeof *start);
        if (start) v->start = start;
        int32_t *length = realloc(v->length, (size_t)room * sizeof *length);
        if (length) v->length = length;
        if (!start || !length)
            return gdn_fail(GDN_INTERNAL, "no memory for a vocabulary of %ld tokens", room);
        v->room = room;
    }
    for (; v->end < end; v->end++) v->length[v->end] = -1;
    return GDN_OK;
}

int vocabulary_add(struct vocabulary *v, const char *name, size_t length, int32_t id) {
    TRY(more_ids(v, (long)id + 1));
    if ((size_t)v->count * 2 >= v->slots) TRY(more_slots(v));
    size_t start = v->names.length;
    TRY(text_add(&v->names, name, length));
    v->start[id] = start;
    v->length[id] = (int32_t)length;
    v->count++;
    put(v, id);
    return GDN_OK;
}

int32_t vocabulary_find(const struct vocabulary *v, const char *name, size_t length) {
    if (!v->slots) return -1;
    for (size_t at = first_slot(v, name, length); v->slot[at] >= 0; at = (at + 1) & (v->slots - 1)) {
        int32_t id = v->slot[at];
        if ((size_t)v->length[id] == length && !memcmp(v->names.bytes + v->start[id], name, length))
            return id;
    }
    return -1;
}

const char *vocabulary_name(const struct vocabulary *v, int32_t id, size_t *length) {
    if (id < 0 || id >= v->end || v->length[id] < 0) return NULL;
    *length = (size_t)v->length[id];
    return v->names.bytes + v->start[id];
}

void vocabulary_free(struct vocabulary *v) {
    text_free(&v->names);
    free(v->start);
    free(v->length);
    free(v->slot);
    *v = (struct vocabulary){0};
}
