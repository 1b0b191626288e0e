#include "dist/schedule/lookup.h"

#include <stdlib.h>

enum { MIN = 16, NOWHERE = -2 };

static unsigned hash_of(enum payload payload, int index, int micro_batch) {
    unsigned h =
        (unsigned)index * 2654435761u ^ (unsigned)micro_batch * 2246822519u ^ (unsigned)payload * 3266489917u;
    return h ^ h >> 15;
}

static int *first_of(const struct lookup *lookup, unsigned hash) {
    return &lookup->first[hash & (unsigned)(lookup->capacity - 1)];
}

static void put(struct lookup *lookup, int number, unsigned hash) {
    int *first = first_of(lookup, hash);
    lookup->hash[number] = hash;
    lookup->next[number] = *first;
    *first = number;
}

int lookup_reserve(struct lookup *lookup, int count) {
    if (count <= lookup->capacity) return 0;
    struct lookup more = {.capacity = lookup->capacity ? lookup->capacity : MIN};
    while (more.capacity < count) more.capacity *= 2;
    more.first = malloc((size_t)more.capacity * sizeof *more.first);
    more.next = malloc((size_t)more.capacity * sizeof *more.next);
    more.hash = malloc((size_t)more.capacity * sizeof *more.hash);
    if (!more.first || !more.next || !more.hash) {
        lookup_free(&more);
        return -1;
    }
    for (int i = 0; i < more.capacity; i++) more.first[i] = -1, more.next[i] = NOWHERE;
    for (int i = 0; i < lookup->capacity; i++)
        if (lookup->next[i] != NOWHERE) put(&more, i, lookup->hash[i]);
    lookup_free(lookup);
    *lookup = more;
    return 0;
}

void lookup_free(struct lookup *lookup) {
    free(lookup->first);
    free(lookup->next);
    free(lookup->hash);
    *lookup = (struct lookup){0};
}

void lookup_put(struct lookup *lookup, int number, enum payload payload, int index, int micro_batch) {
    put(lookup, number, hash_of(payload, index, micro_batch));
}

void lookup_remove(struct lookup *lookup, int number) {
    int *at = first_of(lookup, lookup->hash[number]);
    while (*at != number) at = &lookup->next[*at];
    *at = lookup->next[number];
    lookup->next[number] = NOWHERE;
}

int lookup_first(const struct lookup *lookup, enum payload payload, int index, int micro_batch) {
    return lookup->capacity ? *first_of(lookup, hash_of(payload, index, micro_batch)) : -1;
}

int lookup_next(const struct lookup *lookup, int number) {
    return lookup->next[number];
}
