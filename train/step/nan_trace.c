#include "train/step/nan_trace.h"

#include "dist/mpi/mpi_error.h"
#include "kernels/base/append.h"
#include "model/params/find.h"
#include "model/params/stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Places of one pass over a layer, in their order. */
enum place { WEIGHT, OUTPUT, LOSS, GRADIENT, STREAM, PLACES };

int nan_trace_reserve(struct nan_trace *q) {
    q->square = q->ops->device->reserve(FINITE_SUMS * sizeof *q->square);
    q->findings = calloc((size_t)q->mesh->size, sizeof *q->findings);
    q->first.order = INT64_MAX;
    return q->square && q->findings ? 0
                                    : gdn_fail(GDN_INTERNAL, "out of memory for NaN traces after bad steps");
}

void nan_trace_free(struct nan_trace *q) {
    if (q->square) q->ops->device->release(q->square);
    free(q->findings);
    q->square = NULL;
    q->findings = NULL;
}

/* ---------------------------------------------------------------------------------------------- looking */

/* Number of a place in the order of the computation. */
static int64_t order_of(const struct nan_trace *q, int micro_batch, bool back, int layer, enum place place) {
    int64_t layers = q->config->num_layers + 2, at = back ? q->config->num_layers - layer : layer + 1;
    return (((int64_t)micro_batch * 2 + back) * layers + at) * PLACES + place;
}

/* "layer 3", "the embedding", "the head". */
static const char *layer_text(const struct nan_trace *q, int layer, char text[32]) {
    if (layer >= 0 && layer < q->config->num_layers)
        snprintf(text, 32, "layer %d", layer);
    else
        snprintf(text, 32, "%s", layer < 0 ? "the embedding" : "the head");
    return text;
}

static bool earlier(const struct nan_trace *q, int64_t order) {
    return order < q->first.order;
}

static void find(struct nan_trace *q, int64_t order, int micro_batch, int layer, const char *what,
                 const char *of) {
    if (!earlier(q, order)) return;
    q->first = (struct finding){.order = order, .micro_batch = micro_batch, .layer = layer};
    snprintf(q->first.what, sizeof q->first.what, "%s%s", what, of);
}

static bool good(struct nan_trace *q, const real *x, long count) {
    return finite_now(q->ops, count, x, q->square, q->found);
}

/* This rank's rows of x [T, W], of the stream: those that are sure to be there (sequence_parallel). */
static bool good_rows(struct nan_trace *q, const real *x, long T) {
    const struct axis *tensor = &q->mesh->axis[AXIS_TENSOR];
    long W = stream_width(q->config), first = 0, end = T;
    if (q->layout->sequence_parallel && tensor->size > 1) {
        first = axis_first_row(tensor, T, tensor->index);
        end = axis_first_row(tensor, T, tensor->index + 1);
    }
    return good(q, x + first * W, (end - first) * W);
}

void nan_trace_begin(struct nan_trace *q, const struct edge_set *active) {
    q->active = active;
    q->first = (struct finding){.order = INT64_MAX};
    for (int i = 0; i < q->table->rows; i++) {
        const struct row *row = &q->table->row[i];
        int64_t order = order_of(q, 0, false, row->layer, WEIGHT);
        if (!earlier(q, order) || !params_active(row, active)) continue;
        if (!good(q, q->state->weight + row->offset, row->count))
            find(q, order, 0, row->layer, "weights of ", row->name);
    }
}

void nan_trace_output(struct nan_trace *q, int micro_batch, int node, const real *x, long rows) {
    int64_t order = order_of(q, micro_batch, false, node, OUTPUT);
    char text[32];
    if (earlier(q, order) && !good(q, x, rows * stream_width(q->config)))
        find(q, order, micro_batch, node, "output of ", layer_text(q, node, text));
}

void nan_trace_gradients(struct nan_trace *q, int micro_batch, int layer) {
    int64_t order = order_of(q, micro_batch, true, layer, GRADIENT);
    for (int i = 0; i < q->table->rows && earlier(q, order); i++) {
        const struct row *row = &q->table->row[i];
        if (row->layer == layer && params_active(row, q->active) &&
            !good(q, q->state->gradient + row->offset, row->count))
            find(q, order, micro_batch, layer, "gradient of ", row->name);
    }
}

