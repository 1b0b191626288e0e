/* A store of differences as it runs: what is seen, what becomes of it. */
#include "dist/layout/pieces.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "train/deltas/delta_store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct delta_watch *delta_store_begin(struct delta_store *store, int64_t step,
                                            const struct edge_set *active) {
    struct delta_store *s = store;
    if (!s || step % s->place.config->delta_store.interval) return NULL;
    s->under_way = true;
    s->step = step;
    s->active = active;
    s->count = 0;
    s->tally = (struct delta_tally){0};
    s->failure.text[0] = 0;
    s->factorise_seconds = s->stall_seconds = 0;
    return s->watches ? &s->watch : NULL;
}

/* ------------------------------------------------------------------------------------- what is seen */

/* Takes the words of a failure that does not end the run; `before`: whether others were recorded before it,
 * which stay. */
static void note(struct delta_store *s, bool before, int layer, int distance, int connections) {
    s->tally.failed += connections;
    if (!s->failure.text[0]) {
        s->failure.layer = layer, s->failure.distance = distance;
        snprintf(s->failure.text, sizeof s->failure.text, "%.*s", (int)sizeof s->failure.text - 1,
                 before ? "the run has failed" : gdn_failure());
    }
    if (!before) gdn_failure_clear();
}

static int factorise(struct delta_store *s, const struct delta_view *view, struct factors *out) {
    const struct delta_store_config *config = &s->place.config->delta_store;
    long T = view->batch * view->length;
    uint64_t seed =
        random_bits(s->place.config->train.seed, random_name("stored differences"), (uint64_t)s->step);
    seed = random_bits(seed, (uint64_t)view->edge->target, (uint64_t)view->edge->distance);
    double began = MPI_Wtime();
    int status = config->ratio > 0
                     ? lowrank_factor(&s->lowrank, T, view->D, view->difference,
                                      lowrank_of_ratio(T, view->D, config->ratio), seed, out)
                     : lowrank_to(&s->lowrank, T, view->D, view->difference, config->tolerance, seed, out);
    s->factorise_seconds += MPI_Wtime() - began;
    return status;
}

static int make_record(struct delta_store *s, const struct delta_view *view, const struct gates *gates,
                       struct delta_record *r) {
    r->step = s->step;
    r->layer = view->edge->target, r->distance = view->edge->distance, r->source = view->edge->source;
    r->batch = view->batch, r->length = view->length;
    gates_record(gates, r);
    if (gates->strange)
        return gdn_fail(GDN_INTERNAL, "%.0f of its gates are NaN or infinite", gates->strange);
    return factorise(s, view, &r->factors);
}

/* Makes the file of the layer in progress and hands it to the writer. */
static int close_layer(struct delta_store *s, int layer) {
    struct delta_job job = {.step = s->step, .layer = layer};
    TRY(delta_file_image(s->record, s->count, &job.image, &job.bytes));
    job.tally = (struct delta_tally){.files = 1, .connections = s->count, .bytes = (long)job.bytes};
    for (int i = 0; i < s->count; i++) {
        const struct factors *f = &s->record[i].factors;
        job.tally.plain_bytes += f->T * f->D * (long)sizeof(real);
        job.tally.rank += f->rank;
        if (f->error > job.tally.error) job.tally.error = f->error;
    }
    delta_writer_give(s->writer, &job);
    return 0;
}

/* Is it the last of the active connections into its layer? */
static bool last_of_layer(const struct delta_store *s, const struct edge *edge) {
    const struct edges *edges = s->place.edges;
    int e = edges->first[edge->target];
    while (edges->edge[e].source != edge->source || edges->edge[e].rule != edge->rule) e++;
    while (++e < edges->first[edge->target + 1])
        if (edges->edge[e].measured && edge_set_has(s->active, e)) return false;
    return true;
}

static void add_connection(struct delta_store *s, const struct delta_view *view, const struct gates *gates) {
    int layer = view->edge->target;
    bool before = *gdn_failure() != 0;
    if (make_record(s, view, gates, &s->record[s->count]))
        note(s, before, layer, view->edge->distance, 1);
    else
        s->count++;
    if (!last_of_layer(s, view->edge)) return;
    if (s->count && close_layer(s, layer)) note(s, before, layer, 0, s->count);
    s->count = 0;
}

