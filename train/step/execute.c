#include "train/step/execute.h"

#include "kernels/base/arena.h"
#include "kernels/base/position.h"
#include "model/params/edges.h"
#include "train/step/boundary.h"
#include "train/step/finite.h"
#include "train/step/inquiry.h"
#include "train/step/recording.h"

#include <stdlib.h>

enum { CARGOS = CARGO_EDGE_GRADIENT + 1 };

/* A block or strip, and what it holds. */
struct buffer {
    real *x;
    bool posted;    /* its receive was started ahead */
    int *mentioned; /* the entry of `where` that names this buffer, or NULL */
};

struct executor {
    struct execution e;
    const struct layout *layout; /* this rank's, with its tables */
    const struct edges *edges;
    const struct table *table;
    int micro_batches; /* of the largest step */
    int in_step;       /* of the step in progress */
    bool failed;
    struct transport *transport;
    struct arena arena;     /* the host's; where that is the device, all of it */
    struct arena on_device; /* blocks, strips and sums elsewhere */
    struct arena tokens;    /* of `rows`; not among what is planned */
    long width;             /* of a strip, elements a token */
    int blocks, strips;     /* pools */
    const int *slots;       /* [chunks] */
    struct buffer *buffer;  /* [blocks + strips]; a buffer's place here is its holder in the transport */
    int *where[CARGOS]; /* [micro_batches, num_layers + 1 or edges] number of the buffer that holds it, −1 */
    int *chunk_of;      /* [num_layers + 1], entry 1 + node: this rank's chunk that computes it, −1 */
    int *slot_of;       /* [micro_batches, chunks] slot that holds the chunk's activations, −1 */
    int *micro_of;      /* [Σ slots] and back */
    struct loss_sums *sums;                    /* [micro_batches] as passes add to them */
    struct loss_sums *found;                   /* [micro_batches] the same on the host */
    struct connection_sums *connections;       /* [edges] of all micro-batches, as passes add to them */
    struct connection_sums *found_connections; /* [edges] the same on the host */
    double *own;       /* [looks, FINITE_SUMS] squares of what was handed to other ranks (look) */
    double *found_own; /* the same on the host */
    int32_t *rows;   /* [micro_batches·batch, length + 1] of the step, where passes cannot read the host's */
    bool compressed; /* blocks cross stages as factors */
    struct boundary boundary;
    struct recording recording; /* of passes */
    const struct actions *list; /* of the step in progress, or the last one */
    int *peer, *message;        /* [actions of the longest list] those that it receives */

    /* Arrays of the pass in progress (model/model.h). */
    real **node, **deposit;         /* [num_layers + 1] */
    real **strip, **strip_gradient; /* [edges] */
};

/* ------------------------------------------------------------------------------------ creation */

static long entries(const struct executor *x, enum cargo cargo) {
    return cargo_is_strip(cargo) ? x->edges->count : x->e.config->num_layers + 1;
}

static void *take(struct executor *x, long count, size_t size) {
    return arena_take(&x->arena, (size_t)count * size);
}

static int first_holder_of_chunk(const struct executor *x, int chunk) {
    int at = 0;
    for (int c = 0; c < chunk; c++) at += x->slots[c];
    return at;
}

/* What passes and messages work on. */
static void *take_shared(struct executor *x, long count, size_t size) {
    bool host = !x->e.ops || x->e.ops->device->host;
    return arena_take(host ? &x->arena : &x->on_device, (size_t)count * size);
}

/* What `own` has sums of: of each chunk the messages forward, then of each the messages back, then the
 * gradients. */
static long looks(const struct executor *x) {
    return 2 * x->layout->chunks + 1;
}

