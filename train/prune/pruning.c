#include "train/prune/pruning.h"

#include "kernels/base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_connection(const struct pruning *p, int e) {
    return p->edges->edge[e].measured;
}

int pruning_create(const struct prune_config *config, const struct edges *edges, struct pruning *out) {
    const size_t count = (size_t)edges->count + 1;
    *out = (struct pruning){.config = config, .edges = edges, .connections = edges->measured, .margin = NAN};
    if (!config->by) return 0;
    out->has = calloc(count, sizeof *out->has);
    out->average = calloc(count, sizeof *out->average);
    out->sums = calloc(count, sizeof *out->sums);
    out->order = calloc(count, sizeof *out->order);
    if (!out->has || !out->average || !out->sums || !out->order)
        return gdn_fail(GDN_INTERNAL, "out of memory for the importance of %d connections", edges->count);
    for (int e = 0; e < edges->count; e++) out->has[e] = true;
    return 0;
}

void pruning_free(struct pruning *p) {
    free(p->has);
    free(p->average);
    free(p->sums);
    free(p->order);
    free(p->text);
    *p = (struct pruning){0};
}

const struct importance *pruning_importance(const struct prune_config *config) {
    return &importance_rows[config->by];
}

bool pruning_measures(const struct prune_config *config, int64_t step) {
    return importance_of_steps(pruning_importance(config)) && step < config->end;
}

bool pruning_due(const struct pruning *p, int64_t step) {
    const struct prune_config *config = p->config;
    if (!config->by || step < config->begin || step > config->end) return false;
    if (!p->measured && !pruning_importance(config)->left_out) return false; /* nothing is known */
    return step == config->end || (step - config->begin) % config->interval == 0;
}

bool pruning_has_pruned(const struct pruning *p) {
    for (int e = 0; p->has && e < p->edges->count; e++)
        if (!p->has[e]) return true;
    return false;
}

const bool *pruning_chosen(const struct pruning *p) {
    return pruning_has_pruned(p) ? p->has : NULL;
}

void pruning_add(struct pruning *p) {
    const struct importance *row = pruning_importance(p->config);
    const double part = fmax(1 / ((double)p->measured + 1), row->newest);
    for (int e = 0; e < p->edges->count; e++)
        if (is_connection(p, e) && p->has[e]) p->average[e] += part * (row->measured(&p->sums[e]) - p->average[e]);
    p->measured++;
}

/* ------------------------------------------------------------------------------------------- decisions */

static int by_importance(const void *a, const void *b) {
    const struct pruning_place *x = a, *y = b;
    return x->importance != y->importance ? (x->importance < y->importance) - (x->importance > y->importance)
                                          : x->edge - y->edge;
}

static int part_of(const struct pruning *p, double part) {
    return (int)lround((double)p->connections * part);
}

/* Of the steps from begin to end, 1 to 0. */
static double steps_left(const struct prune_config *config, int64_t step) {
    return fmin(1, fmax(0, (double)(config->end - step) / (double)(config->end - config->begin)));
}

int pruning_schedule(const struct pruning *p, int64_t step) {
    const double left = steps_left(p->config, step);
    return part_of(p, p->config->keep + (1 - p->config->keep) * left * left * left);
}

/* How many of `absent` come back, for `left` in use: fewer and fewer, as with Evci et al. 2020 (there along a cosine),
 * so that each has been measured anew by the end, where none comes. */
static int regrowth(const struct pruning *p, int64_t step, int left, int absent) {
    const int back = (int)lround(p->config->regrow * steps_left(p->config, step) * left);
    return back < absent ? back : absent;
}

/* The documents' adaptive threshold rises by a tenth in 10,000 steps. */
static double threshold_at(const struct prune_config *config, int64_t step) {
    return config->rule == PRUNING_ADAPTIVE ? config->threshold * (1 + 0.1 * (double)step / 10000)
                                            : config->threshold;
}

/* By which part of itself one value could move before it came to another. */
static double apart(double value, double other) {
    const double most = fmax(fabs(value), fabs(other));
    return most > 0 ? fabs(value - other) / most : 0;
}

