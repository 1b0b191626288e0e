#include "train/command/prune_print.h"

#include "kernels/base/status.h"
#include "train/command/json_line.h"

#include <math.h>
#include <string.h>

enum { BAR = 40 }; /* columns of the curve's longest bar */

static int kept_of(const struct prune *prune) {
    int kept = 0;
    for (int i = 0; i < prune->count; i++) kept += prune->edge[i].kept;
    return kept;
}

/* "  layer   3 from   1      2   0.512      0.0213     0.0109     0.00142  kept" */
static void print_edge(const struct prune_edge *edge, bool some, FILE *out) {
    char source[16];
    snprintf(source, sizeof source, edge->source < 0 ? "emb" : "%d", edge->source);
    fprintf(out, "  %5d %5s %8d  %8.4f  %12.6g  %12.6g", edge->target, source, edge->distance, edge->gate,
            edge->contribution, prune_use(edge));
    if (!isnan(edge->effect)) fprintf(out, "  %12.6g", edge->effect);
    if (!isnan(edge->increase)) fprintf(out, "  %+12.6g", edge->increase);
    fprintf(out, "%s\n", !some ? "" : edge->kept ? "  kept" : "  -");
}

/* Bars are what the loss is above the least. */
static void print_curve(const struct prune *prune, FILE *out) {
    double low = INFINITY, high = -INFINITY;
    for (int c = 0; c < prune->points; c++) {
        low = fmin(low, prune->curve[c].loss);
        if (isfinite(prune->curve[c].loss)) high = fmax(high, prune->curve[c].loss);
    }
    fprintf(out, "\n   kept         loss    more\n");
    for (int c = 0; c < prune->points; c++) {
        const double loss = prune->curve[c].loss, part = high > low ? (loss - low) / (high - low) : 0;
        int bar = isfinite(loss) ? (int)lround(BAR * part) : BAR;
        fprintf(out, "  %5d  %11.9g  %+5.2f%%  ", prune->curve[c].kept, loss, 100 * (loss / prune->loss - 1));
        while (bar-- > 0) fputc('#', out);
        fputc('\n', out);
    }
}

int prune_print(const struct prune_report *report, FILE *out) {
    const struct prune *prune = report->prune;
    const bool some = !isnan(report->keep), left_out = report->by == PRUNE_LEAVE_ONE_OUT;
    fprintf(out, "checkpoint   %s, after %ld steps\n", report->checkpoint, report->step);
    fprintf(out, "data         %ld sequences, %.0f tokens\n", report->sequences, report->tokens);
    fprintf(out, "connections  %d", prune->count);
    if (some) fprintf(out, ", of which %d are kept", kept_of(prune));
    fprintf(out, "\nloss         %.9g nats a token with all", prune->loss);
    if (some)
        fprintf(out, ", %.9g with those kept (%+.2f%%)", prune->kept_loss,
                100 * (prune->kept_loss / prune->loss - 1));
    fputc('\n', out);
    if (!isnan(prune->correlation))
        fprintf(out, "correlation  %.3f of the order by gate x contribution with that by leave-one-out\n",
                prune->correlation);
    if (!isnan(prune->effect_correlation))
        fprintf(out, "             %.3f of the first-order effect's\n", prune->effect_correlation);
    if (report->output) fprintf(out, "written      %s: checkpoint.h5, config.yaml\n", report->output);
    fprintf(out, "\n   into  from distance      gate  contribution          both%s%s\n",
            prune->count && !isnan(prune->edge[0].effect) ? "   first order" : "", left_out ? "    without it" : "");
    for (int i = 0; i < prune->count; i++) print_edge(&prune->edge[i], some, out);
    print_curve(prune, out);
    return 0;
}

static json_t *edges_json(const struct prune *prune) {
    json_t *list = json_array();
    for (int i = 0; i < prune->count; i++) {
        const struct prune_edge *edge = &prune->edge[i];
        json_array_append_new(list, json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:b}", "target", edge->target,
                                              "source", edge->source, "distance", edge->distance, "gate",
                                              json_finite(edge->gate), "contribution",
                                              json_finite(edge->contribution), "effect",
                                              json_finite(edge->effect), "increase",
                                              json_finite(edge->increase), "kept", edge->kept));
    }
    return list;
}

static json_t *curve_json(const struct prune *prune) {
    json_t *list = json_array();
    for (int c = 0; c < prune->points; c++)
        json_array_append_new(list, json_pack("{s:i, s:o}", "kept", prune->curve[c].kept, "loss",
                                              json_finite(prune->curve[c].loss)));
    return list;
}

int prune_print_json(const struct prune_report *report) {
    const struct prune *prune = report->prune;
    const bool some = !isnan(report->keep);
    json_t *edges = edges_json(prune), *curve = curve_json(prune);
    if (json_array_size(edges) != (size_t)prune->count || json_array_size(curve) != (size_t)prune->points) {
        json_decref(edges);
        json_decref(curve);
        return gdn_fail(GDN_INTERNAL, "out of memory for the output as JSON");
    }
    return json_print_line(json_pack(
        "{s:o, s:I, s:I, s:I, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "checkpoint",
        json_bytes(report->checkpoint, strlen(report->checkpoint)), "step", (json_int_t)report->step,
        "sequences", (json_int_t)report->sequences, "tokens", (json_int_t)report->tokens, "loss",
        json_finite(prune->loss), "by", prune_by_words[report->by],
        "correlation", json_finite(prune->correlation), "effect_correlation", json_finite(prune->effect_correlation), "keep", json_finite(report->keep), "kept",
        some ? json_integer(kept_of(prune)) : json_null(), "kept_loss", json_finite(prune->kept_loss),
        "output", report->output ? json_bytes(report->output, strlen(report->output)) : json_null(),
        "connections", edges, "curve", curve));
}
