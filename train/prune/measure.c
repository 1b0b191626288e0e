/* Importance of connections, and the loss over how many are kept. */
#include "train/prune/prune.h"

#include "kernels/base/status.h"
#include "model/model.h"
#include "model/params/find.h"
#include "train/prune/leave_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const prune_by_words[] = {[PRUNE_LEAVE_ONE_OUT] = "leave-one-out",
                                      [PRUNE_CONTRIBUTION] = "contribution",
                                      [PRUNE_FIRST_ORDER] = "first-order",
                                      NULL};

int prune_count(const struct edges *edges, const struct edge_set *active) {
    int count = 0;
    for (int e = 0; e < edges->count; e++) count += edges->edge[e].measured && edge_set_has(active, e);
    return count;
}

/* What the work is done with. */
struct work {
    const struct prune_job *job;
    struct prune *prune;
    const struct edges *edges;
    bool *has; /* [edges] those of the next evaluation */
    int left_out; /* connections so far */
    int done, all;
};

static void tell(struct work *w) {
    w->done++;
    if (w->job->tell) w->job->tell(w->job->context, w->done, w->all);
}

static struct leave_out leaving(const struct work *w) {
    return (struct leave_out){.evaluation = w->job->evaluation, .data = w->job->evaluation->validation};
}

/* The loss with the edges of w->has. */
static int loss_with(struct work *w, double *loss) {
    const struct leave_out job = leaving(w);
    TRY(leave_out_loss(&job, w->has, loss));
    tell(w);
    return 0;
}

static void begin_set(struct work *w) {
    for (int e = 0; e < w->edges->count; e++) w->has[e] = edge_set_has(w->job->active, e);
}

/* ------------------------------------------------------------------------------------------- all of them */

/* What a connection is multiplied by; 1 where it has no mix. */
static double mix_of(const struct prune_job *job, const struct edge *edge) {
    char name[64];
    real mix = 1;
    snprintf(name, sizeof name, "layers.%d.delta.%d.mix", edge->target, edge->distance);
    const struct row *row = params_find(job->table, name);
    if (row) job->ops->device->download(&mix, job->state->weight + row->offset, sizeof mix);
    return fabs((double)mix);
}

