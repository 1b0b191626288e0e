/* gdn report: gates and contributions of delta connections by layer and distance, as maps over the steps and
 * as tables of the last ones told. */
#include "train/report/page.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/report/html.h"
#include "train/report/style.h"

enum { COLUMNS = 240, PANEL_LEFT = 62, PANEL_TOP = 26, PANEL_BOTTOM = 54, PANEL_GAP = 24, MAX_TICS = 8 };

static double gate_of(const struct report_gate *gate) {
    return gate->gate;
}
static double contribution_of(const struct report_gate *gate) {
    return gate->contribution;
}

static const struct quantity {
    const char *name, *title;
    double (*value)(const struct report_gate *gate);
} quantities[] = {
    {"gate", "Gates, mean of each connection", gate_of},
    {"contribution", "Contributions to the stream, root mean square", contribution_of},
};
enum { QUANTITIES = sizeof quantities / sizeof *quantities };

/* What a run's connections are, and the steps that tell of them. */
struct extent {
    int layers;    /* the greatest, and one */
    int *distance; /* [distances] each once, rising */
    int distances;
    double first, last; /* steps */
    long columns;       /* of a map */
    double min, max;    /* values; NAN without any */
};

static int rising(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int measure(const struct report_run *run, const struct quantity *quantity, struct extent *out) {
    *out = (struct extent){
        .min = NAN, .max = NAN, .first = run->gate[0].step, .last = run->gate[run->gates - 1].step};
    out->distance = malloc((size_t)run->gates * sizeof *out->distance);
    if (!out->distance) return report_no_memory();
    long steps = 0;
    for (long i = 0; i < run->gates; i++) {
        const struct report_gate *gate = &run->gate[i];
        double value = quantity->value(gate);
        if (gate->layer >= out->layers) out->layers = gate->layer + 1;
        out->distance[i] = gate->distance;
        out->min = fmin(out->min, value), out->max = fmax(out->max, value);
        if (i == 0 || gate->step != gate[-1].step) steps++;
    }
    qsort(out->distance, (size_t)run->gates, sizeof *out->distance, rising);
    for (long i = 0; i < run->gates; i++)
        if (out->distances == 0 || out->distance[i] != out->distance[out->distances - 1])
            out->distance[out->distances++] = out->distance[i];
    out->columns = steps < COLUMNS ? steps : COLUMNS;
    /* Colours of numbers that are all but the same would tell of differences that there are not. */
    double widen = 0.02 * fabs(out->max) - (out->max - out->min);
    if (widen > 0) out->min -= widen;
    if (out->max == 0 && out->min == 0) out->max = 1;
    return GDN_OK;
}

/* Means of each column and layer for a distance; NAN where there is nothing. sum, count [layers ·
 * columns]. */
static void fill(const struct report_run *run, const struct quantity *quantity, const struct extent *e,
                 int distance, double *sum, long *count) {
    for (long i = 0; i < e->layers * e->columns; i++) sum[i] = 0, count[i] = 0;
    for (long i = 0; i < run->gates; i++) {
        const struct report_gate *gate = &run->gate[i];
        double value = quantity->value(gate);
        if (gate->distance != distance || !isfinite(value)) continue;
        double along = e->last > e->first ? (gate->step - e->first) / (e->last - e->first) : 0;
        long column = lround(along * (double)(e->columns - 1));
        sum[gate->layer * e->columns + column] += value;
        count[gate->layer * e->columns + column]++;
    }
    for (long i = 0; i < e->layers * e->columns; i++) sum[i] = count[i] ? sum[i] / (double)count[i] : NAN;
}

/* An image has at least two rows and columns: a single one is drawn as two halves. */
static void write_field(FILE *out, const struct extent *e, const double *mean, double step_scale) {
    int across = e->columns == 1 ? 2 : 1, up = e->layers == 1 ? 2 : 1;
    double width = e->columns == 1 ? 0.5 : (e->last - e->first) / (double)(e->columns - 1);
    for (long row = 0; row < e->layers * up; row++)
        for (long column = 0; column < e->columns * across; column++) {
            double value = mean[row / up * e->columns + column / across];
            double x = e->first + (across == 2 ? 0.5 * (double)column - 0.25 : width * (double)column);
            double y = up == 2 ? 0.5 * (double)row - 0.25 : (double)row;
            fprintf(out, "%.8g %.8g ", x * step_scale, y);
            fprintf(out, isfinite(value) ? "%.6g\n" : "NaN\n", value);
        }
}

static void write_panel(FILE *out, const struct extent *e, int panel, int columns, int width, int height,
                        int panel_height) {
    int column = panel % columns, row = panel / columns, panel_width = width / columns;
    double left = column * panel_width + PANEL_LEFT, right = (column + 1) * panel_width - PANEL_GAP;
    double top = height - row * (panel_height + PANEL_TOP + PANEL_BOTTOM) - PANEL_TOP,
           bottom = top - panel_height;
    fprintf(out,
            "set lmargin at screen %.6f\nset rmargin at screen %.6f\nset tmargin at screen %.6f\n"
            "set bmargin at screen %.6f\nset title 'distance %d' offset 0,-0.6 textcolor rgb '#777777'\n"
            "plot $m%d using 1:2:3 with image\n",
            left / width, right / width, top / height, bottom / height, e->distance[panel], panel);
}

static int draw_panels(const struct report_run *run, const struct quantity *quantity, const struct extent *e,
                       struct plot *plot, int columns, int width, int height, int panel_height) {
    FILE *out = plot->script;
    double *mean = malloc((size_t)(e->layers * e->columns) * sizeof *mean);
    long *count = malloc((size_t)(e->layers * e->columns) * sizeof *count);
    struct figure_axis steps = axis_number("step", e->last);
    for (int d = 0; d < e->distances && mean && count; d++) {
        fill(run, quantity, e, e->distance[d], mean, count);
        fprintf(out, "$m%d << END\n", d);
        write_field(out, e, mean, steps.scale);
        fprintf(out, "END\n");
    }
    bool drawn = mean && count;
    free(mean);
    free(count);
    if (!drawn) return report_no_memory();
    double half = e->columns == 1 ? 0.5 : (e->last - e->first) / (double)(e->columns - 1) / 2;
    fprintf(out,
            "unset key\nunset colorbox\nset palette " REPORT_PALETTE "\nset border 0\n"
            "set tics nomirror scale 0 textcolor rgb '#777777'\nset format x '%%g%s'\n"
            "set xlabel 'step' offset 0,0.4 textcolor rgb '#777777'\n"
            "set ylabel 'layer' offset 0.5,0 textcolor rgb '#777777'\nset ytics %d\n"
            "set xtics autofreq\nset cbrange [%.9g:%.9g]\nset xrange [%.9g:%.9g]\nset yrange "
            "[-0.5:%d.5]\nset multiplot\n",
            steps.unit, (e->layers + MAX_TICS - 1) / MAX_TICS, e->min, e->max,
            (e->first - half) * steps.scale, (e->last + half) * steps.scale, e->layers - 1);
    if (e->columns == 1) fprintf(out, "set xtics ('%g' %.9g)\n", e->first, e->first * steps.scale);
    for (int d = 0; d < e->distances; d++) write_panel(out, e, d, columns, width, height, panel_height);
    fprintf(out, "unset multiplot\n");
    return GDN_OK;
}

/* Which colour is which number. */
static void write_scale(const struct report *report, const struct extent *e) {
    char min[32], max[32];
    fprintf(report->page, "<div class=\"scale\">%s<i></i>%s</div>\n", number_text(e->min, min),
            number_text(e->max, max));
}

static int draw_maps(const struct report *report, const struct report_run *run,
                     const struct quantity *quantity, const struct extent *e) {
    int columns = e->distances == 1 ? 1 : 2, rows = (e->distances + columns - 1) / columns;
    int panel_height = e->layers * 14 < 96 ? 96 : e->layers * 14 > 300 ? 300 : e->layers * 14;
    int height = rows * (panel_height + PANEL_TOP + PANEL_BOTTOM);
    struct plot plot;
    int status = plot_open(&plot, PLOT_INLINE, FIGURE_WIDTH, height);
    if (!status) status = draw_panels(run, quantity, e, &plot, columns, FIGURE_WIDTH, height, panel_height);
    char *svg = NULL;
    size_t size;
    if (!status) status = plot_text(&plot, quantity->title, &svg, &size);
    if (!status) figure_embed(svg, quantity->title, report->page);
    free(svg);
    plot_close(&plot);
    return status;
}

/* A number in few characters. */
static const char *short_number(double x, char text[32]) {
    snprintf(text, 32, x != 0 && fabs(x) < 1e-3 ? "%.0e" : fabs(x) < 10 ? "%.3f" : "%.3g", x);
    return text;
}

/* The last state, layers upwards as in the maps. */
static void write_last(const struct report *report, const struct report_run *run,
                       const struct quantity *quantity, const struct extent *e) {
    FILE *page = report->page;
    fprintf(
        page,
        "<div><p class=\"note\">%s at step %.0f</p><div class=\"scroll\"><table class=\"heat\"><thead><tr>"
        "<th>layer</th>",
        quantity->name, e->last);
    for (int d = 0; d < e->distances; d++) fprintf(page, "<th>d = %d</th>", e->distance[d]);
    fprintf(page, "</tr></thead>\n");
    for (int layer = e->layers - 1; layer >= 0; layer--) {
        fprintf(page, "<tr><th>%d</th>", layer);
        for (int d = 0; d < e->distances; d++) {
            double value = NAN;
            for (long i = run->gates; i-- > 0 && run->gate[i].step == e->last;)
                if (run->gate[i].layer == layer && run->gate[i].distance == e->distance[d])
                    value = quantity->value(&run->gate[i]);
            char colour[8], number[32];
            double t = (value - e->min) / (e->max - e->min);
            if (!isfinite(value)) {
                fprintf(page, "<td></td>");
                continue;
            }
            report_scale(t, colour);
            fprintf(page, "<td style=\"background:%s;color:%s\">%s</td>", colour, t > 0.55 ? "#000" : "#fff",
                    short_number(value, number));
        }
        fprintf(page, "</tr>\n");
    }
    fprintf(page, "</table></div></div>\n");
}

static void write_card_title(const struct report *report, int r, const char *title) {
    fprintf(report->page, "<figure class=\"card chart wide\"><h3>");
    if (report->count > 1) report_name(report, r);
    fprintf(report->page, "%s%s</h3>\n", report->count > 1 ? ": " : "", title);
}

static int write_run(const struct report *report, int r) {
    const struct report_run *run = &report->run[r];
    struct extent extent[QUANTITIES] = {{0}};
    int status = GDN_OK;
    for (int q = 0; q < QUANTITIES && !status; q++) {
        status = measure(run, &quantities[q], &extent[q]);
        if (status || !isfinite(extent[q].max)) continue;
        write_card_title(report, r, quantities[q].title);
        write_scale(report, &extent[q]);
        status = draw_maps(report, run, &quantities[q], &extent[q]);
        report_card_end(report);
    }
    if (!status) {
        write_card_title(report, r, "Last state, by layer and distance");
        fprintf(report->page, "<div class=\"pair\">");
        for (int q = 0; q < QUANTITIES; q++)
            if (isfinite(extent[q].max)) write_last(report, run, &quantities[q], &extent[q]);
        fprintf(report->page, "</div>");
        report_card_end(report);
    }
    for (int q = 0; q < QUANTITIES; q++) free(extent[q].distance);
    return status;
}

int report_gates(const struct report *report) {
    bool *lacking = calloc((size_t)report->count, sizeof *lacking);
    if (!lacking) return report_no_memory();
    int status = GDN_OK;
    fprintf(report->page, "<div class=\"grid\" style=\"margin-top:16px\">\n");
    for (int r = 0; r < report->count && !status; r++) {
        lacking[r] = report->run[r].gates == 0 && !report_plain_model(&report->run[r]);
        if (report->run[r].gates > 0) status = write_run(report, r);
    }
    fprintf(report->page, "</div>\n");
    report_lacks(report, lacking, "no <code>gates</code> events: set <code>train.gate_interval</code>");
    free(lacking);
    return status;
}
