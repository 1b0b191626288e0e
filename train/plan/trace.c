/* Time-independent traces (Desprez, Markomanolis, Quinson & Suter 2011) in the words of SimGrid's SMPI
 * replay: what each rank computes and sends, from which a simulator makes times for any network. Sums over an
 * axis become the messages that they consist of, since the replay knows no communicators but the whole. */
#include "train/plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/base/status.h"
#include "train/plan/cost.h"

/* Tags: a step's messages between stages have their own numbers. */
enum { TAG_TENSOR = 1, TAG_SHARE = 2, TAG_BUCKET = 10, TAG_MESSAGE = 1000000 };

struct tracer {
    const struct plan *plan;
    FILE *out;
    long rank;
    int data_index, tensor_index, pipeline_index;
    const struct action_cost *cost; /* its own */
};

static long rank_at(const struct plan *plan, int data, int tensor, int pipeline) {
    return tensor + plan->tensor * (data + (long)plan->data * pipeline);
}

/* The replay counts a message's bytes in an int: what is longer goes in pieces. */
enum { LONGEST = 1 << 30 };

static void line(const struct tracer *t, const char *word, long peer, long tag, double bytes) {
    for (double left = bytes; left > 0; left -= LONGEST)
        fprintf(t->out, "%ld %s %ld %ld %.0f\n", t->rank, word, peer, tag, left < LONGEST ? left : LONGEST);
}

/* Waits for what line() has started. */
static void wait_for(const struct tracer *t, long from, long to, long tag, double bytes) {
    for (double left = bytes; left > 0; left -= LONGEST)
        fprintf(t->out, "%ld wait %ld %ld %ld\n", t->rank, from, to, tag);
}

static void compute(const struct tracer *t, double flops) {
    if (flops > 0) fprintf(t->out, "%ld compute %.0f\n", t->rank, flops);
}

/* The cost of the same action on another tensor rank. */
static const struct action_cost *tensor_cost(const struct tracer *t, int tensor, int action) {
    return &t->plan->cost[t->pipeline_index * t->plan->tensor + tensor][action];
}

/* All tensor ranks hand the others an even part of their bytes, and wait for theirs. */
static void exchange_tensor(const struct tracer *t, int action) {
    const struct plan *plan = t->plan;
    int others = plan->tensor - 1;
    int64_t mine = t->cost[action].bytes[PLAN_TENSOR];
    if (!others || !mine) return;
    for (int pass = 0; pass < 3; pass++) /* start receives, start sends, wait for both */
        for (int i = 1; i <= others; i++) {
            int other = (t->tensor_index + i) % plan->tensor;
            long peer = rank_at(plan, t->data_index, other, t->pipeline_index);
            double theirs = (double)tensor_cost(t, other, action)->bytes[PLAN_TENSOR] / others;
            if (pass == 0) line(t, "irecv", peer, TAG_TENSOR, theirs);
            if (pass == 1) line(t, "isend", peer, TAG_TENSOR, (double)mine / others);
            if (pass != 2) continue;
            wait_for(t, peer, t->rank, TAG_TENSOR, theirs);
            wait_for(t, t->rank, peer, TAG_TENSOR, (double)mine / others);
        }
}

static long bucket_tag(const struct action *a) {
    bool gather = a->act == ACT_GATHER || a->act == ACT_GATHERED;
    return TAG_BUCKET + 2L * a->index + gather;
}

/* Starts a bucket's sum or gather over the data axis, or waits for it. */
static void bucket(const struct tracer *t, const struct action *a, int64_t bytes, bool start) {
    const struct plan *plan = t->plan;
    if (!bytes) return;
    for (int i = 1; i < plan->data; i++) {
        int next = (t->data_index + i) % plan->data, before = (t->data_index + plan->data - i) % plan->data;
        long to = rank_at(plan, next, t->tensor_index, t->pipeline_index);
        long from = rank_at(plan, before, t->tensor_index, t->pipeline_index);
        double part = (double)bytes / (plan->data - 1);
        if (start)
            line(t, "irecv", from, bucket_tag(a), part), line(t, "isend", to, bucket_tag(a), part);
        else
            wait_for(t, from, t->rank, bucket_tag(a), part), wait_for(t, t->rank, to, bucket_tag(a), part);
    }
}