/* Called once to count and once to hand out. */
static void lay_out(struct executor *x) {
    long T = x->e.batch * x->e.length, D = x->e.config->hidden_size, chunks = x->layout->chunks;
    long nodes = x->e.config->num_layers + 1, edges = x->edges->count, micros = x->micro_batches, slots = 0;
    for (int c = 0; c < chunks; c++) slots += x->slots[c];
    real *blocks = take_shared(x, x->blocks * T * D, sizeof(real));
    real *strips = take_shared(x, x->strips * T * x->width, sizeof(real));
    x->buffer = take(x, x->blocks + x->strips, sizeof *x->buffer);
    for (int c = 0; c < CARGOS; c++) x->where[c] = take(x, micros * entries(x, (enum cargo)c), sizeof(int));
    x->chunk_of = take(x, nodes, sizeof(int));
    x->slot_of = take(x, micros * chunks, sizeof(int));
    x->micro_of = take(x, slots, sizeof(int));
    if (x->e.ops && !x->e.ops->device->host)
        x->rows = arena_take(&x->tokens, (size_t)(micros * x->e.batch * (x->e.length + 1)) * sizeof *x->rows);
    x->sums = take_shared(x, micros, sizeof *x->sums);
    x->found = take(x, micros, sizeof *x->found);
    x->connections = take_shared(x, edges, sizeof *x->connections);
    x->found_connections = take(x, edges, sizeof *x->found_connections);
    x->own = take_shared(x, looks(x) * FINITE_SUMS, sizeof *x->own);
    x->found_own = take(x, looks(x) * FINITE_SUMS, sizeof *x->found_own);
    x->node = take(x, nodes, sizeof *x->node);
    x->deposit = take(x, nodes, sizeof *x->deposit);
    x->strip = take(x, edges, sizeof *x->strip);
    x->strip_gradient = take(x, edges, sizeof *x->strip_gradient);
    boundary_lay_out(&x->boundary, &x->arena, &x->on_device);
    if (!x->arena.base) return;
    for (int i = 0; i < x->blocks; i++) x->buffer[i].x = blocks + i * T * D;
    for (int i = 0; i < x->strips; i++) x->buffer[x->blocks + i].x = strips + i * T * x->width;
}

/* Which of its chunks computes each node. */
static void find_chunks(struct executor *x) {
    const struct layout *layout = x->layout;
    for (int node = -1; node < x->e.config->num_layers; node++) {
        int stage = layout_stage_of(layout, node);
        x->chunk_of[1 + node] =
            stage % layout->pipeline == layout->pipeline_index ? stage / layout->pipeline : -1;
    }
}

/* The most that any list of this rank needs. */
static void find_most(const struct executor *x, int *actions, int *messages) {
    const struct pipeline *pipeline = x->e.pipeline;
    int rank = x->layout->pipeline_index;
    *actions = *messages = 0;
    for (int i = -1; i < pipeline->num_smaller; i++)
        for (int active = 0; active <= x->e.config->delta.num_distances; active++) {
            const struct schedule *schedule = pipeline_schedule(
                pipeline, i < 0 ? pipeline->micro_batches : pipeline->smaller[i].micro_batches, active);
            if (!schedule->ranks) continue; /* no step has so many */
            if (schedule->rank[rank].count > *actions) *actions = schedule->rank[rank].count;
            if (schedule->messages > *messages) *messages = schedule->messages;
        }
}

/* What its memory follows from, and how much that is. */
static void describe(struct executor *x, int rank) {
    const struct pipeline *pipeline = x->e.pipeline;
    x->layout = &pipeline->layout[rank];
    x->table = &pipeline->table[rank];
    x->edges = &pipeline->edges;
    x->micro_batches = pipeline->micro_batches;
    x->blocks = pipeline->blocks[rank], x->strips = pipeline->strips[rank];
    x->slots = pipeline->slots + rank * x->layout->chunks;
    if (x->strips) x->width = strip_width(x->e.config, x->layout);
    x->compressed = x->layout->compress > 0;
    x->boundary = (struct boundary){
        .ops = x->e.ops,
        .pipeline = pipeline,
        .layout = x->layout,
        .T = x->e.batch * x->e.length,
        .D = x->e.config->hidden_size,
        .nodes = x->e.config->num_layers + 1,
    };
    x->arena.name = x->on_device.name = "messages between pipeline stages";
    x->tokens.name = "tokens";
    x->on_device.device = x->tokens.device = x->e.ops ? x->e.ops->device : NULL;
    lay_out(x);
}