/* By which part of itself an importance could move before others of `count` were the first ones. */
static double margin_between(const struct pruning_place *order, int first, int count) {
    return first > 0 && first < count ? apart(order[first - 1].importance, order[first].importance) : NAN;
}

/* How many of the first `count` stay, how many of `absent` come back (p->back), and by which margin. */
static int keep_by_budget(struct pruning *p, int count, int absent, int64_t step) {
    const int places = pruning_schedule(p, step);
    p->back = regrowth(p, step, places, absent); /* in places of the budget */
    const int keep = places - p->back < count ? places - p->back : count;
    p->margin = margin_between(p->order, keep, count);
    return keep;
}

static int keep_by_threshold(struct pruning *p, int count, int absent, int64_t step) {
    const double threshold = threshold_at(p->config, step);
    const int least = part_of(p, p->config->keep);
    int keep = count;
    while (keep > least && p->order[keep - 1].importance < threshold) keep--;
    for (int i = least; i < count; i++) {
        const double margin = apart(p->order[i].importance, threshold);
        p->margin = isnan(p->margin) ? margin : fmin(p->margin, margin);
    }
    if (keep == least) /* threshold or not: the order has decided */
        p->margin = fmin(p->margin, margin_between(p->order, keep, count));
    p->back = regrowth(p, step, keep, absent);
    return keep;
}

/* Puts the connections that are in use, or that are not, into `order`, and returns how many these are. */
static int sort(const struct pruning *p, bool in_use, const double *mix, struct pruning_place *order) {
    const struct importance *row = pruning_importance(p->config);
    int count = 0;
    for (int e = 0; e < p->edges->count; e++)
        if (is_connection(p, e) && p->has[e] == in_use)
            order[count++] = (struct pruning_place){e, row->importance(p->average[e], mix[e])};
    qsort(order, (size_t)count, sizeof *order, by_importance);
    return count;
}

int pruning_decide(struct pruning *p, int64_t step, const double *mix) {
    const int count = sort(p, true, mix, p->order);
    struct pruning_place *gone_before = p->order + count;
    const int absent = sort(p, false, mix, gone_before);
    p->margin = NAN;
    p->kept = p->config->rule == PRUNING_BUDGET ? keep_by_budget(p, count, absent, step)
                                                : keep_by_threshold(p, count, absent, step);
    p->margin = fmin(p->margin, margin_between(gone_before, p->back, absent)); /* of a NAN and a number the latter */
    p->gone = count - p->kept;
    for (int i = p->kept; i < count + p->back; i++) p->has[p->order[i].edge] = i >= count;
    return p->gone + p->back;
}

/* ------------------------------------------------------------------------------------------- as a text */

/* Its first line is "measured N"; then of each connection "TARGET SOURCE LEFT AVERAGE". */
const char *pruning_text(struct pruning *p) {
    size_t length;
    free(p->text);
    p->text = NULL;
    FILE *out = open_memstream(&p->text, &length);
    if (!out) return NULL;
    fprintf(out, "measured %lld\n", (long long)p->measured);
    for (int e = 0; e < p->edges->count; e++)
        if (is_connection(p, e))
            fprintf(out, "%d %d %d %.17g\n", p->edges->edge[e].target, p->edges->edge[e].source, p->has[e],
                    p->average[e]);
    return fclose(out) ? NULL : p->text;
}

static int not_of_these(void) {
    return gdn_fail(GDN_INPUT, "/pruning of the checkpoint is not of the configuration's connections");
}

int pruning_read(struct pruning *p, const char *text) {
    long long measured;
    int used;
    if (!text || sscanf(text, "measured %lld\n%n", &measured, &used) != 1) return not_of_these();
    p->measured = measured;
    for (int e = 0; e < p->edges->count; e++) {
        int target, source, left;
        if (!is_connection(p, e)) continue;
        text += used;
        if (sscanf(text, "%d %d %d %lf\n%n", &target, &source, &left, &p->average[e], &used) != 4 ||
            target != p->edges->edge[e].target || source != p->edges->edge[e].source)
            return not_of_these();
        p->has[e] = left;
    }
    return 0;
}
