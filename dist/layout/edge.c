#include "dist/layout/edge.h"
#include "kernels/base/status.h"

#include <stdlib.h>
#include <string.h>

static int by_target(const void *a, const void *b) {
    const struct edge *x = a, *y = b;
    if (x->target != y->target) return x->target - y->target;
    return x->rule != y->rule ? x->rule - y->rule : y->source - x->source;
}

static int validate(const struct edge *list, int count, int num_layers) {
    for (int i = 0; i < count; i++) {
        const struct edge *e = &list[i];
        if (e->source < -1 || e->source >= e->target || e->target >= num_layers)
            return gdn_fail(GDN_INTERNAL, "no edge of %d layers leads from node %d into layer %d", num_layers,
                            e->source, e->target);
        if (i && by_target(e - 1, e) == 0)
            return gdn_fail(GDN_INTERNAL, "the edge from node %d into layer %d is there twice", e->source,
                            e->target);
    }
    return 0;
}

/* Whatever is counted at place + 1 becomes where its part of a list begins. */
static void begin_parts(int *part, int count) {
    for (int i = 1; i < count; i++) part[i] += part[i - 1];
}

static void number(struct edges *x) {
    for (int e = 0; e < x->count; e++) {
        x->first[x->edge[e].target + 1]++;
        x->leaves[x->edge[e].source + 2]++;
    }
    begin_parts(x->first, x->num_layers + 1);
    begin_parts(x->leaves, x->num_layers + 2);
    for (int e = 0; e < x->count; e++) { /* by target, so that each node's are */
        struct edge *edge = &x->edge[e];
        edge->distance = edge->target - edge->source;
        bool first = e == x->first[edge->target] || edge[-1].rule != edge->rule;
        edge->connection = first ? 0 : edge[-1].connection + 1;
        x->measured += edge->measured;
        x->leaving[x->leaves[edge->source + 1]++] = e;
    }
    memmove(x->leaves + 1, x->leaves, (size_t)(x->num_layers + 1) * sizeof *x->leaves);
    x->leaves[0] = 0;
}

int edges_of(const struct edge *list, int count, int num_layers, struct edges *out) {
    *out = (struct edges){.count = count,
                          .num_layers = num_layers,
                          .edge = malloc((size_t)(count + 1) * sizeof *out->edge),
                          .first = calloc((size_t)num_layers + 1, sizeof *out->first),
                          .leaving = malloc((size_t)(count + 1) * sizeof *out->leaving),
                          .leaves = calloc((size_t)num_layers + 2, sizeof *out->leaves)};
    int status = 0;
    if (!out->edge || !out->first || !out->leaving || !out->leaves)
        status = gdn_fail(GDN_INTERNAL, "out of memory for the edge table of %d layers", num_layers);
    if (!status && count) {
        memcpy(out->edge, list, (size_t)count * sizeof *list);
        qsort(out->edge, (size_t)count, sizeof *out->edge, by_target);
        status = validate(out->edge, count, num_layers);
    }
    if (status)
        edges_free(out);
    else
        number(out);
    return status;
}

void edges_free(struct edges *edges) {
    free(edges->edge);
    free(edges->first);
    free(edges->leaving);
    free(edges->leaves);
    *edges = (struct edges){0};
}

int edge_set_create(const struct edges *edges, const bool *has, struct edge_set *out) {
    *out = (struct edge_set){.has = calloc((size_t)edges->count + 1, sizeof *out->has),
                             .into = calloc((size_t)edges->num_layers + 1, sizeof *out->into)};
    if (!out->has || !out->into) {
        edge_set_free(out);
        return gdn_fail(GDN_INTERNAL, "out of memory for a set of %d edges", edges->count);
    }
    for (int e = 0; e < edges->count; e++) {
        if (!has[e]) continue;
        out->has[e] = true;
        out->into[edges->edge[e].target]++;
        out->count++;
        out->measured += edges->edge[e].measured;
    }
    return 0;
}

void edge_set_free(struct edge_set *set) {
    free(set->has);
    free(set->into);
    *set = (struct edge_set){0};
}