static int build(struct executor *x) {
    int actions, messages;
    describe(x, x->e.mesh->pipeline.index);
    find_most(x, &actions, &messages);
    int reserved = arena_reserve(&x->arena); /* looked at once all ranks have met */
    if (!reserved && x->on_device.used) reserved = arena_reserve(&x->on_device);
    if (!reserved && x->tokens.used) reserved = arena_reserve(&x->tokens);
    TRY(transport_create(&x->e.mesh->pipeline, actions, messages, &x->transport));
    x->peer = calloc(2 * (size_t)actions + 1, sizeof *x->peer);
    if (!x->peer) return gdn_fail(GDN_INTERNAL, "out of memory for a list of %d actions", actions);
    x->message = x->peer + actions;
    TRY(reserved);
    lay_out(x);
    find_chunks(x);
    if (x->e.graphs) x->recording.device = x->e.ops->device;
    return 0;
}

int executor_create(const struct execution *execution, struct executor **out) {
    struct executor *x = *out = calloc(1, sizeof *x);
    if (!x) return gdn_fail(GDN_INTERNAL, "out of memory for the executor");
    x->e = *execution;
    int status = build(x);
    if (!status) return 0;
    executor_free(x);
    *out = NULL;
    return status;
}

void executor_free(struct executor *executor) {
    if (!executor) return;
    recording_free(&executor->recording);
    transport_free(executor->transport);
    free(executor->peer);
    arena_free(&executor->arena);
    arena_free(&executor->on_device);
    arena_free(&executor->tokens);
    free(executor);
}

long executor_planned(const struct execution *execution, int pipeline_index) {
    struct executor x = {.e = *execution};
    describe(&x, pipeline_index);
    return (long)(x.arena.used + x.on_device.used);
}

long executor_memory(const struct executor *executor) {
    return (long)(executor->arena.size + executor->on_device.size);
}

/* ------------------------------------------------------------------------- where things are at the moment */

static int holder(const struct executor *x, enum cargo cargo, int buffer) {
    return cargo_is_strip(cargo) ? x->blocks + buffer : buffer;
}

static int *entry(const struct executor *x, enum cargo cargo, int micro, int index) {
    return &x->where[cargo][micro * entries(x, cargo) + (cargo_is_strip(cargo) ? index : 1 + index)];
}

/* Notes that a buffer now holds this. */
static void hold(struct executor *x, enum cargo cargo, int micro, int index, int buffer) {
    int *at = entry(x, cargo, micro, index);
    *at = buffer;
    x->buffer[holder(x, cargo, buffer)].mentioned = at;
}

/* What the buffer holds is no longer of use to this rank's passes, or is another buffer's by now. */
static void let_go(struct executor *x, enum cargo cargo, int buffer) {
    struct buffer *b = &x->buffer[holder(x, cargo, buffer)];
    if (b->mentioned && *b->mentioned == buffer) *b->mentioned = -1;
    b->mentioned = NULL;
}

/* The buffer that holds this, or NULL. */
static real *held(const struct executor *x, enum cargo cargo, int micro, int index) {
    int buffer = *entry(x, cargo, micro, index);
    return buffer < 0 ? NULL : x->buffer[holder(x, cargo, buffer)].x;
}

static int *slot_of(const struct executor *x, int micro, int chunk) {
    return &x->slot_of[micro * x->layout->chunks + chunk];
}

/* A node's output where this rank has computed it and still has it, or NULL. */
static real *own_output(const struct executor *x, int micro, int node) {
    int chunk = x->chunk_of[1 + node];
    if (chunk < 0 || *slot_of(x, micro, chunk) < 0) return NULL;
    return model_output(x->e.model, chunk, *slot_of(x, micro, chunk), node);
}

static real *node_data(const struct executor *x, int micro, int node) {
    real *received = held(x, CARGO_NODE, micro, node);
    return received ? received : own_output(x, micro, node);
}

/* A slot's holder in the transport, behind those of blocks and strips. */
static int slot_holder(const struct executor *x, int chunk, int slot) {
    return x->blocks + x->strips + first_holder_of_chunk(x, chunk) + slot;
}

