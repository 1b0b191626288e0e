/* Time-independent traces (Desprez, Markomanolis, Quinson & Suter 2011) in the words of SimGrid's SMPI
 * replay: what each rank computes and sends, from which a simulator makes times for any network. Sums over an
 * axis become the messages that they consist of, since the replay knows no communicators but the whole. */
#include "train/plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/base/status.h"
#include "model/mixer/exchange.h"
#include "train/config/rows.h"
#include "train/plan/sends.h"
#include "train/step/message_size.h"
#include "train/step/walk.h"

/* Tags: a step's messages between stages have their own numbers. */
enum { TAG_TENSOR = 1, TAG_SHARE = 2, TAG_CONTEXT = 3, TAG_BUCKET = 10, TAG_MESSAGE = 1000000 };

/* A bucket's exchanges so far. */
struct exchange {
    int started;
    /* Of the one that was started last: */
    int64_t bytes[LEGS];
    enum leg last;
};

struct tracer {
    const struct plan *plan;
    struct sends sends;
    bool *posted;               /* [messages] whose receive is under way */
    const struct action **sent; /* [messages] SEND */
    struct exchange *exchange;  /* [buckets] */
    int first;                  /* bucket that is in its first leg; −1 */

    /* In hand: */
    FILE *out;
    long rank;
    int index[AXES]; /* copies as one */
    const struct actions *list;
    const struct action_cost *cost; /* its own */
};

static long rank_at(const struct plan *plan, int copy, int tensor, int pipeline) {
    const int index[AXES] = {[AXIS_COPIES] = copy, [AXIS_TENSOR] = tensor, [AXIS_PIPELINE] = pipeline};
    return axes_rank_joined(plan->size, index);
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
    return &t->plan->cost[t->index[AXIS_PIPELINE] * t->plan->size[AXIS_TENSOR] + tensor][action];
}

/* Bytes that go over an axis beside arithmetic of the action, or (`hidden` false) while it waits; and that
 * arithmetic. */
static double bytes_of(const struct action_cost *cost, enum mesh_axis axis, bool hidden) {
    return (double)(hidden ? cost->hidden[axis].bytes : cost->bytes[axis] - cost->hidden[axis].bytes);
}

static double covering(const struct action_cost *cost, enum mesh_axis axis, bool hidden) {
    return hidden ? cost->hidden[axis].covering : 0;
}

/* All tensor ranks hand the others an even part of such bytes, and wait for theirs once what covers them is
 * done.
 */
static void exchange_tensor(const struct tracer *t, int action, bool hidden) {
    const struct plan *plan = t->plan;
    int others = plan->size[AXIS_TENSOR] - 1;
    double mine = others ? bytes_of(&t->cost[action], AXIS_TENSOR, hidden) / others : 0;
    for (int pass = 0; pass < 3; pass++) { /* start receives, start sends, wait for both */
        if (pass == 2) compute(t, covering(&t->cost[action], AXIS_TENSOR, hidden));
        for (int i = 1; i <= others && mine > 0; i++) {
            int other = (t->index[AXIS_TENSOR] + i) % plan->size[AXIS_TENSOR];
            long peer = rank_at(plan, t->index[AXIS_COPIES], other, t->index[AXIS_PIPELINE]);
            double theirs = bytes_of(tensor_cost(t, other, action), AXIS_TENSOR, hidden) / others;
            if (pass == 0) line(t, "irecv", peer, TAG_TENSOR, theirs);
            if (pass == 1) line(t, "isend", peer, TAG_TENSOR, mine);
            if (pass != 2) continue;
            wait_for(t, peer, t->rank, TAG_TENSOR, theirs);
            wait_for(t, t->rank, peer, TAG_TENSOR, mine);
        }
    }
}

/* The same of context ranks, which are neighbours among the copies and hand over as much as each other: to
 * all others, or to the next. */
