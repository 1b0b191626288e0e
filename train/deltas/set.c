#include "train/deltas/set.h"

#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/deltas/each.h"

static int no_memory(void) {
    return gdn_fail(GDN_INTERNAL, "out of memory for figures");
}

/* Keeps a record without the two large factors. */
static int keep(void *context, const struct delta_entry *entry, struct delta_record *record, int element) {
    struct delta_set *set = context;
    (void)entry, (void)element;
    struct delta_record *more = realloc(set->record, (size_t)(set->count + 1) * sizeof *more);
    if (!more) return no_memory();
    set->record = more;
    set->record[set->count] = *record;
    set->record[set->count].factors.u = set->record[set->count].factors.vt = NULL;
    record->factors.sigma = NULL; /* ours now */
    set->count++;
    return 0;
}

static int by_value(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Sorts and leaves each number once. */
static int unique(int *number, int count) {
    int left = 0;
    qsort(number, (size_t)count, sizeof *number, by_value);
    for (int i = 0; i < count; i++)
        if (left == 0 || number[i] != number[left - 1]) number[left++] = number[i];
    return left;
}

static int index_set(struct delta_set *set) {
    set->layer = malloc((size_t)(set->count + 1) * sizeof *set->layer);
    set->distance = malloc((size_t)(set->count + 1) * sizeof *set->distance);
    if (!set->layer || !set->distance) return no_memory();
    for (int i = 0; i < set->count; i++) {
        set->layer[i] = set->record[i].layer, set->distance[i] = set->record[i].distance;
        if (i == 0 || set->record[i].step != set->newest) set->steps++;
        set->newest = set->record[i].step; /* they are in this order */
    }
    set->layers = unique(set->layer, set->count);
    set->distances = unique(set->distance, set->count);
    return 0;
}

int delta_set_read(struct delta_survey *survey, struct delta_set *out) {
    TRY(deltas_each(survey, keep, out));
    return out->count ? index_set(out) : 0;
}

void delta_set_free(struct delta_set *set) {
    for (int i = 0; i < set->count; i++) delta_record_free(&set->record[i]);
    free(set->record);
    free(set->layer);
    free(set->distance);
}

const struct delta_record *delta_set_newest(const struct delta_set *set, int layer, int distance) {
    for (int i = set->count; i-- > 0 && set->record[i].step == set->newest;)
        if (set->record[i].layer == layer && set->record[i].distance == distance) return &set->record[i];
    return NULL;
}