/* What the action that starts what `a` waits for hands over. */
static int64_t started(const struct tracer *t, const struct action *a) {
    const struct actions *list = &t->plan->pipeline.schedule.rank[t->pipeline_index];
    enum act act = a->act == ACT_FINISH ? ACT_REDUCE : ACT_GATHER;
    for (int i = 0; i < list->count; i++)
        if (list->action[i].act == act && list->action[i].index == a->index)
            return t->cost[i].bytes[PLAN_DATA];
    return 0;
}

static int64_t share_bytes(const struct plan *plan, int pipeline_index, int tensor_index) {
    const struct actions *list = &plan->pipeline.schedule.rank[pipeline_index];
    for (int i = 0; i < list->count; i++)
        if (list->action[i].act == ACT_SHARE)
            return plan->cost[pipeline_index * plan->tensor + tensor_index][i].bytes[PLAN_PIPELINE];
    return 0;
}

/* The pipeline ranks that hold shared tensors hand each other an even part of their bytes. */
static void share(const struct tracer *t) {
    const struct plan *plan = t->plan;
    int ranks = plan->pipeline.schedule.ranks, owners = 0;
    for (int r = 0; r < ranks; r++) owners += share_bytes(plan, r, t->tensor_index) > 0;
    double mine = (double)share_bytes(plan, t->pipeline_index, t->tensor_index);
    if (!mine || owners < 2) return;
    for (int pass = 0; pass < 3; pass++)
        for (int r = 0; r < ranks; r++) {
            double theirs = (double)share_bytes(plan, r, t->tensor_index);
            long peer = rank_at(plan, t->data_index, t->tensor_index, r);
            if (r == t->pipeline_index || !theirs) continue;
            if (pass == 0) line(t, "irecv", peer, TAG_SHARE, theirs / (owners - 1));
            if (pass == 1) line(t, "isend", peer, TAG_SHARE, mine / (owners - 1));
            if (pass != 2) continue;
            wait_for(t, peer, t->rank, TAG_SHARE, theirs / (owners - 1));
            wait_for(t, t->rank, peer, TAG_SHARE, mine / (owners - 1));
        }
}

static double message_bytes(const struct tracer *t, const struct action *a) {
    const struct config *config = t->plan->config;
    return (double)cost_message(&config->model, &t->plan->pipeline.layout[t->pipeline_index],
                                t->plan->micro_batch * config->train.sequence_length, a);
}

static bool same_buffer(const struct action *a, const struct action *b) {
    return a->buffer == b->buffer && payload_is_narrow(a->payload) == payload_is_narrow(b->payload);
}

/* Before a buffer is free its sends are done: those since it was last freed. Those from an activation set's
 * own output (buffer −1) are waited for at the end. */
static void wait_for_sends(const struct tracer *t, int free_at) {
    const struct action *list = t->plan->pipeline.schedule.rank[t->pipeline_index].action;
    for (int i = free_at; i-- > 0;) {
        if (!same_buffer(&list[i], &list[free_at])) continue;
        if (list[i].act == ACT_FREE) return;
        if (list[i].act == ACT_SEND)
            wait_for(t, t->rank, rank_at(t->plan, t->data_index, t->tensor_index, list[i].peer),
                     TAG_MESSAGE + list[i].message, message_bytes(t, &list[i]));
    }
}

static bool was_posted(const struct actions *list, int at) {
    for (int i = at; i-- > 0;)
        if (list->action[i].act == ACT_POST && list->action[i].message == list->action[at].message)
            return true;
    return false;
}