static void exchange_context(const struct tracer *t, int action, bool hidden) {
    const struct config *config = t->plan->config;
    const int ranks = t->plan->size[AXIS_CONTEXT], copy = t->index[AXIS_COPIES], first = copy / ranks * ranks;
    const int peers = exchange_to_next(config->mesh.context_exchange) && ranks > 1 ? 1 : ranks - 1;
    const double bytes = peers ? bytes_of(&t->cost[action], AXIS_CONTEXT, hidden) / peers : 0;
    for (int pass = 0; pass < 3 && bytes > 0; pass++) {
        if (pass == 2) compute(t, covering(&t->cost[action], AXIS_CONTEXT, hidden));
        for (int i = 1; i <= peers; i++) {
            const int after = first + (copy - first + i) % ranks,
                      before = first + (copy - first + ranks - i) % ranks;
            const long to = rank_at(t->plan, after, t->index[AXIS_TENSOR], t->index[AXIS_PIPELINE]),
                       from = rank_at(t->plan, before, t->index[AXIS_TENSOR], t->index[AXIS_PIPELINE]);
            if (pass == 0) line(t, "irecv", from, TAG_CONTEXT, bytes);
            if (pass == 1) line(t, "isend", to, TAG_CONTEXT, bytes);
            if (pass != 2) continue;
            wait_for(t, from, t->rank, TAG_CONTEXT, bytes);
            wait_for(t, t->rank, to, TAG_CONTEXT, bytes);
        }
    }
}

/* ------------------------------------------------------------------------------------------- handlers */

/* An action's place in its list. */
static int place_of(const struct tracer *t, const struct action *a) {
    return (int)(a - t->list->action);
}

/* The rank at the other end of a message. */
static long peer_of(const struct tracer *t, const struct action *a) {
    return rank_at(t->plan, t->index[AXIS_COPIES], t->index[AXIS_TENSOR], a->peer);
}

/* Arithmetic, and exchanges over the tensor and context axes. The update moves memory: as much arithmetic as
 * takes that long. */
static int work(void *tracer, const struct action *a) {
    const struct tracer *t = tracer;
    const struct plan_machine *machine = &t->plan->machine;
    const struct action_cost *cost = &t->cost[place_of(t, a)];
    const double covers = cost->hidden[AXIS_TENSOR].covering + cost->hidden[AXIS_CONTEXT].covering;
    compute(t, cost->flops - covers + (double)cost->memory / machine->memory * machine->flops);
    for (int beside = 1; beside >= 0; beside--) {
        exchange_tensor(t, place_of(t, a), beside);
        exchange_context(t, place_of(t, a), beside);
    }
    return 0;
}

/* The rank that is `by` places further among those of a leg. */
static long peer_in_leg(const struct tracer *t, const struct leg_copies *leg, int by) {
    const int number = (leg->index + by + leg->size) % leg->size;
    return rank_at(t->plan, leg->first + number * leg->stride, t->index[AXIS_TENSOR],
                   t->index[AXIS_PIPELINE]);
}

/* Starts a leg of the bucket's sum or gather that has begun last, or waits for it. */
static void exchange_leg(const struct tracer *t, int bucket, enum leg leg, bool start) {
    const struct exchange *exchange = &t->exchange[bucket];
    const struct leg_copies of = shards_leg(t->plan->work.size[AXIS_COPIES], t->plan->config->mesh.sum_group,
                                            t->index[AXIS_COPIES], leg);
    const long tag = TAG_BUCKET + 2L * bucket + exchange->started - 1;
    if (!exchange->bytes[leg]) return;
    for (int i = 1; i < of.size; i++) {
        const long to = peer_in_leg(t, &of, i), from = peer_in_leg(t, &of, -i);
        const double part = (double)exchange->bytes[leg] / (of.size - 1);
        if (start)
            line(t, "irecv", from, tag, part), line(t, "isend", to, tag, part);
        else
            wait_for(t, from, t->rank, tag, part), wait_for(t, t->rank, to, tag, part);
    }
}

/* The bucket that is in its first leg goes on to its last. */
static void go_on(struct tracer *t) {
    const int bucket = t->first;
    if (bucket < 0) return;
    const enum leg last = t->exchange[bucket].last;
    exchange_leg(t, bucket, 1 - last, false);
    exchange_leg(t, bucket, last, true);
    t->first = -1;
}

static void begin_exchange(struct tracer *t, int bucket) {
    const struct exchange *exchange = &t->exchange[bucket];
    exchange_leg(t, bucket, 1 - exchange->last, true);
    t->first = bucket;
    if (!exchange->bytes[1 - exchange->last]) go_on(t); /* there is none */
}

static int start_bucket(void *tracer, const struct action *a) {
    struct tracer *t = tracer;
    struct exchange *exchange = &t->exchange[a->index];
    const struct action_cost *cost = &t->cost[place_of(t, a)];
    work(t, a);
    go_on(t);
    exchange->started++;
    exchange->bytes[WITHIN] = cost->within;
    exchange->bytes[ACROSS] = cost->bytes[AXIS_COPIES] - cost->within;
    exchange->last = a->act == ACT_GATHER ? WITHIN : ACROSS;
    if (!t->plan->machine.synchronous) begin_exchange(t, a->index);
    return 0;
}