static void take_slot(struct executor *x, int chunk, int slot, int micro) {
    int *before = &x->micro_of[first_holder_of_chunk(x, chunk) + slot];
    transport_wait(x->transport, slot_holder(x, chunk, slot));
    if (*before >= 0) *slot_of(x, *before, chunk) = -1;
    *before = micro;
    *slot_of(x, micro, chunk) = slot;
}

static void give_slot_back(struct executor *x, int chunk, int slot, int micro) {
    transport_wait(x->transport, slot_holder(x, chunk, slot));
    x->micro_of[first_holder_of_chunk(x, chunk) + slot] = -1;
    *slot_of(x, micro, chunk) = -1;
}

/* Nothing is anywhere, before a step. */
static void forget(struct executor *x) {
    for (int c = 0; c < CARGOS; c++)
        for (long i = 0; i < x->micro_batches * entries(x, (enum cargo)c); i++) x->where[c][i] = -1;
    for (int i = 0; i < x->blocks + x->strips; i++)
        x->buffer[i].posted = false, x->buffer[i].mentioned = NULL;
    for (int i = 0; i < x->micro_batches * x->layout->chunks; i++) x->slot_of[i] = -1;
    for (int i = 0; i < first_holder_of_chunk(x, x->layout->chunks); i++) x->micro_of[i] = -1;
}

/* ------------------------------------------------------------------------------------------- actions */

/* Sequences of a micro-batch. */
static long batch_of(const struct executor *x, const struct step *step, int micro) {
    long left = step->sequences - micro * x->e.batch;
    return left < 0 ? 0 : left < x->e.batch ? left : x->e.batch;
}

/* Rows of a micro-batch's blocks and strips. */
static long rows_of(const struct executor *x, const struct step *step, int micro) {
    return batch_of(x, step, micro) * x->e.length;
}

/* Elements of a message. */
static long elements(const struct executor *x, const struct step *step, const struct action *a) {
    long T = rows_of(x, step, a->micro);
    return cargo_is_strip(a->cargo) ? T * x->width
                                    : boundary_elements(x->layout, T, x->e.config->hidden_size);
}

static bool packed(const struct executor *x, const struct action *a) {
    return x->compressed && !cargo_is_strip(a->cargo);
}

static int missing(const struct action *a, const char *what) {
    char words[160];
    action_words(a, words);
    return gdn_fail(GDN_INTERNAL, "the schedule is at fault: %s: its %s is not on this rank", words, what);
}

static void post(struct executor *x, const struct step *step, const struct action *a) {
    int into = holder(x, a->cargo, a->buffer);
    real *room = packed(x, a) ? boundary_room(&x->boundary, a->buffer) : x->buffer[into].x;
    transport_receive(x->transport, into, room, elements(x, step, a), a->peer, a->message, packed(x, a));
    x->buffer[into].posted = true;
}

static void receive(struct executor *x, const struct step *step, const struct action *a) {
    int into = holder(x, a->cargo, a->buffer);
    if (!x->buffer[into].posted) post(x, step, a);
    x->buffer[into].posted = false;
    transport_wait(x->transport, into);
    if (packed(x, a)) boundary_unpack(&x->boundary, a->buffer, rows_of(x, step, a->micro), x->buffer[into].x);
    hold(x, a->cargo, a->micro, a->index, a->buffer);
}

/* In training looks at numbers that are about to be handed to other ranks, before they are mixed with theirs:
 * whether all are finite is known when the step waits for its losses. */
static void look(struct executor *x, long which, long count, const real *at) {
    if (x->e.state && x->e.mesh->size > 1) finite_look(x->e.ops, count, at, x->own + which * FINITE_SUMS);
}

static void look_at_message(struct executor *x, const struct step *step, const struct action *a,
                            const real *at) {
    bool forward = a->cargo == CARGO_NODE || a->cargo == CARGO_EDGE;
    long width = cargo_is_strip(a->cargo) ? x->width : x->e.config->hidden_size;
    look(x, forward ? a->chunk : x->layout->chunks + a->chunk, rows_of(x, step, a->micro) * width, at);
}

