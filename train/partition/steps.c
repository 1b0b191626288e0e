/* What the schedules of a pipeline are, once they are made: which of them a step has, those of edges that training comes
 * to, and which of their actions are kept. */
#include "train/partition/pipeline.h"

#include <stdlib.h>

#include "dist/verify/verify.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"

static void keep(struct schedule *schedule, int rank) {
    for (int r = 0; r < schedule->ranks; r++) {
        if (r == rank) continue;
        free(schedule->rank[r].action);
        schedule->rank[r] = (struct actions){0};
    }
}

void pipeline_keep(struct pipeline *p, int rank) {
    for (int a = 0; a < p->distances; a++) keep(&p->introduced[a], rank);
    if (rank >= 0) keep(&p->schedule, rank);
    for (int i = 0; i < p->num_smaller; i++) {
        for (int a = 0; a < p->distances; a++) keep(&p->smaller[i].introduced[a], rank);
        keep(&p->smaller[i].schedule, rank);
    }
}

static bool raise_to(int *most, int value) {
    if (value <= *most) return false;
    *most = value;
    return true;
}

void pipeline_raise(struct pipeline *p, const struct schedule *s) {
    bool more = raise_to(&p->messages, s->messages);
    for (int i = 0; i < p->ranks * p->layout->chunks; i++)
        more |= raise_to(&p->activation_sets[i], s->activation_sets[i]);
    for (int r = 0; r < p->ranks; r++) {
        more |= raise_to(&p->blocks[r], s->blocks[r]);
        more |= raise_to(&p->narrow_blocks[r], s->narrow_blocks[r]);
        more |= raise_to(&p->weight_sets[r], s->weight_sets[r]);
        more |= raise_to(&p->actions[r], s->rank[r].count);
    }
    p->raised += more;
}

/* A schedule of the chosen edges, verified, that needs no activation set beyond those reserved. */
static int schedule_chosen(struct pipeline *p, const struct edge_set *set, int micro_batches, int rank,
                           struct schedule *out) {
    struct schedule_options options = p->options;
    struct routes routes;
    bool fits = true;
    options.micro_batches = micro_batches;
    TRY(routes_create(&p->edges, set, p->layout, &p->widths, &routes));
    int status = schedule_create(&p->edges, &routes, p->layout, &options, out);
    if (!status) status = schedule_verify(&p->edges, set, &routes, p->layout, &options, out);
    routes_free(&routes);
    TRY(status);
    for (int i = 0; i < p->ranks * p->layout->chunks; i++)
        fits = fits && out->activation_sets[i] <= p->activation_sets[i];
    if (!fits)
        return gdn_fail(GDN_INTERNAL,
                        "a schedule of %d of %d connections needs more activation sets than that of all",
                        set->count, p->edges.count);
    pipeline_raise(p, out);
    keep(out, rank);
    return GDN_OK;
}

static int make_chosen(struct pipeline *p, const bool *has, int rank, struct pipeline_chosen *out) {
    TRY(edge_set_create(&p->edges, has, &out->active));
    out->schedule = calloc((size_t)p->num_smaller + 1, sizeof *out->schedule);
    if (!out->schedule) return gdn_fail(GDN_INTERNAL, "out of memory for the schedules of chosen connections");
    TRY(schedule_chosen(p, &out->active, p->micro_batches, rank, &out->schedule[0]));
    for (int i = 0; i < p->num_smaller; i++)
        TRY(schedule_chosen(p, &out->active, p->smaller[i].micro_batches, rank, &out->schedule[1 + i]));
    return 0;
}

static void free_chosen(struct pipeline *p) {
    for (int i = 0; p->chosen && p->chosen->schedule && i <= p->num_smaller; i++)
        schedule_free(&p->chosen->schedule[i]);
    if (p->chosen) {
        free(p->chosen->schedule);
        edge_set_free(&p->chosen->active);
    }
    free(p->chosen);
    p->chosen = NULL;
}

int pipeline_choose(struct pipeline *p, const bool *has, int rank) {
    struct pipeline_chosen *before = p->chosen, *made = has ? calloc(1, sizeof *made) : NULL;
    if (has && !made) return gdn_fail(GDN_INTERNAL, "out of memory for chosen connections");
    int status = has ? make_chosen(p, has, rank, made) : 0;
    p->chosen = status ? made : before;
    free_chosen(p); /* those before; after a failure what was made */
    p->chosen = status ? before : made;
    return status;
}

const struct edge_set *pipeline_active(const struct pipeline *p, int distances) {
    return p->chosen ? &p->chosen->active : &p->active[distances];
}

/* The number of one of the sets. What one stage does is the same whatever the edges. */
static int number_of(const struct pipeline *p, const struct edge_set *active) {
    for (int a = 0; a < p->distances; a++)
        if (active == &p->active[a]) return a;
    const bool all = !active || active == &p->active[p->distances];
    return all || p->ranks * p->layout->chunks == 1 ? p->distances : -1;
}

const struct schedule *pipeline_schedule(const struct pipeline *p, int micro_batches,
                                         const struct edge_set *active) {
    const bool chosen = p->chosen && active == &p->chosen->active;
    const int a = chosen ? p->distances : number_of(p, active);
    if (a < 0) return NULL;
    if (micro_batches == p->micro_batches && chosen) return &p->chosen->schedule[0];
    if (micro_batches == p->micro_batches) return a < p->distances ? &p->introduced[a] : &p->schedule;
    for (int i = 0; i < p->num_smaller; i++) {
        const struct pipeline_smaller *s = &p->smaller[i];
        if (s->micro_batches == micro_batches && chosen) return &p->chosen->schedule[1 + i];
        if (s->micro_batches == micro_batches) return a < p->distances ? &s->introduced[a] : &s->schedule;
    }
    return NULL;
}