static int wait_for_bucket(void *tracer, const struct action *a) {
    struct tracer *t = tracer;
    if (t->plan->machine.synchronous) begin_exchange(t, a->index);
    if (t->first == a->index) go_on(t);
    exchange_leg(t, a->index, t->exchange[a->index].last, false);
    return 0;
}

static int64_t share_bytes(const struct plan *plan, int pipeline_index, int tensor_index) {
    const struct actions *list = &plan->pipeline.schedule.rank[pipeline_index];
    for (int i = 0; i < list->count; i++)
        if (list->action[i].act == ACT_SHARE)
            return plan->cost[pipeline_index * plan->size[AXIS_TENSOR] + tensor_index][i]
                .bytes[AXIS_PIPELINE];
    return 0;
}

/* The pipeline ranks that hold shared tensors hand each other an even part of their bytes. */
static int share(void *tracer, const struct action *a) {
    const struct tracer *t = tracer;
    const struct plan *plan = t->plan;
    (void)a;
    int ranks = plan->pipeline.schedule.ranks, owners = 0;
    for (int r = 0; r < ranks; r++) owners += share_bytes(plan, r, t->index[AXIS_TENSOR]) > 0;
    double mine = (double)share_bytes(plan, t->index[AXIS_PIPELINE], t->index[AXIS_TENSOR]);
    if (!mine || owners < 2) return 0;
    for (int pass = 0; pass < 3; pass++)
        for (int r = 0; r < ranks; r++) {
            double theirs = (double)share_bytes(plan, r, t->index[AXIS_TENSOR]);
            long peer = rank_at(plan, t->index[AXIS_COPIES], t->index[AXIS_TENSOR], r);
            if (r == t->index[AXIS_PIPELINE] || !theirs) continue;
            if (pass == 0) line(t, "irecv", peer, TAG_SHARE, theirs / (owners - 1));
            if (pass == 1) line(t, "isend", peer, TAG_SHARE, mine / (owners - 1));
            if (pass != 2) continue;
            wait_for(t, peer, t->rank, TAG_SHARE, theirs / (owners - 1));
            wait_for(t, t->rank, peer, TAG_SHARE, mine / (owners - 1));
        }
    return 0;
}

static int norm(void *tracer, const struct action *a) {
    const struct tracer *t = tracer;
    fprintf(t->out, "%ld allreduce 8 0\n", t->rank);
    compute(t, t->cost[place_of(t, a)].flops); /* of whole matrices, which come right behind */
    return 0;
}

static double message_bytes(const struct tracer *t, const struct action *a) {
    const struct config *config = t->plan->config;
    const struct layout *layout = &t->plan->pipeline.layout[t->index[AXIS_PIPELINE]];
    long rows = config_rows(config, t->plan->micro_batch) * config_row_length(config),
         columns = payload_columns(&config->model, layout, a->payload);
    return (double)message_elements(layout, a->payload, rows, columns) * (double)wire_bytes(layout->wire);
}

static int post(void *tracer, const struct action *a) {
    const struct tracer *t = tracer;
    t->posted[a->message] = true;
    line(t, "irecv", peer_of(t, a), TAG_MESSAGE + a->message, message_bytes(t, a));
    return 0;
}

static int receive(void *tracer, const struct action *a) {
    const struct tracer *t = tracer;
    long peer = peer_of(t, a), tag = TAG_MESSAGE + a->message;
    if (t->posted[a->message])
        wait_for(t, peer, t->rank, tag, message_bytes(t, a));
    else
        line(t, "recv", peer, tag, message_bytes(t, a));
    t->posted[a->message] = false;
    return 0;
}

static int send(void *tracer, const struct action *a) {
    struct tracer *t = tracer;
    work(t, a); /* what compressing takes */
    t->sent[a->message] = a;
    sends_add(&t->sends, t->index[AXIS_PIPELINE], a);
    line(t, "isend", peer_of(t, a), TAG_MESSAGE + a->message, message_bytes(t, a));
    return 0;
}

static void wait_for_send(const struct tracer *t, const struct action *a) {
    wait_for(t, t->rank, peer_of(t, a), TAG_MESSAGE + a->message, message_bytes(t, a));
}

/* Before a buffer is free its sends are done. Those from an activation set's own output are waited for at the
 * end. */