void nan_trace_stream(struct nan_trace *q, int micro_batch, int layer, const real *x, long T) {
    int64_t order = order_of(q, micro_batch, true, layer, STREAM);
    char text[32];
    if (earlier(q, order) && !good_rows(q, x, T))
        find(q, order, micro_batch, layer, "gradient that goes down from ", layer_text(q, layer, text));
}

void nan_trace_loss(struct nan_trace *q, int micro_batch, const struct loss_sums *sums) {
    struct loss_sums at;
    int64_t order = order_of(q, micro_batch, true, q->config->num_layers, LOSS);
    if (!earlier(q, order)) return;
    q->ops->device->download(&at, sums, sizeof at);
    if (!isfinite(at.ce) || !isfinite(at.sparsity) || !isfinite(at.entropy))
        find(q, order, micro_batch, q->config->num_layers, "loss", "");
}

/* ---------------------------------------------------------------------------------------------- hearing */

static int gather_findings(struct nan_trace *q, const struct rank_finding *mine) {
    if (mesh_any(q->mesh, 0) < 0) return GDN_INTERNAL; /* nothing is under way any more */
    return mesh_gather(q->mesh, mine, sizeof *mine, q->findings);
}

/* Whether what was not finite on a rank in the step itself came from no other: nobody who computes the same
 * sequences has an earlier place. */
static bool is_origin(const struct nan_trace *q, int rank) {
    const struct rank_finding *t = &q->findings[rank];
    for (int r = 0; r < q->mesh->size; r++) {
        const struct rank_finding *other = &q->findings[r];
        if (other->data == t->data && other->first_bad >= 0 && other->first_bad < t->first_bad) return false;
    }
    return t->first_bad >= 0;
}

/* The ranks' numbers, "and 12 more" where there are many. The lowest, −1: none. */
static int list_bad_ranks(const struct nan_trace *q, char *text, size_t size) {
    enum { SHOWN = 8 };
    int lowest = -1, count = 0;
    size_t used = 0;
    for (int r = 0; r < q->mesh->size; r++) count += is_origin(q, r);
    text[0] = 0;
    if (count) used = text_append(text, size, used, count > 1 ? "ranks" : "rank");
    for (int r = 0, shown = 0; r < q->mesh->size && shown < SHOWN; r++) {
        if (!is_origin(q, r)) continue;
        if (lowest < 0) lowest = r;
        used = text_append(text, size, used, "%s %d", shown++ ? "," : "", r);
    }
    if (count > SHOWN) text_append(text, size, used, " and %d more", count - SHOWN);
    return lowest;
}

int nan_trace_end(struct nan_trace *q, int first_bad, struct verdict *out) {
    struct rank_finding mine = {.finding = q->first, .first_bad = first_bad, .data = q->mesh->batch.index};
    snprintf(mine.host, sizeof mine.host, "%s", q->mesh->host);
    TRY(gather_findings(q, &mine));
    *out = (struct verdict){.asked = true, .rank = -1};
    int first = 0;
    for (int r = 1; r < q->mesh->size; r++)
        if (q->findings[r].finding.order < q->findings[first].finding.order) first = r;
    int lowest = list_bad_ranks(q, out->bad_ranks, sizeof out->bad_ranks);
    out->finding = q->findings[first].finding;
    out->found = out->finding.order != INT64_MAX;
    out->rank = out->found ? first : lowest;
    if (out->rank >= 0) snprintf(out->host, sizeof out->host, "%s", q->findings[out->rank].host);
    return 0;
}

void nan_trace_text(const struct verdict *v, char text[512]) {
    char seen[176] = "";
    if (v->bad_ranks[0])
        snprintf(seen, sizeof seen, "; before any exchange, what %s computed was not finite", v->bad_ranks);
    if (v->found)
        snprintf(text, 512, "first not finite is the %s on rank %d (%s), in micro-batch %d%s",
                 v->finding.what, v->rank, v->host, v->finding.micro_batch, seen);
    else if (v->recurred)
        snprintf(text, 512, "all outputs and gradients of the ranks' own are finite, so it began in a sum%s",
                 seen);
    else if (v->rank >= 0)
        snprintf(
            text, 512,
            "it did not recur when the step was computed again: a fault of the machine on rank %d (%s) is "
            "likely%s",
            v->rank, v->host, seen);
    else
        snprintf(text, 512,
                 "it did not recur when the step was computed again: a fault of the machine is likely");
}