static void look_at_bucket(struct executor *x, const struct bucket *bucket) {
    look(x, 2 * x->layout->chunks, bucket->count, x->e.state->gradient + bucket->first);
}

/* The gradients of a bucket, before the sum over the data axis; of shared ones before that over the stages.
 */
static void look_at_gradients(struct executor *x, const struct action *a) {
    const struct shards *shards = &x->e.pipeline->shards[x->layout->pipeline_index];
    if (a->act == ACT_REDUCE && !shards->bucket[a->index].shared)
        look_at_bucket(x, &shards->bucket[a->index]);
    for (int b = 0; a->act == ACT_SHARE && b < shards->buckets; b++)
        if (shards->bucket[b].shared) look_at_bucket(x, &shards->bucket[b]);
}

static int send(struct executor *x, const struct step *step, const struct action *a) {
    long T = rows_of(x, step, a->micro);
    const real *from = NULL;
    int of;
    if (a->buffer >= 0) {
        of = holder(x, a->cargo, a->buffer);
        from = x->buffer[of].x;
        look_at_message(x, step, a, from);
        if (packed(x, a)) from = boundary_pack(&x->boundary, x->list, a, T, x->buffer[of].x);
    } else {
        int chunk = x->chunk_of[1 + a->index];
        from = own_output(x, a->micro, a->index);
        if (!from) return missing(a, "node");
        int slot = *slot_of(x, a->micro, chunk);
        look_at_message(x, step, a, from);
        of = slot_holder(x, chunk, slot);
        if (packed(x, a)) from = boundary_pack_output(&x->boundary, a, slot, T, from);
        if (!from) return missing(a, "place for factors");
    }
    transport_send(x->transport, of, from, elements(x, step, a), a->peer, a->message, packed(x, a));
    /* Nodes that were received are read on; gradients are handed over, and may come back to another chunk as
     * other sums. */
    if (a->buffer >= 0 && a->cargo != CARGO_NODE && a->cargo != CARGO_EDGE) let_go(x, a->cargo, a->buffer);
    return 0;
}

static void take_buffer(struct executor *x, const struct step *step, const struct action *a) {
    hold(x, a->cargo, a->micro, a->index, a->buffer);
    if (a->cargo == CARGO_DEPOSIT)
        x->e.ops->zero(rows_of(x, step, a->micro) * x->e.config->hidden_size,
                       x->buffer[holder(x, a->cargo, a->buffer)].x);
}

/* What a pass of an action reads and writes, but for its gradient. */
static struct pass pass_of(struct executor *x, const struct step *step, const struct action *a) {
    struct span span = layout_span(x->layout, a->chunk, x->e.config->num_layers);
    for (int node = -1; node < x->e.config->num_layers; node++) {
        bool inside = x->chunk_of[1 + node] == a->chunk && (node >= 0 || span.first == 0);
        x->node[1 + node] = inside ? NULL : node_data(x, a->micro, node);
        x->deposit[1 + node] = held(x, CARGO_DEPOSIT, a->micro, node);
    }
    for (int e = 0; e < x->edges->count; e++) {
        x->strip[e] = held(x, CARGO_EDGE, a->micro, e);
        x->strip_gradient[e] = held(x, CARGO_EDGE_GRADIENT, a->micro, e);
    }
    return (struct pass){
        .chunk = a->chunk,
        .slot = *slot_of(x, a->micro, a->chunk),
        .rows = (x->rows ? x->rows : step->rows) + a->micro * x->e.batch * (x->e.length + 1),
        .batch = batch_of(x, step, a->micro),
        .length = x->e.length,
        .options = step->options,
        .connections = x->connections,
        .node = x->node,
        .strip = x->strip,
        .deposit = x->deposit,
        .strip_gradient = x->strip_gradient,
    };
}