static int free_buffer(void *tracer, const struct action *a) {
    struct tracer *t = tracer;
    for (int m = sends_last(&t->sends, t->index[AXIS_PIPELINE], a); m >= 0; m = t->sends.before[m])
        wait_for_send(t, t->sent[m]);
    sends_forget(&t->sends, t->index[AXIS_PIPELINE], a);
    return 0;
}

static action_handler *const by_role[ROLES] = {
    [ROLE_PASS] = work,        [ROLE_TAKE] = work,          [ROLE_UPDATE] = work,
    [ROLE_POST] = post,        [ROLE_RECEIVE] = receive,    [ROLE_SEND] = send,
    [ROLE_FREE] = free_buffer, [ROLE_START] = start_bucket, [ROLE_WAIT] = wait_for_bucket,
    [ROLE_MEET] = NULL, /* whose ranks are others for each kind: */
};

static action_handler *const by_kind[ACTS] = {[ACT_SHARE] = share, [ACT_NORM] = norm};

static void wait_for_activation_sets(const struct tracer *t) {
    for (int i = 0; i < t->list->count; i++) {
        const struct action *a = &t->list->action[i];
        if (act_kinds[a->act].role == ROLE_SEND && a->buffer < 0) wait_for_send(t, a);
    }
}

/* ------------------------------------------------------------------------------------------- files */

static int write_rank(struct tracer *t) {
    const struct walk walk = {by_role, by_kind, .walker = t};
    const struct plan *plan = t->plan;
    axes_place_joined(plan->size, t->rank, t->index);
    t->list = &plan->pipeline.schedule.rank[t->index[AXIS_PIPELINE]];
    t->cost = plan->cost[t->index[AXIS_PIPELINE] * plan->size[AXIS_TENSOR] + t->index[AXIS_TENSOR]];
    t->first = -1;
    memset(t->exchange, 0,
           (size_t)plan->pipeline.shards[t->index[AXIS_PIPELINE]].buckets * sizeof *t->exchange);
    fprintf(t->out, "%ld init\n", t->rank);
    for (int i = 0; i < t->list->count; i++) TRY(walk_action(&walk, &t->list->action[i]));
    wait_for_activation_sets(t);
    fprintf(t->out, "%ld finalize\n", t->rank);
    return 0;
}

static int failed(const char *path) {
    return gdn_fail(GDN_INPUT, "--trace: %s cannot be written: %s", path, strerror(errno));
}

static int write_file(struct tracer *t, const char *path, long rank) {
    t->rank = rank;
    t->out = fopen(path, "w");
    if (!t->out) return failed(path);
    int status = write_rank(t);
    bool wrong = ferror(t->out);
    return (fclose(t->out) || wrong) && !status ? failed(path) : status;
}

static int write_files(struct tracer *t, const char *directory) {
    char path[4096];
    if (mkdir(directory, 0777) && errno != EEXIST) return failed(directory);
    snprintf(path, sizeof path, "%s/traces.txt", directory);
    FILE *list = fopen(path, "w");
    if (!list) return failed(path);
    int status = 0;
    for (long r = 0; r < t->plan->ranks && !status; r++) {
        snprintf(path, sizeof path, "%s/rank_%ld.txt", directory, r);
        fprintf(list, "%s\n", path);
        status = write_file(t, path, r);
    }
    bool wrong = ferror(list);
    if ((fclose(list) || wrong) && !status) status = failed(directory);
    return status;
}

static int reserve(struct tracer *t) {
    const struct plan *plan = t->plan;
    size_t messages = (size_t)plan->pipeline.schedule.messages, buckets = 0;
    for (int r = 0; r < plan->pipeline.schedule.ranks; r++)
        if ((size_t)plan->pipeline.shards[r].buckets > buckets)
            buckets = (size_t)plan->pipeline.shards[r].buckets;
    t->posted = calloc(messages + 1, sizeof *t->posted);
    t->sent = calloc(messages + 1, sizeof *t->sent);
    t->exchange = calloc(buckets + 1, sizeof *t->exchange);
    if (!t->posted || !t->sent || !t->exchange) return gdn_fail(GDN_INTERNAL, "out of memory for traces");
    return sends_create(&plan->pipeline.schedule, &t->sends);
}

int plan_trace(const struct plan *plan, const char *directory) {
    struct tracer t = {.plan = plan};
    int status = reserve(&t);
    if (!status) status = write_files(&t, directory);
    sends_free(&t.sends);
    free(t.posted);
    free(t.sent);
    free(t.exchange);
    return status;
}