/* Of several context ranks the gates of all, and on the rank that factorises whole sequences for the view. */
static void join_context(struct delta_store *s, struct delta_view *view, struct gates *gates) {
    struct axis *axis = &s->place.mesh->axis[AXIS_CONTEXT];
    const int context = axis->size;
    const long S = s->place.config->train.sequence_length, piece = view->length * view->D;
    const size_t bytes = (size_t)piece * sizeof(real);
    axis_gather_doubles(axis, (const double *)gates, GATES_DOUBLES, (double *)s->part);
    gates_join(s->part, context, gates);
    for (long row = 0; row < view->batch; row++) {
        memcpy(s->mine, view->difference + row * piece, bytes);
        axis_gather_doubles(axis, s->mine, s->doubles, s->pieces); /* reals, as they are */
        for (int r = 0; s->whole && r < context; r++)
            memcpy(s->whole + row / 2 * S * view->D + piece_of_row(context, r, row) * piece,
                   s->pieces + r * s->doubles, bytes);
    }
    view->batch /= 2, view->length = S, view->difference = s->whole;
}

void delta_store_see(void *store, const struct delta_view *seen) {
    struct delta_store *s = store;
    double began = MPI_Wtime(), factorised = s->factorise_seconds;
    struct delta_view full = *seen, *view = &full;
    struct gates gates;
    gates_measure(s->all_replicated && s->place.layout->index[AXIS_TENSOR] ? NULL : view->gate, view->batch * view->length, view->gates,
                  view->gate_ld, &gates);
    axis_gather_doubles(&s->place.mesh->axis[AXIS_TENSOR], (const double *)&gates, GATES_DOUBLES,
                        (double *)s->part);
    gates_join(s->part, s->place.mesh->axis[AXIS_TENSOR].size, &gates);
    if (delta_store_context(s) > 1) join_context(s, view, &gates);
    if (s->files) add_connection(s, view, &gates);
    s->stall_seconds += MPI_Wtime() - began - (s->factorise_seconds - factorised);
}

/* --------------------------------------------------------------------------------- what becomes of it */

/* Adds up all ranks'. */
static int join_ranks(const struct delta_store *s, struct delta_report *out) {
    const struct mesh *mesh = s->place.mesh;
    const struct delta_tally *t = &s->tally;
    long sums[] = {t->files, t->connections, t->bytes, t->plain_bytes, t->rank, t->failed};
    double max[] = {t->error, s->factorise_seconds, s->stall_seconds,
                    s->failure.text[0] ? -mesh->rank : -mesh->size};
    enum { SUMS = sizeof sums / sizeof *sums, MAX = sizeof max / sizeof *max };
    TRY(mesh_reduce(mesh, sums, SUMS, MPI_LONG, MPI_SUM));
    TRY(mesh_reduce(mesh, max, MAX, MPI_DOUBLE, MPI_MAX));
    out->tally = (struct delta_tally){sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], max[0]};
    out->factorise_seconds = max[1], out->stall_seconds = max[2];
    int rank = -(int)max[3]; /* the lowest that has failed */
    if (mesh->size == 1 || rank == mesh->size) return 0;
    if (rank == mesh->rank)
        snprintf(out->failure.text, sizeof out->failure.text, "rank %d on %s: %.900s", rank, mesh->host,
                 s->failure.text);
    return mesh_broadcast_from(mesh, rank, &out->failure, sizeof out->failure);
}

int delta_store_poll(struct delta_store *store, bool wait, struct delta_report *out) {
    struct delta_store *s = store;
    *out = (struct delta_report){0};
    if (!s || !s->under_way) return 0;
    if (!wait) {
        int busy = mesh_any(s->place.mesh, s->writer && !delta_writer_idle(s->writer));
        if (busy) return busy < 0 ? GDN_INTERNAL : 0;
    }
    double began = MPI_Wtime();
    if (s->writer) delta_writer_take(s->writer, &s->tally, &s->failure);
    s->stall_seconds += MPI_Wtime() - began;
    s->under_way = false;
    out->done = true;
    out->step = s->step;
    out->failure = s->failure;
    return join_ranks(s, out);
}
