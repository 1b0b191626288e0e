#include "train/plan/flows.h"

#include "kernels/base/status.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Links whose shares for a unit of weight differ by less, of themselves, are full at once: sums of a few
 * rates round by much less. */
static const double SAME = 1e-12;

struct link {
    double left, load; /* not given away yet, and the weights of the flows that have no rate yet */
    int users;         /* those flows */
    bool full;
};

int flows_create(int count, int links, int queues, struct flows *flows) {
    *flows = (struct flows){0};
    flows->flow = calloc((size_t)count + 1, sizeof *flows->flow);
    flows->last = malloc(((size_t)queues + 1) * sizeof *flows->last);
    flows->under_way = malloc(((size_t)queues + 1) * sizeof *flows->under_way);
    flows->link = calloc((size_t)links + 1, sizeof *flows->link);
    flows->used = malloc(((size_t)links + 1) * sizeof *flows->used);
    if (!flows->flow || !flows->last || !flows->under_way || !flows->link || !flows->used) {
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
    free(flows->link);
    free(flows->used);
    *flows = (struct flows){0};
}

/* A flow that is first in its queue, no earlier than at `from`. */
static void begin(struct flows *flows, int id, double from) {
    struct flow *f = &flows->flow[id];
    f->state = FLOW_WAITS;
    f->at = fmax(f->ready, from) + f->lead;
    flows->under_way[flows->at_once++] = id;
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

/* The i-th flow under way if it moves, else NULL. */
static struct flow *moving(const struct flows *flows, int i) {
    struct flow *f = &flows->flow[flows->under_way[i]];
    return f->state == FLOW_MOVES ? f : NULL;
}

/* What moving flows ask of links: how many of these there are. */
static int ask(struct flows *flows) {
    int used = 0;
    for (int i = 0; i < flows->at_once; i++) {
        struct flow *f = moving(flows, i);
        if (!f) continue;
        f->rate = -1;
        for (int end = 0; end < 2; end++) {
            struct link *l = &flows->link[f->link[end]];
            if (!l->users) *l = (struct link){.left = 1}, flows->used[used++] = f->link[end];
            l->load += f->weight;
            l->users++;
        }
    }
    return used;
}

static double share(const struct link *l) {
    return l->left / l->load;
}

/* Fills the links that have the least for each unit of weight; false: no flow is without a rate. */
static bool fill(struct flows *flows, int used) {
    double least = INFINITY;
    for (int i = 0; i < used; i++) {
        const struct link *l = &flows->link[flows->used[i]];
        if (l->users) least = fmin(least, share(l));
    }
    if (isinf(least)) return false;
    for (int i = 0; i < used; i++) {
        struct link *l = &flows->link[flows->used[i]];
        l->full = l->users && share(l) <= least * (1 + SAME);
    }
    for (int i = 0; i < flows->at_once; i++) {
        struct flow *f = moving(flows, i);
        if (!f || f->rate >= 0 || (!flows->link[f->link[0]].full && !flows->link[f->link[1]].full)) continue;
        f->rate = f->weight * least;
        for (int end = 0; end < 2; end++) {
            struct link *l = &flows->link[f->link[end]];
            l->left = fmax(l->left - f->rate, 0);
            l->load -= f->weight;
            l->users--;
        }
    }
    return true;
}

/* Divides the links among the flows that move. */
static void divide(struct flows *flows) {
    const int used = ask(flows);
    while (fill(flows, used)) continue;
}

/* When a flow under way comes to its next state. */
static double changes_at(const struct flows *flows, const struct flow *f) {
    return f->state == FLOW_MOVES ? flows->now + f->work / f->rate : f->at;
}

/* When something happens next, and to which of those under way; −1: to none. */
static double first(const struct flows *flows, int *place) {
    double next = INFINITY;
    *place = -1;
    for (int i = 0; i < flows->at_once; i++) {
        const double at = changes_at(flows, &flows->flow[flows->under_way[i]]);
        if (at < next) next = at, *place = i;
    }
    return next;
}

double flows_next(const struct flows *flows) {
    int place;
    return first(flows, &place);
}

/* The flow at a place of those under way leaves it to the next of its queue. */
static void finish(struct flows *flows, int place) {
    const int id = flows->under_way[place];
    struct flow *f = &flows->flow[id];
    f->state = FLOW_DONE;
    flows->under_way[place] = flows->under_way[--flows->at_once];
    if (f->next >= 0)
        begin(flows, f->next, f->at);
    else
        flows->last[f->queue] = -1;
}

int flows_step(struct flows *flows) {
    int place;
    const double next = first(flows, &place);
    if (place < 0) return -1;
    const int id = flows->under_way[place];
    struct flow *f = &flows->flow[id];
    for (int i = 0; i < flows->at_once; i++) {
        struct flow *m = moving(flows, i);
        if (m) m->work = fmax(m->work - (next - flows->now) * m->rate, 0);
    }
    flows->now = fmax(flows->now, next);
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