/* In an inquiry: what a pass has computed. */
static void inquire_forward(struct executor *x, const struct step *step, const struct action *a) {
    struct span span = layout_span(x->layout, a->chunk, x->e.config->num_layers);
    int first = span.first ? span.first : -1;
    if (step->inquiry->packed) first = span.end - 1;
    for (int node = first; node < span.end; node++) {
        long rows;
        const real *output = model_output_rows(x->e.model, a->chunk, *slot_of(x, a->micro, a->chunk), node,
                                               rows_of(x, step, a->micro), &rows);
        inquiry_output(step->inquiry, a->micro, node, output, rows);
    }
}

static void inquire_backward(struct executor *x, const struct step *step, const struct action *a, int layer,
                             const real *gradient) {
    if (layer == x->e.config->num_layers) inquiry_loss(step->inquiry, a->micro, &x->sums[a->micro]);
    inquiry_gradients(step->inquiry, a->micro, layer);
    if (layer >= 0) inquiry_stream(step->inquiry, a->micro, layer, gradient, rows_of(x, step, a->micro));
}

static void forward(struct executor *x, const struct step *step, const struct action *a) {
    take_slot(x, a->chunk, a->slot, a->micro);
    struct pass pass = pass_of(x, step, a);
    if (a->micro == 0) pass.watch = step->watch;
    if (pass.batch) model_stage_forward(x->e.model, &pass, &x->sums[a->micro]);
    if (pass.batch && step->inquiry) inquire_forward(x, step, a);
}

/* Between the layers of a backward pass: lets gradient sums under way move on, and, once a layer's gradients
 * are complete, sums those that are parts over the tensor axis, here on all tensor ranks (dist/sync/sync.h).
 */
static int between_layers(struct executor *x, int micro, int layer) {
    if (micro == x->in_step - 1) TRY(sync_partial(x->e.sync, layer, x->e.state->gradient));
    return sync_progress(x->e.sync);
}

static int backward(struct executor *x, const struct step *step, const struct action *a) {
    struct span span = layout_span(x->layout, a->chunk, x->e.config->num_layers);
    struct pass pass = pass_of(x, step, a);
    pass.gradient = held(x, CARGO_GRADIENT, a->micro, span.end - 1);
    if (!pass.gradient) return missing(a, "gradient");
    if (pass.slot < 0) return missing(a, "slot");
    for (int layer = a->layer; layer >= a->end; layer--) {
        if (pass.batch) model_stage_backward(x->e.model, &pass, layer, layer, &x->sums[a->micro]);
        if (pass.batch && step->inquiry) inquire_backward(x, step, a, layer, pass.gradient);
        TRY(between_layers(x, a->micro, layer));
    }
    if (a->end == (span.first ? span.first : -1)) give_slot_back(x, a->chunk, pass.slot, a->micro);
    return 0;
}

static int project(struct executor *x, const struct step *step, const struct action *a) {
    long T = rows_of(x, step, a->micro);
    const real *s = node_data(x, a->micro, x->edges->edge[a->index].source);
    if (!s) return missing(a, "source");
    hold(x, CARGO_EDGE, a->micro, a->index, a->buffer);
    if (T) model_project(x->e.model, a->index, s, T, held(x, CARGO_EDGE, a->micro, a->index));
    return 0;
}

static int unproject(struct executor *x, const struct step *step, const struct action *a) {
    long T = rows_of(x, step, a->micro);
    int source = x->edges->edge[a->index].source;
    const real *s = node_data(x, a->micro, source);
    const real *gradient = held(x, CARGO_EDGE_GRADIENT, a->micro, a->index);
    real *deposit = held(x, CARGO_DEPOSIT, a->micro, source);
    if (!s || !gradient || !deposit) return missing(a, !s ? "source" : !gradient ? "gradient" : "deposit");
    if (T) model_unproject(x->e.model, a->index, s, T, gradient, deposit);
    if (T && step->inquiry) inquiry_gradients(step->inquiry, a->micro, x->edges->edge[a->index].target);
    return 0;
}

