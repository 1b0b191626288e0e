#include "train/plan/flows.h"

#include "kernels/base/status.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Shares of links and times that differ by less are the same: sums of a few numbers round by much less, and a
 * step's seconds are not known so well. */
static const double SAME = 1e-12;

enum { FULL = -1 }; /* in place of a link's users, while its flows get their rates */

int flows_create(int count, int links, int queues, struct flows *flows) {
    *flows = (struct flows){.count = count, .links = links, .queues = queues};
    flows->flow = calloc((size_t)count + 1, sizeof *flows->flow);
    flows->last = malloc(((size_t)queues + 1) * sizeof *flows->last);
    flows->under_way = malloc(((size_t)queues + 1) * sizeof *flows->under_way);
    flows->left = malloc(((size_t)links + 1) * sizeof *flows->left);
    flows->load = malloc(((size_t)links + 1) * sizeof *flows->load);
    flows->users = malloc(((size_t)links + 1) * sizeof *flows->users);
    if (!flows->flow || !flows->last || !flows->under_way || !flows->left || !flows->load || !flows->users) {
        flows_free(flows);
        return gdn_fail(GDN_INTERNAL, "out of memory for a simulated step's transfers");
    }
    for (int q = 0; q < queues; q++) flows->last[q] = -1;
    return 0;
}

void flows_free(struct flows *flows) {
    free(flows->flow);
    free(flows->last);
    free(flows->under_way);
    free(flows->left);
    free(flows->load);
    free(flows->users);
    *flows = (struct flows){0};
}

static double later(double a, double b) {
    return a > b ? a : b;
}

/* A flow that is first in its queue, no earlier than at `from`. */
static void begin(struct flows *flows, int id, double from) {
    struct flow *f = &flows->flow[id];
    f->state = FLOW_WAITS;
    f->at = later(f->ready, from) + f->lead;
    flows->under_way[flows->ways++] = id;
}

void flows_add(struct flows *flows, int id, struct flow flow) {
    struct flow *f = &flows->flow[id];
    int *last = &flows->last[flow.queue];
    *f = flow;
    f->next = -1;
    f->state = FLOW_QUEUED;
    if (*last >= 0)
        flows->flow[*last].next = id;
    else
        begin(flows, id, flows->now);
    *last = id;
}

/* Divides the links among the flows that move: the links with the least for each unit of weight are given
 * away first, and their flows keep that rate everywhere. */
static void divide(struct flows *flows) {
    int unknown = 0;
    for (int l = 0; l < flows->links; l++) flows->left[l] = 1, flows->load[l] = 0, flows->users[l] = 0;
    for (int i = 0; i < flows->ways; i++) {
        struct flow *f = &flows->flow[flows->under_way[i]];
        if (f->state != FLOW_MOVES) continue;
        f->rate = -1;
        unknown++;
        for (int end = 0; end < 2; end++)
            flows->load[f->link[end]] += f->weight, flows->users[f->link[end]]++;
    }
    while (unknown) {
        double least = INFINITY;
        for (int l = 0; l < flows->links; l++)
            if (flows->users[l] && flows->left[l] / flows->load[l] < least)
                least = flows->left[l] / flows->load[l];
        for (int l = 0; l < flows->links; l++) { /* which are full by that */
            if (flows->users[l] && flows->left[l] / flows->load[l] <= least * (1 + SAME))
                flows->users[l] = FULL;
        }
        for (int i = 0; i < flows->ways; i++) {
            struct flow *f = &flows->flow[flows->under_way[i]];
            if (f->state != FLOW_MOVES || f->rate >= 0) continue;
            if (flows->users[f->link[0]] != FULL && flows->users[f->link[1]] != FULL) continue;
            f->rate = f->weight * least;
            unknown--;
            for (int end = 0; end < 2; end++) {
                const int l = f->link[end];
                if (flows->users[l] <= 0) continue;
                flows->left[l] = later(flows->left[l] - f->rate, 0);
                flows->load[l] -= f->weight;
                flows->users[l]--;
            }
        }
        for (int l = 0; l < flows->links; l++)
            if (flows->users[l] == FULL) flows->users[l] = 0;
    }
}

/* When a flow under way comes to its next state. */
static double changes_at(const struct flows *flows, const struct flow *f) {
    return f->state == FLOW_MOVES ? flows->now + f->work / f->rate : f->at;
}

double flows_next(const struct flows *flows) {
    double next = INFINITY;
    for (int i = 0; i < flows->ways; i++) {
        const double at = changes_at(flows, &flows->flow[flows->under_way[i]]);
        if (at < next) next = at;
    }
    return next;
}

/* The flow at a place of those under way leaves it to the next of its queue. */
static void finish(struct flows *flows, int place) {
    const int id = flows->under_way[place];
    struct flow *f = &flows->flow[id];
    f->state = FLOW_DONE;
    flows->under_way[place] = flows->under_way[--flows->ways];
    if (f->next >= 0)
        begin(flows, f->next, f->at);
    else
        flows->last[f->queue] = -1;
}

int flows_step(struct flows *flows) {
    int place = -1;
    double next = INFINITY;
    for (int i = 0; i < flows->ways; i++) {
        const double at = changes_at(flows, &flows->flow[flows->under_way[i]]);
        if (at < next) next = at, place = i;
    }
    if (place < 0) return -1;
    const int id = flows->under_way[place];
    struct flow *f = &flows->flow[id];
    for (int i = 0; i < flows->ways; i++) {
        struct flow *moving = &flows->flow[flows->under_way[i]];
        if (moving->state == FLOW_MOVES)
            moving->work = later(moving->work - (next - flows->now) * moving->rate, 0);
    }
    flows->now = later(flows->now, next);
    if (f->state == FLOW_WAITS) {
        f->state = FLOW_MOVES;
        divide(flows);
        return -1;
    }
    const bool moved = f->state == FLOW_MOVES;
    if (moved) f->state = FLOW_TAIL, f->at = next + f->tail;
    const bool done = !moved || f->tail == 0;
    if (done) finish(flows, place);
    if (moved) divide(flows);
    return done ? id : -1;
}
