#include "dist/checkpoint/snapshot.h"

#include "dist/checkpoint/parts.h"
#include "data/hdf5/sum.h"
#include "kernels/base/arena.h"
#include "kernels/base/status.h"

#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Elements that lie side by side in memory, in `rows` of `width`: what is copied and summed at a time. */
struct cut {
    int dataset;
    const real *from;
    real *to;
    long rows, width;
    uint64_t index, stride, step; /* place of the first; from row to row; from element to element */
};

enum {
    CUT = 1 << 14,
    SHORT = 1 << 9
}; /* elements that a thread takes at a time; that are copied, then summed */

struct snapshot {
    const struct ops *ops;
    struct arena memory; /* the copy */
    struct state state;  /* in it, or the mirror */
    struct checkpoint_content content;
    uint32_t *scales;
    double *spikes;
    uint64_t *sums; /* [datasets] */
    int datasets;

    int count, room;
    struct cut *cut;       /* [count] */
    uint64_t *cut_sum;     /* [count], on the host */
    uint64_t *device_sums; /* [datasets] on the device; NULL: on the host */
};

static int out_of_memory(void) {
    return gdn_fail(GDN_INTERNAL, "out of memory for the copy that a checkpoint is written from");
}

/* ----------------------------------------------------------------------------------------- what is copied */

static int add_cut(struct snapshot *s, const struct cut *cut) {
    if (s->count == s->room) {
        int room = 2 * s->room + 256;
        struct cut *grown = realloc(s->cut, (size_t)room * sizeof *grown);
        if (!grown) return out_of_memory();
        s->cut = grown, s->room = room;
    }
    s->cut[s->count++] = *cut;
    return 0;
}

/* A part in pieces of at most `max` elements: whole rows, or pieces of one that is longer. */
static int cut_part(struct snapshot *s, const struct cut *part, long max) {
    long rows = part->width < max ? max / part->width : 1, width = part->width < max ? part->width : max;
    for (long r = 0; r < part->rows; r += rows)
        for (long c = 0; c < part->width; c += width) {
            struct cut cut = *part;
            long at = r * part->width + c;
            cut.from += at, cut.to += at;
            cut.rows = part->rows - r < rows ? part->rows - r : rows;
            cut.width = part->width - c < width ? part->width - c : width;
            cut.index += (uint64_t)r * part->stride + (uint64_t)c * part->step;
            TRY(add_cut(s, &cut));
        }
    return 0;
}

/* A rectangle of a tensor lies in one piece in a rank's memory, line by line. */
static struct cut full_part(const struct parts *parts, const struct part *part, const struct part *copy) {
    const struct rectangle *where = &part->where;
    uint64_t width = (uint64_t)parts_row(parts, part->dataset)->shape[1];
    int across = where->transposed ? 1 : 0;
    struct cut cut = {
        .dataset = part->dataset,
        .from = part->memory + where->memory,
        .to = copy->memory + where->memory,
        .rows = where->size[across],
        .width = where->size[1 - across],
        .index = (uint64_t)where->at[0] * width + (uint64_t)where->at[1],
        .stride = where->transposed ? 1 : width,
        .step = where->transposed ? width : 1,
    };
    if (cut.stride == (uint64_t)cut.width && cut.step == 1) cut.width *= cut.rows, cut.rows = 1; /* one row */
    return cut;
}

/* Lists what the rank writes, from where it lies to where its copy will. */
static int list_cuts(struct snapshot *s, const struct mesh *mesh, const struct checkpoint_content *live) {
    struct parts from = {0}, to = {0};
    int status = parts_create(mesh, live, PARTS_WRITTEN, &from);
    if (!status) status = parts_create(mesh, &s->content, PARTS_WRITTEN, &to);
    if (!status && from.count != to.count)
        status = gdn_fail(GDN_INTERNAL, "the copy of a checkpoint has other parts than the original");
    long max = s->ops->device->host ? CUT : INT64_MAX;
    for (int i = 0; i < from.count && !status; i++) {
        struct cut cut = full_part(&from, &from.part[i], &to.part[i]);
        if (cut.rows && cut.width) status = cut_part(s, &cut, max);
    }
    s->datasets = from.datasets;
    parts_free(&to);
    parts_free(&from);
    return status;
}

/* --------------------------------------------------------------------------------------------- its memory */

/* Called once to count and once to hand out. */
static void lay_out(struct arena *memory, const struct table *table, const struct shards *shards,
                    struct state *state) {
    state->weight = arena_take(memory, (size_t)shards->moments * sizeof(real));
    for (int m = 0; m < MOMENTS && shards->kept[m]; m++)
        state->moment[m] = arena_take(memory, (size_t)shards->kept[m] * sizeof(real));
    state->steps = arena_take(memory, (size_t)table->rows * sizeof *state->steps);
}

static struct arena planned(const struct table *table, const struct shards *shards) {
    struct arena memory = {.name = "the copy that a checkpoint is written from"};
    struct state nowhere;
    lay_out(&memory, table, shards, &nowhere);
    return memory;
}

int64_t snapshot_planned(const struct table *table, const struct shards *shards) {
    return (int64_t)planned(table, shards).used;
}

int64_t snapshot_reserved(const struct snapshot *snapshot) {
    return (int64_t)snapshot->memory.size;
}