/* The first of the looks that found something, as the places of the whole step are numbered. */
static int suspect(const struct executor *x) {
    const struct layout *layout = x->layout;
    int chunks = layout->chunks, stages = layout->pipeline * chunks, first = -1;
    for (int i = 0; i < 2 * chunks + 1; i++) {
        if (finite_seen(x->found_own + i * FINITE_SUMS)) continue;
        int stage = i % chunks * layout->pipeline + layout->pipeline_index;
        int place = i < chunks ? stage : i < 2 * chunks ? 2 * stages - 1 - stage : 2 * stages;
        if (first < 0 || place < first) first = place;
    }
    return first;
}

/* The one place where a step waits for the device. */
static void add_up(struct executor *x, struct step *step) {
    struct loss_sums all = {0};
    const struct mesh *mesh = x->e.mesh;
    const bool wired = mesh->data.wire || mesh->tensor.wire || mesh->pipeline.wire;
    if (wired) position_enter("device", "exchanges", -1, -1); /* in which it may wait for other ranks */
    x->e.ops->device->download(x->found, x->sums, (size_t)x->micro_batches * sizeof *x->sums);
    if (wired) position_leave();
    if (step->options->each)
        x->e.ops->device->download(x->found_connections, x->connections,
                                   (size_t)x->edges->count * sizeof *x->connections);
    if (x->e.state && x->e.mesh->size > 1) {
        x->e.ops->device->download(x->found_own, x->own,
                                   (size_t)(looks(x) * FINITE_SUMS) * sizeof *x->found_own);
        step->suspect = suspect(x);
    } else {
        step->suspect = -1;
    }
    for (int l = 0; l < x->e.config->num_layers; l++)
        all.connections += active_edges(x->edges, l, step->options->active);
    for (int i = 0; i < x->in_step; i++) {
        all.ce += x->found[i].ce;
        all.sparsity += x->found[i].sparsity;
        all.entropy += x->found[i].entropy;
    }
    step->sums = all;
}

static void describe_action(const void *action, char words[POSITION_WORDS]) {
    action_words(action, words);
}

static int act(struct executor *x, struct step *step, const struct action *a) {
    const struct execution *e = &x->e;
    position_action(a, describe_action);
    switch (a->act) {
    case ACT_POST:
        post(x, step, a);
        return 0;
    case ACT_RECEIVE:
        receive(x, step, a);
        return 0;
    case ACT_TAKE:
        take_buffer(x, step, a);
        return 0;
    case ACT_FORWARD:
        forward(x, step, a);
        return 0;
    case ACT_PROJECT:
        return project(x, step, a);
    case ACT_BACKWARD:
        return backward(x, step, a);
    case ACT_UNPROJECT:
        return unproject(x, step, a);
    case ACT_SEND:
        return send(x, step, a);
    case ACT_FREE:
        transport_wait(x->transport, holder(x, a->cargo, a->buffer));
        let_go(x, a->cargo, a->buffer);
        return 0;
    case ACT_SHARE:
        look_at_gradients(x, a);
        return sync_share(e->sync, e->state->gradient);
    case ACT_REDUCE:
        look_at_gradients(x, a);
        return sync_reduce(e->sync, a->index, e->state->gradient);
    case ACT_FINISH:
        return sync_finish(e->sync, a->index, e->state->gradient);
    case ACT_UPDATE:
        optimizer_update(e->optimizer, a->index, step->options->active, step->lr, step->gscale);
        return 0;
    case ACT_GATHER:
        return sync_gather(e->sync, a->index, e->state->weight);
    case ACT_GATHERED:
        return sync_gathered(e->sync, a->index);
    case ACT_NORM: /* execute's */
    case ACTS:
        break;
    }
    return gdn_fail(GDN_INTERNAL, "the schedule is at fault: there is no action %d", (int)a->act);
}

/* Calls on an axis and passes do not return their failures. */
static int status_of(const struct execution *e) {
    int status = model_status(e->model);
    if (!status) status = e->mesh->pipeline.status;
    return status ? status : e->mesh->data.status;
}

const struct connection_sums *executor_connections(const struct executor *executor) {
    return executor->found_connections;
}

bool executor_failed(const struct executor *executor) {
    return executor && executor->failed;
}