static int measure_all(struct work *w) {
    struct prune *p = w->prune;
    struct evaluation *evaluation = w->job->evaluation;
    const double gates = (double)model_gates(w->job->config);
    double tokens, loss; /* which is the loss but for rounding: what measures adds up otherwise */
    struct connection_sums *sums = calloc((size_t)w->edges->count + 1, sizeof *sums);
    int status = mesh_agree(evaluation->mesh,
                            sums ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for %d edges", w->edges->count));
    if (!status) status = evaluation_measure(evaluation, w->job->active, sums, &tokens, &loss);
    for (int e = 0, i = 0; !status && e < w->edges->count; e++) {
        const struct edge *edge = &w->edges->edge[e];
        if (!edge->measured || !edge_set_has(w->job->active, e)) continue;
        p->edge[i++] =
            (struct prune_edge){.edge = e,
                                .target = edge->target,
                                .source = edge->source,
                                .distance = edge->distance,
                                .gate = sums[e].gate / (tokens * gates),
                                .contribution = mix_of(w->job, edge) * sums[e].contribution / tokens,
                                .effect = NAN,
                                .increase = NAN};
    }
    free(sums);
    if (!status) tell(w);
    return status;
}

/* ------------------------------------------------------------------------------------------- importance */

/* They come in the order of the table, as p->edge has them still. */
static void found(void *context, int edge, double increase) {
    struct work *w = context;
    (void)edge;
    w->prune->edge[w->left_out++].increase = increase;
    tell(w);
}

static int leave_out(struct work *w) {
    const struct leave_out job = leaving(w);
    begin_set(w);
    return leave_out_each(&job, w->has, w->prune->loss, found, w);
}

static int measure_effects(struct work *w) {
    const struct prune_job *job = w->job;
    const struct evaluation_subject subject = {job->config, job->table, job->state, job->ops};
    double *effect = calloc((size_t)w->edges->count + 1, sizeof *effect);
    int status = mesh_agree(job->evaluation->mesh,
                            effect ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for %d edges", w->edges->count));
    if (!status) status = evaluation_effects(job->evaluation, &subject, job->active, effect);
    for (int i = 0; !status && i < w->prune->count; i++)
        w->prune->edge[i].effect = effect[w->prune->edge[i].edge];
    free(effect);
    if (!status) tell(w);
    return status;
}

static void choose_importance(struct work *w) {
    for (int i = 0; i < w->prune->count; i++) {
        struct prune_edge *edge = &w->prune->edge[i];
        edge->importance = w->job->by == PRUNE_LEAVE_ONE_OUT ? edge->increase
                           : w->job->by == PRUNE_FIRST_ORDER ? edge->effect
                                                             : prune_use(edge);
    }
}

static int by_importance(const void *a, const void *b) {
    const struct prune_edge *x = a, *y = b;
    return x->importance != y->importance ? (x->importance < y->importance) - (x->importance > y->importance)
                                          : x->edge - y->edge;
}

static double importance(const struct prune_edge *edge) {
    return edge->importance;
}

static double effect(const struct prune_edge *edge) {
    return edge->effect;
}

/* The place of one among all by a value, those alike having the mean of theirs. */
static double rank_of(const struct prune *p, int i, double (*value)(const struct prune_edge *)) {
    double below = 0, own = value(&p->edge[i]);
    for (int j = 0; j < p->count; j++)
        below += value(&p->edge[j]) < own ? 1 : value(&p->edge[j]) == own && j != i ? 0.5 : 0;
    return below;
}

/* Spearman's, of a value's ranks with those of importance: Pearson's of the ranks. */
static double correlation(const struct prune *p, double (*value)(const struct prune_edge *)) {
    const double mean = (p->count - 1) / 2.0;
    double xy = 0, xx = 0, yy = 0;
    for (int i = 0; i < p->count; i++) {
        const double x = rank_of(p, i, value) - mean, y = rank_of(p, i, importance) - mean;
        xy += x * y, xx += x * x, yy += y * y;
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

/* ------------------------------------------------------------------------------------------- the curve */

/* Those numbers of connections, falling, that are a point: of all, none, those kept, and even steps between.
 */
static int choose_points(const struct prune_job *job, struct prune *p) {
    const int count = p->count, steps = job->points - 1 < count ? job->points - 1 : count;
    p->curve = calloc((size_t)count + 1, sizeof *p->curve);
    if (!p->curve) return gdn_fail(GDN_INTERNAL, "out of memory for a curve of %d points", count + 1);
    for (int kept = count; kept >= 0; kept--) {
        bool even = false;
        for (int s = 0; s <= steps && !even; s++) even = lround((double)count * s / steps) == kept;
        if (even || kept == job->keep) p->curve[p->points++].kept = kept;
    }
    return 0;
}

static int follow_curve(struct work *w) {
    struct prune *p = w->prune;
    begin_set(w);
    for (int c = 0, kept = p->count; c < p->points; c++) {
        struct prune_point *point = &p->curve[c];
        while (kept > point->kept) w->has[p->edge[--kept].edge] = false;
        point->loss = p->loss;
        if (kept < p->count) TRY(loss_with(w, &point->loss));
        if (kept == w->job->keep) p->kept_loss = point->loss;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------- all of it */

/* What a rank can do alone. */
static int prepare(struct work *w) {
    struct prune *p = w->prune;
    p->count = prune_count(w->edges, w->job->active);
    if (!p->count) return gdn_fail(GDN_INPUT, "the model has no delta connections to be pruned");
    p->edge = calloc((size_t)p->count, sizeof *p->edge);
    w->has = calloc((size_t)w->edges->count + 1, sizeof *w->has);
    if (!p->edge || !w->has) return gdn_fail(GDN_INTERNAL, "out of memory for %d connections", p->count);
    TRY(choose_points(w->job, p));
    w->all = 2 + prune_takes_effects(w->job->by, w->job->ops) + (w->job->by == PRUNE_LEAVE_ONE_OUT ? p->count : 0) + p->points - 1;
    return 0;
}

static int measure(struct work *w) {
    struct prune *p = w->prune;
    TRY(mesh_agree(w->job->evaluation->mesh, prepare(w)));
    TRY(measure_all(w));
    begin_set(w);
    TRY(loss_with(w, &p->loss));
    TRY(evaluation_tells(p->loss));
    if (prune_takes_effects(w->job->by, w->job->ops)) TRY(measure_effects(w));
    if (w->job->by == PRUNE_LEAVE_ONE_OUT) TRY(leave_out(w));
    choose_importance(w);
    if (w->job->by == PRUNE_LEAVE_ONE_OUT) {
        p->correlation = correlation(p, prune_use);
        if (prune_takes_effects(w->job->by, w->job->ops)) p->effect_correlation = correlation(p, effect);
    }
    qsort(p->edge, (size_t)p->count, sizeof *p->edge, by_importance);
    for (int i = 0; i < p->count; i++) p->edge[i].kept = w->job->keep < 0 || i < w->job->keep;
    return follow_curve(w);
}

int prune_measure(const struct prune_job *job, struct prune *out) {
    *out = (struct prune){.kept_loss = NAN, .correlation = NAN, .effect_correlation = NAN};
    struct work w = {.job = job, .prune = out, .edges = &job->evaluation->pipeline.edges};
    int status = measure(&w);
    free(w.has);
    return status;
}

void prune_free(struct prune *prune) {
    free(prune->edge);
    free(prune->curve);
    *prune = (struct prune){0};
}