static void act(const struct tracer *t, int i) {
    const struct plan *plan = t->plan;
    const struct actions *list = &plan->pipeline.schedule.rank[t->pipeline_index];
    const struct action *a = &list->action[i];
    const struct action_cost *cost = &t->cost[i];
    long peer = rank_at(plan, t->data_index, t->tensor_index, a->peer), tag = TAG_MESSAGE + a->message;
    switch (a->act) {
    case ACT_POST:
        line(t, "irecv", peer, tag, message_bytes(t, a));
        return;
    case ACT_RECEIVE:
        if (was_posted(list, i))
            wait_for(t, peer, t->rank, tag, message_bytes(t, a));
        else
            line(t, "recv", peer, tag, message_bytes(t, a));
        return;
    case ACT_SEND:
        line(t, "isend", peer, tag, message_bytes(t, a));
        return;
    case ACT_FREE:
        wait_for_sends(t, i);
        return;
    case ACT_SHARE:
        share(t);
        return;
    case ACT_REDUCE:
        exchange_tensor(t, i);
        bucket(t, a, cost->bytes[PLAN_DATA], true);
        return;
    case ACT_GATHER:
        bucket(t, a, cost->bytes[PLAN_DATA], true);
        return;
    case ACT_FINISH:
    case ACT_GATHERED:
        bucket(t, a, started(t, a), false);
        return;
    case ACT_NORM:
        fprintf(t->out, "%ld allreduce 8 0\n", t->rank);
        return;
    default:
        /* The update moves memory: as much arithmetic as takes that long. */
        compute(t, cost->flops + (double)cost->memory / plan->machine.memory * plan->machine.flops);
        exchange_tensor(t, i);
        return;
    }
}

static void wait_for_activation_sets(const struct tracer *t) {
    const struct actions *list = &t->plan->pipeline.schedule.rank[t->pipeline_index];
    for (int i = 0; i < list->count; i++) {
        const struct action *a = &list->action[i];
        if (a->act == ACT_SEND && a->buffer < 0)
            wait_for(t, t->rank, rank_at(t->plan, t->data_index, t->tensor_index, a->peer),
                     TAG_MESSAGE + a->message, message_bytes(t, a));
    }
}

static void write_rank(struct tracer *t) {
    const struct plan *plan = t->plan;
    long place = t->rank / plan->tensor;
    t->tensor_index = (int)(t->rank % plan->tensor);
    t->data_index = (int)(place % plan->data);
    t->pipeline_index = (int)(place / plan->data);
    t->cost = plan->cost[t->pipeline_index * plan->tensor + t->tensor_index];
    fprintf(t->out, "%ld init\n", t->rank);
    for (int i = 0; i < plan->pipeline.schedule.rank[t->pipeline_index].count; i++) act(t, i);
    wait_for_activation_sets(t);
    fprintf(t->out, "%ld finalize\n", t->rank);
}

static int failed(const char *path) {
    return gdn_fail(GDN_INPUT, "--trace: %s cannot be written: %s", path, strerror(errno));
}

static int write_file(const struct plan *plan, const char *path, long rank) {
    struct tracer t = {.plan = plan, .rank = rank, .out = fopen(path, "w")};
    if (!t.out) return failed(path);
    write_rank(&t);
    bool wrong = ferror(t.out);
    return fclose(t.out) || wrong ? failed(path) : 0;
}

int plan_trace(const struct plan *plan, const char *directory) {
    char path[4096];
    if (mkdir(directory, 0777) && errno != EEXIST) return failed(directory);
    snprintf(path, sizeof path, "%s/traces.txt", directory);
    FILE *list = fopen(path, "w");
    if (!list) return failed(path);
    int status = 0;
    for (long r = 0; r < plan->ranks && !status; r++) {
        snprintf(path, sizeof path, "%s/rank_%ld.txt", directory, r);
        fprintf(list, "%s\n", path);
        status = write_file(plan, path, r);
    }
    bool wrong = ferror(list);
    if ((fclose(list) || wrong) && !status) status = failed(directory);
    return status;
}