/* Tells the transport which messages a list receives, in the order in which it begins to. */
static void announce(struct executor *x) {
    int count = 0;
    for (int i = 0; i < x->blocks + x->strips; i++) x->buffer[i].posted = false;
    for (int i = 0; i < x->list->count; i++) {
        const struct action *a = &x->list->action[i];
        int into = holder(x, a->cargo, a->buffer);
        bool receives = a->act == ACT_RECEIVE, posted = receives && x->buffer[into].posted;
        if (receives) x->buffer[into].posted = false;
        if (a->act == ACT_POST) x->buffer[into].posted = true;
        if (!(a->act == ACT_POST || (receives && !posted)) || packed(x, a)) continue;
        x->peer[count] = a->peer;
        x->message[count++] = a->message;
    }
    transport_expect(x->transport, count, x->peer, x->message);
}

/* Everything before the norm. */
static int execute_passes(struct executor *x, struct step *step) {
    int status = 0;
    x->e.ops->device->clear(x->sums, (size_t)x->micro_batches * sizeof *x->sums);
    if (step->options->each)
        x->e.ops->device->clear(x->connections, (size_t)x->edges->count * sizeof *x->connections);
    if (x->e.state) x->e.ops->zero(x->table->total, x->e.state->gradient);
    if (x->e.state && x->e.mesh->size > 1)
        x->e.ops->device->clear(x->own, (size_t)(looks(x) * FINITE_SUMS) * sizeof *x->own);
    for (int i = 0; i < x->list->count && x->list->action[i].act != ACT_NORM && !status; i++) {
        status = act(x, step, &x->list->action[i]);
        if (!status) status = status_of(&x->e);
    }
    return status;
}

/* The same, or as it was recorded. */
static int pass(struct executor *x, struct step *step) {
    if (step->watch || step->inquiry) return execute_passes(x, step); /* they wait */
    switch (recording_way(&x->recording, step->options, step->sequences)) {
    case RECORDING_EXECUTE:
        return execute_passes(x, step);
    case RECORDING_RECORD:
        recording_begin(&x->recording);
        return recording_end(&x->recording, execute_passes(x, step));
    case RECORDING_REPEAT:
        recording_repeat(&x->recording);
        return status_of(&x->e);
    }
    return 0;
}

/* The norm, and everything after it. */
static int execute_update(struct executor *x, struct step *step, int *verdict) {
    int status = 0, at = 0;
    while (at < x->list->count && x->list->action[at].act != ACT_NORM) at++;
    if (at == x->list->count || !step->decide) return 0;
    position_action(&x->list->action[at], describe_action);
    add_up(x, step);
    *verdict = step->decide(step);
    if (*verdict) return status_of(&x->e);
    optimizer_begin(x->e.optimizer, step->options->active);
    while (!status && ++at < x->list->count) {
        status = act(x, step, &x->list->action[at]);
        if (!status) status = status_of(&x->e);
    }
    return status;
}

int execute(struct executor *executor, struct step *step) {
    struct executor *x = executor;
    x->in_step = step->micro_batches ? step->micro_batches : x->micro_batches;
    const struct schedule *schedule = pipeline_schedule(x->e.pipeline, x->in_step, step->options->active);
    if (!schedule) return gdn_fail(GDN_INTERNAL, "no schedule has %d micro-batches", x->in_step);
    const struct actions *list = &schedule->rank[x->layout->pipeline_index];
    bool other = x->list != list;
    int status, verdict = 0;
    x->list = list;
    if (other) announce(x);
    forget(x);
    boundary_begin(&x->boundary, (uint64_t)step->number, x->in_step);
    if (x->rows)
        x->e.ops->device->upload(x->rows, step->rows,
                                 (size_t)(step->sequences * (x->e.length + 1)) * sizeof *x->rows);
    status = pass(x, step);
    if (!status) status = execute_update(x, step, &verdict);
    transport_finish(x->transport);
    position_action(NULL, NULL); /* the list may be freed before another one is executed */
    if (!step->decide || status) add_up(x, step);
    if (!status) status = status_of(&x->e);
    x->failed = x->failed || status;
    return status ? status : verdict;
}
