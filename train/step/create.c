/* Creation: all memory of the executor, laid out by one function that also counts it for plans. */
#include "model/params/stream.h"
#include "train/step/dry_run.h"
#include "train/step/finite.h"
#include "train/step/message_size.h"
#include "train/step/private.h"

#include <stdlib.h>

static void *take(struct executor *x, long count, size_t size) {
    return arena_take(&x->arena, (size_t)count * size);
}

/* Where what passes and messages work on lies: in a dry run at addresses with nothing behind them. */
static struct arena *shared(struct executor *x) {
    bool host = !x->dry && (!x->e.ops || x->e.ops->device->host);
    return host ? &x->arena : &x->on_device;
}

static void *take_shared(struct executor *x, long count, size_t size) {
    return arena_take(shared(x), (size_t)count * size);
}

/* Called once to count and once to hand out. */
static void lay_out(struct executor *x) {
    long T = x->e.batch * x->e.length, stream = stream_width(x->e.config),
         width = x->columns[PAYLOAD_PROJECTED];
    long edges = x->edges->count, micro_batches = x->micro_batches;
    struct locations *l = &x->locations;
    real *blocks = take_shared(x, l->blocks * T * stream, sizeof(real));
    real *narrow_blocks = take_shared(x, l->narrow_blocks * T * width, sizeof(real));
    locations_lay_out(l, &x->arena);
    const bool uploads = x->e.ops && !x->e.ops->device->host;
    if (uploads)
        x->rows = arena_take(&x->tokens,
                             (size_t)(micro_batches * x->e.batch * (x->e.length + 1)) * sizeof *x->rows);
    if (uploads && executor_context(x) > 1)
        x->whole = arena_take(&x->tokens, (size_t)executor_whole(x, micro_batches * x->e.batch) * sizeof *x->whole);
    x->sums = take_shared(x, micro_batches, sizeof *x->sums);
    x->found = take(x, micro_batches, sizeof *x->found);
    x->connections = take_shared(x, edges, sizeof *x->connections);
    x->found_connections = take(x, edges, sizeof *x->found_connections);
    if (x->e.config->delta.l1_weight > 0) x->absolute = take_shared(x, 1, sizeof *x->absolute);
    x->own = take_shared(x, executor_looks(x) * FINITE_SUMS, sizeof *x->own);
    x->found_own = take(x, executor_looks(x) * FINITE_SUMS, sizeof *x->found_own);
    if (!x->dry) boundary_lay_out(&x->boundary, &x->arena, &x->on_device);
    if (!x->dry) packing_lay_out(&x->packing, &x->arena, shared(x));
    if (!x->arena.base) return;
    for (int i = 0; i < l->blocks; i++) l->buffer[i].x = blocks + i * T * stream;
    for (int i = 0; i < l->narrow_blocks; i++) l->buffer[l->blocks + i].x = narrow_blocks + i * T * width;
}

/* What its memory follows from, and how much that is. */
static void describe(struct executor *x, int rank) {
    const struct pipeline *pipeline = x->e.pipeline;
    x->layout = &pipeline->layout[rank];
    x->table = &pipeline->table[rank];
    x->edges = &pipeline->edges;
    x->micro_batches = pipeline->micro_batches;
    x->locations = (struct locations){
        .layout = x->layout,
        .edges = x->edges,
        .num_layers = x->e.config->num_layers,
        .micro_batches = x->micro_batches,
        .blocks = pipeline->blocks[rank],
        .narrow_blocks = pipeline->narrow_blocks[rank],
        .activation_sets = pipeline->activation_sets + rank * x->layout->chunks,
        .model = x->e.model,
    };
    for (int p = 0; p < PAYLOADS; p++)
        x->columns[p] = payload_columns(x->e.config, x->layout, (enum payload)p);
    x->boundary = (struct boundary){
        .ops = x->e.ops,
        .pipeline = pipeline,
        .layout = x->layout,
        .context = x->e.mesh ? &x->e.mesh->axis[AXIS_CONTEXT] : NULL,
        .T = x->e.batch * x->e.length,
        .D = stream_width(x->e.config),
        .nodes = x->e.config->num_layers + 1,
    };
    x->packing = (struct packing){
        .ops = x->e.ops,
        .pipeline = pipeline,
        .layout = x->layout,
        .rows = x->e.batch * x->e.length,
        .columns = x->columns,
        .nodes = x->e.config->num_layers + 1,
    };
    x->arena.name = x->on_device.name = "messages between pipeline stages";
    x->tokens.name = "tokens";
    x->on_device.device = x->tokens.device = x->e.ops ? x->e.ops->device : NULL;
    lay_out(x);
}

static int build(struct executor *x) {
    const struct pipeline *pipeline = x->e.pipeline;
    const int rank = x->e.mesh->axis[AXIS_PIPELINE].index, actions = pipeline->actions[rank];
    describe(x, rank);
    x->raised = pipeline->raised;
    int reserved = arena_reserve(&x->arena); /* looked at once all ranks have met */
    if (!reserved && x->on_device.used) reserved = arena_reserve(&x->on_device);
    if (!reserved && x->tokens.used) reserved = arena_reserve(&x->tokens);
    TRY(transport_create(&x->e.mesh->axis[AXIS_PIPELINE], x->layout->wire, actions, pipeline->messages,
                         &x->transport));
    x->peer = calloc(2 * (size_t)actions + 1, sizeof *x->peer);
    if (!x->peer) return gdn_fail(GDN_INTERNAL, "out of memory for a list of %d actions", actions);
    x->message = x->peer + actions;
    TRY(reserved);
    lay_out(x);
    TRY(boundary_reserve(&x->boundary));
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

int executor_create_dry(const struct dry_run *dry, struct executor **out) {
    struct executor *x = *out = calloc(1, sizeof *x);
    if (!x) return gdn_fail(GDN_INTERNAL, "out of memory for a plan");
    x->e = *dry->execution;
    x->dry = dry;
    describe(x, x->e.mesh->axis[AXIS_PIPELINE].index);
    int status = arena_reserve(&x->arena);
    if (!status) status = arena_dry_run(&x->on_device);
    if (!status)
        status = transport_create(&x->e.mesh->axis[AXIS_PIPELINE], x->layout->wire, 0, 0, &x->transport);
    if (!status) {
        lay_out(x);
        return 0;
    }
    executor_free(x);
    *out = NULL;
    return status;
}

/* All that it has. */
static void empty(struct executor *x) {
    recording_free(&x->recording);
    transport_free(x->transport);
    boundary_free(&x->boundary);
    free(x->peer);
    arena_free(&x->arena);
    arena_free(&x->on_device);
    arena_free(&x->tokens);
}

void executor_free(struct executor *executor) {
    if (executor) empty(executor);
    free(executor);
}

int executor_renew(struct executor *executor) {
    executor->list = NULL;
    if (executor->raised == executor->e.pipeline->raised) return 0;
    const struct execution execution = executor->e;
    empty(executor);
    *executor = (struct executor){.e = execution};
    return build(executor);
}

long executor_planned(const struct execution *execution, int pipeline_index) {
    struct executor x = {.e = *execution};
    describe(&x, pipeline_index);
    return (long)(x.arena.used + x.on_device.used);
}

long executor_memory(const struct executor *executor) {
    return (long)(executor->arena.size + executor->on_device.size);
}
