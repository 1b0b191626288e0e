#include "train/step/boundary.h"

#include "kernels/backends/backends.h"
#include "kernels/base/bf16.h"
#include "kernels/base/random.h"
#include "train/step/message_size.h"

/* ------------------------------------------------------------------------------------------------ memory */

static const struct actions *actions_of(const struct boundary *b) {
    return &b->pipeline->schedule.rank[b->layout->index[AXIS_PIPELINE]];
}

/* Goes on from here unchanged: no pass stands between. */
static bool just_received(const struct actions *list, const struct action *a) {
    const struct action *before = a - 1;
    return a > list->action && before->act == ACT_RECEIVE && before->payload == a->payload &&
           before->buffer == a->buffer;
}

/* Unchanged from its stage: nodes of others, and what has just been received. */
static bool goes_as_it_came(const struct actions *list, const struct action *a) {
    return a->buffer >= 0 && (a->payload == PAYLOAD_SOURCE || just_received(list, a));
}

static int place_of(const struct boundary *b, const struct action *a) {
    return a->chunk * b->nodes + 1 + a->index;
}

static int *residual_of(const struct boundary *b, const struct action *a) {
    return &b->residual_of[place_of(b, a)];
}

/* A place for every message of the first micro-batch that is compressed here, which stands for the others.
 * A step with fewer distances has some of the same messages. Counts, and notes what is where if there is
 * memory for that. */
static void find_places(struct boundary *b) {
    const struct actions *list = actions_of(b);
    const int *activation_sets =
        b->pipeline->activation_sets + b->layout->index[AXIS_PIPELINE] * b->layout->chunks;
    bool feedback = b->layout->feedback && b->pipeline->micro_batches > 1;
    b->outputs = b->residuals = 0;
    for (int i = 0; b->output_of && i < b->layout->chunks * b->nodes; i++) b->output_of[i] = -1;
    for (int i = 0; b->residual_of && i < b->layout->chunks * b->nodes; i++) b->residual_of[i] = -1;
    for (int i = 0; i < list->count; i++) {
        const struct action *a = &list->action[i];
        if (a->act != ACT_SEND || a->micro_batch != 0 || !message_is_compressed(b->layout, a->payload)) continue;
        if (a->buffer < 0) {
            if (b->output_of) b->output_of[place_of(b, a)] = b->outputs;
            b->outputs += activation_sets[layout_chunk_of(b->layout, layout_stage_of(b->layout, a->index))];
        } else if (feedback && !goes_as_it_came(list, a)) {
            if (b->residual_of) *residual_of(b, a) = b->residuals;
            b->residuals++;
        }
    }
}

static void *take(struct arena *arena, long count, size_t size) {
    return arena_take(arena, (size_t)count * size);
}

static bool on_host(const struct boundary *b) {
    return !b->ops || b->ops->device->host;
}

/* Context ranks, by whose axis lowrank comes together. */
static struct lowrank_peers peers_over(const struct boundary *b, struct axis_host *sums) {
    return (struct lowrank_peers){.size = b->layout->compress_over,
                                  .index = b->context ? b->context->index : 0,
                                  .with = sums,
                                  .sum = axis_host_sum,
                                  .gather = axis_host_gather_columns};
}

static const struct lowrank_peers *peers_of(const struct boundary *b) {
    return b->peers.size ? &b->peers : NULL;
}

void boundary_lay_out(struct boundary *b, struct arena *arena, struct arena *device) {
    const struct layout *layout = b->layout;
    if (!(layout->compress > 0)) return;
    b->room = boundary_elements(layout, b->T, b->D);
    b->host = b->ops ? ops_on_host(b->ops) : NULL;
    if (!on_host(b)) {
        b->copy = take(arena, b->T * b->D, sizeof(real));
        b->factors = take(device, b->room, sizeof(real));
    }
    if (layout->compress_over > 1) b->peers = peers_over(b, &b->host_sums);
    lowrank_lay_out_divided(&b->scratch, arena, b->host, b->T, b->D, boundary_factors(layout, b->T, b->D),
                            peers_of(b));
    b->output_of = take(arena, (long)layout->chunks * b->nodes, sizeof *b->output_of);
    b->residual_of = take(arena, (long)layout->chunks * b->nodes, sizeof *b->residual_of);
    find_places(b);
    b->block = take(arena, b->pipeline->blocks[layout->index[AXIS_PIPELINE]] * b->room, sizeof(real));
    b->output = take(arena, b->outputs * b->room, sizeof(real));
    b->compressed = take(arena, b->outputs, sizeof *b->compressed);
    b->residual = take(arena, b->residuals * b->T * b->D, sizeof(real));
}

