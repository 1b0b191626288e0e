/* The least cost within a budget of bytes: layer by layer, of all sums of options so far only those are kept
 * that no other beats in both bytes and cost (a Pareto front), with the way they came about. */
#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/plan/recompute.h"

struct point {
    int64_t bytes;
    double cost;
    int from;             /* point of the front before */
    unsigned char option; /* of this layer */
};

struct front {
    int count;
    struct point *point; /* bytes rise, costs fall */
};

static int by_bytes(const void *a, const void *b) {
    const struct point *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    if (x->option != y->option) return x->option < y->option ? -1 : 1; /* so that all ranks choose alike */
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Leaves out what another point beats. */
static int drop_beaten(struct point *point, int count) {
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (!kept || point[i].cost < point[kept - 1].cost) point[kept++] = point[i];
    return kept;
}

/* Of more points than RECOMPUTE_FRONT keeps some that are evenly spread over the bytes, first and last among
 * them. */
static int thin(struct point *point, int count) {
    if (count <= RECOMPUTE_FRONT) return count;
    double step = (double)(point[count - 1].bytes - point[0].bytes) / (RECOMPUTE_FRONT - 2);
    int kept = 1;
    for (int i = 1; i < count; i++)
        if (i == count - 1 || (double)(point[i].bytes - point[kept - 1].bytes) >= step)
            point[kept++] = point[i];
    return kept;
}

static int extend(const struct front *before, const struct recompute_option *option, int options,
                  struct front *out) {
    out->point = malloc((size_t)before->count * (size_t)options * sizeof *out->point);
    if (!out->point) return gdn_fail(GDN_INTERNAL, "out of memory for the choice of what is recomputed");
    for (int i = 0; i < before->count; i++)
        for (int o = 0; o < options; o++)
            out->point[out->count++] = (struct point){.bytes = before->point[i].bytes + option[o].bytes,
                                                      .cost = before->point[i].cost + option[o].cost,
                                                      .from = i,
                                                      .option = (unsigned char)o};
    qsort(out->point, (size_t)out->count, sizeof *out->point, by_bytes);
    out->count = thin(out->point, drop_beaten(out->point, out->count));
    return 0;
}

/* The last point within the budget is the cheapest; where there is none, the first has the least bytes. */
static void choose(const struct front *front, int layers, int64_t budget, unsigned char *chosen, double *cost,
                   bool *fits) {
    const struct front *last = &front[layers];
    int at = 0;
    *fits = last->point[0].bytes <= budget;
    while (at + 1 < last->count && last->point[at + 1].bytes <= budget) at++;
    *cost = last->point[at].cost;
    for (int l = layers; l > 0; l--) {
        chosen[l - 1] = front[l].point[at].option;
        at = front[l].point[at].from;
    }
}

int recompute_solve(const struct recompute_option *option, int layers, int options, int64_t budget,
                    unsigned char *chosen, double *cost, bool *fits) {
    struct point start = {0};
    struct front *front = calloc((size_t)layers + 1, sizeof *front);
    if (!front) return gdn_fail(GDN_INTERNAL, "out of memory for the choice of what is recomputed");
    front[0] = (struct front){.count = 1, .point = &start};
    int status = 0;
    for (int l = 0; l < layers && !status; l++)
        status = extend(&front[l], option + (long)l * options, options, &front[l + 1]);
    if (!status) choose(front, layers, budget, chosen, cost, fits);
    for (int l = 1; l <= layers; l++) free(front[l].point);
    free(front);
    return status;
}
