#include "train/learned/learned.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

/* "layers.3.dense.2.value.weight" → "dense.value.weight", where 2 is the distance. */
static void name_of(const struct row *row, char *out, size_t size) {
    const char *rule = strchr(row->name + strlen("layers."), '.') + 1;
    const char *rest = strchr(rule, '.');
    int length = (int)(rest - rule);
    if (row->distance) rest = strchr(rest + 1, '.');
    snprintf(out, size, "%.*s%s", length, rule, rest);
}

static struct learned *find(struct learned_set *set, const char *name) {
    for (int i = 0; i < set->count; i++)
        if (!strcmp(set->learned[i].name, name)) return &set->learned[i];
    return NULL;
}

static double rms(const real *x, long count) {
    double sum = 0;
    for (long i = 0; i < count; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum / (double)count);
}

/* The entry of this name, made where it is missing; NULL without memory. */
static struct learned *entry(struct learned_set *set, const struct row *row) {
    char name[sizeof set->learned->name];
    name_of(row, name, sizeof name);
    struct learned *l = find(set, name);
    if (l) return l;
    struct learned *more = realloc(set->learned, (size_t)(set->count + 1) * sizeof *more);
    if (!more) return NULL;
    set->learned = more;
    l = &more[set->count++];
    *l = (struct learned){.number = true, .own = true};
    memcpy(l->name, name, sizeof name);
    return l;
}

static bool add(struct learned_set *set, const struct row *row, const real *w) {
    struct learned *l = entry(set, row);
    struct learned_value *more = l ? realloc(l->value, (size_t)(l->count + 1) * sizeof *more) : NULL;
    if (!more) return false;
    l->value = more;
    int source = row->distance ? row->layer - row->distance : LEARNED_OWN;
    if (row->count > 1) l->number = false;
    if (row->distance) l->own = false;
    more[l->count++] = (struct learned_value){row->layer, source, row->count > 1 ? rms(w, row->count) : (double)*w};
    return true;
}

static int by_layer(const void *a, const void *b) {
    const struct learned_value *x = a, *y = b;
    return x->layer != y->layer ? x->layer - y->layer : x->source - y->source;
}

int learned_read(const struct table *table, const real *weight, int layers, struct learned_set *out) {
    *out = (struct learned_set){.layers = layers};
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (row->rule >= 0 && !add(out, row, weight + row->offset))
            return gdn_fail(GDN_INTERNAL, "out of memory for what rules have learned");
    }
    for (int i = 0; i < out->count; i++)
        qsort(out->learned[i].value, (size_t)out->learned[i].count, sizeof *out->learned[i].value, by_layer);
    return 0;
}

void learned_free(struct learned_set *set) {
    for (int i = 0; i < set->count; i++) free(set->learned[i].value);
    free(set->learned);
    *set = (struct learned_set){0};
}