int boundary_reserve(struct boundary *b) {
    if (!peers_of(b)) return 0;
    return axis_host_create(b->context, boundary_sum(b->layout, b->T, b->D), &b->host_sums);
}

void boundary_free(struct boundary *b) {
    axis_host_free(&b->host_sums);
}

/* ---------------------------------------------------------------------------------------------- messages */

void boundary_begin(struct boundary *b, uint64_t step, int micro_batches) {
    if (!(b->layout->compress > 0)) return;
    b->step = step;
    b->micro_batches = micro_batches;
    for (int i = 0; i < b->outputs; i++) b->compressed[i] = -1;
    b->host->zero(b->residuals * b->T * b->D, b->residual);
}

real *boundary_room(const struct boundary *b, int block) {
    return b->block + block * b->room;
}

static long factors_of(const struct boundary *b, long T) {
    return boundary_factors(b->layout, T, b->D);
}

void boundary_decompress(struct boundary *b, int block, long T, real *x) {
    const real *q = boundary_room(b, block);
    long k = factors_of(b, T);
    if (!T) return;
    if (!on_host(b)) {
        b->ops->device->upload(b->factors, q, (size_t)(k * (T + b->D)) * sizeof *q);
        q = b->factors;
    }
    lowrank_join(b->ops, T, b->D, k, q, q + T * k, x);
}

/* A copy on the host of a device's block [T, D]. */
static real *download(struct boundary *b, long T, const real *x) {
    b->ops->device->download(b->copy, x, (size_t)(T * b->D) * sizeof *x);
    return b->copy;
}

static void compress(struct boundary *b, int message, long T, const real *x, real *q) {
    uint64_t seed = random_bits(b->step, random_name("boundary"), (uint64_t)message);
    long k = factors_of(b, T);
    lowrank_split(&b->scratch, T, b->D, x, k, seed, q, q + T * k);
    /* As they will be sent (packing.h), so that feedback has what that drops, too. */
    for (long i = 0; b->layout->wire == WIRE_BF16 && i < k * (T + b->D); i++)
        q[i] = from_bf16(bf16_of(q[i]));
}

const real *boundary_compress(struct boundary *b, const struct actions *list, const struct action *a, long T,
                              real *x) {
    real *q = boundary_room(b, a->buffer);
    if (goes_as_it_came(list, a) || !T) return q;
    long n = T * b->D, k = factors_of(b, T);
    int kept = *residual_of(b, a);
    real *dropped = kept < 0 ? NULL : b->residual + kept * b->T * b->D;
    if (!on_host(b)) x = download(b, T, x);
    if (dropped) b->host->add(n, dropped, x);
    compress(b, a->message, T, x, q);
    if (!dropped || a->micro_batch == b->micro_batches - 1) return q;
    b->host->copy(n, x, dropped);
    b->host->gemm('N', 'N', T, b->D, k, -1, q, k, q + T * k, b->D, 1, dropped, b->D); /* x − q·b */
    return q;
}

const real *boundary_compress_output(struct boundary *b, const struct action *a, int activation_set, long T,
                                     const real *x) {
    int at = b->output_of[place_of(b, a)];
    if (at < 0) return NULL;
    at += activation_set;
    real *q = b->output + at * b->room;
    if (b->compressed[at] != a->micro_batch && T) {
        if (!on_host(b)) x = download(b, T, x);
        compress(b, a->message, T, x, q);
    }
    b->compressed[at] = a->micro_batch;
    return q;
}

void boundary_count(struct boundary *b, const struct actions *list, const struct action *a, long T) {
    if (b->layout->compress_over < 2 || !T || goes_as_it_came(list, a)) return;
    struct axis_host planned = {.axis = b->context};
    const struct lowrank_peers peers = peers_over(b, &planned);
    lowrank_split_planned(&peers, T, b->D, factors_of(b, T));
}