static int reserve(struct snapshot *s, const struct checkpoint_content *live, struct state *mirror) {
    if (mirror) {
        s->state = *mirror;
    } else {
        s->memory = planned(live->table, live->shards);
        TRY(arena_reserve(&s->memory));
        lay_out(&s->memory, live->table, live->shards, &s->state);
    }
    s->scales = malloc((size_t)live->num_scales * sizeof *s->scales + 1);
    s->spikes = malloc((size_t)live->spike_values * sizeof *s->spikes + 1);
    if (!s->scales || !s->spikes) return out_of_memory();
    s->content = (struct checkpoint_content){.global = live->global,
                                             .table = live->table,
                                             .shards = live->shards,
                                             .state = &s->state,
                                             .scales = s->scales,
                                             .spikes = s->spikes,
                                             .owned = !mirror};
    return 0;
}

static int reserve_sums(struct snapshot *s) {
    size_t bytes = (size_t)s->datasets * sizeof *s->sums;
    s->sums = calloc(1, bytes);
    s->cut_sum = calloc((size_t)s->count + 1, sizeof *s->cut_sum);
    if (!s->sums || !s->cut_sum) return out_of_memory();
    s->content.sums = s->sums;
    if (s->ops->device->host) return 0;
    s->device_sums = s->ops->device->reserve(bytes);
    return s->device_sums ? 0 : out_of_memory();
}

int snapshot_create(const struct mesh *mesh, const struct ops *ops, const struct checkpoint_content *live,
                    struct state *mirror, struct snapshot **out) {
    struct snapshot *s = *out = calloc(1, sizeof *s);
    if (!s) return out_of_memory();
    s->ops = ops;
    int status = reserve(s, live, mirror);
    if (!status) status = list_cuts(s, mesh, live);
    if (!status) status = reserve_sums(s);
    if (!status) return 0;
    snapshot_free(s);
    *out = NULL;
    return status;
}

void snapshot_free(struct snapshot *snapshot) {
    if (!snapshot) return;
    if (snapshot->device_sums) snapshot->ops->device->release(snapshot->device_sums);
    arena_free(&snapshot->memory);
    free(snapshot->scales);
    free(snapshot->spikes);
    free(snapshot->sums);
    free(snapshot->cut);
    free(snapshot->cut_sum);
    free(snapshot);
}

/* ------------------------------------------------------------------------------------------------ copying */

/* memcpy past the caches, which would first read what is overwritten, and lose what training has there. */
static void copy_past_caches(void *to, const void *from, size_t bytes) {
#ifdef __SSE2__
    char *out = to;
    const char *in = from;
    size_t lead = (16 - (uintptr_t)out % 16) % 16;
    if (lead > bytes) lead = bytes;
    memcpy(out, in, lead);
    for (out += lead, in += lead, bytes -= lead; bytes >= 64; out += 64, in += 64, bytes -= 64)
        for (int i = 0; i < 64; i += 16)
            _mm_stream_si128((__m128i *)(out + i), _mm_loadu_si128((const __m128i *)(in + i)));
    memcpy(out, in, bytes);
#else
    memcpy(to, from, bytes);
#endif
}

/* In steps so short that memory is at work while the processor sums. */
static uint64_t copy_cut(const struct cut *cut) {
    uint64_t sum = 0;
    for (long r = 0; r < cut->rows; r++)
        for (long c = 0, n; c < cut->width; c += n) {
            const long at = r * cut->width + c;
            n = cut->width - c < SHORT ? cut->width - c : SHORT;
            copy_past_caches(cut->to + at, cut->from + at, (size_t)n * sizeof(real));
            sum += sum_elements(cut->from + at, sizeof(real), n,
                                cut->index + (uint64_t)r * cut->stride + (uint64_t)c * cut->step, cut->step);
        }
    return sum;
}

static void copy_on_host(struct snapshot *s) {
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int i = 0; i < s->count; i++) s->cut_sum[i] = copy_cut(&s->cut[i]);
#ifdef __SSE2__
        _mm_sfence(); /* before another thread reads it */
#endif
    }
    memset(s->sums, 0, (size_t)s->datasets * sizeof *s->sums);
    for (int i = 0; i < s->count; i++) s->sums[s->cut[i].dataset] += s->cut_sum[i];
}

/* A matrix that lies the other way round in memory is hashed column by column of what is on disk. */
static int sum_on_device(struct snapshot *s) {
    const struct ops *ops = s->ops;
    size_t bytes = (size_t)s->datasets * sizeof *s->sums;
    ops->device->clear(s->device_sums, bytes);
    for (int i = 0; i < s->count; i++) {
        const struct cut *cut = &s->cut[i];
        uint64_t *sum = s->device_sums + cut->dataset;
        if (cut->step == 1)
            ops->add_hash(cut->from, cut->rows, cut->width, cut->width, cut->index, cut->stride, sum);
        for (long r = 0; r < cut->rows && cut->step != 1; r++)
            ops->add_hash(cut->from + r * cut->width, cut->width, 1, 1,
                          cut->index + (uint64_t)r * cut->stride, cut->step, sum);
    }
    ops->device->download(s->sums, s->device_sums, bytes);
    return ops->device->status();
}

int snapshot_take(struct snapshot *s, const struct checkpoint_content *live) {
    s->content.num_scales = live->num_scales;
    s->content.spike_values = live->spike_values;
    if (live->num_scales) memcpy(s->scales, live->scales, (size_t)live->num_scales * sizeof *s->scales);
    if (live->spike_values) memcpy(s->spikes, live->spikes, (size_t)live->spike_values * sizeof *s->spikes);
    if (!s->ops->device->host) return sum_on_device(s);
    memcpy(s->state.steps, live->state->steps, (size_t)live->table->rows * sizeof *s->state.steps);
    copy_on_host(s);
    return 0;
}

const struct checkpoint_content *snapshot_content(const struct snapshot *snapshot) {
    return &snapshot->content;
}
