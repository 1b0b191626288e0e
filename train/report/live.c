#include "train/report/live.h"

#include <stdlib.h>

#include "kernels/base/status.h"
#include "model/rules/rules.h"
#include "train/report/figure.h"
#include "train/report/text.h"

/* ---- spans */

bool live_has(const struct report_run *run) {
    return run->configured && run->config.train.prune.by != PRUNING_NONE;
}

static int add_span(struct live *live, int edge, double from, double to) {
    if (!(to > from)) return GDN_OK;
    struct live_span *more = realloc(live->span, (size_t)(live->spans + 1) * sizeof *more);
    if (!more) return report_no_memory();
    live->span = more;
    live->span[live->spans++] = (struct live_span){edge, from, to};
    return GDN_OK;
}

/* The changes of one connection, which are by step. */
static int follow(const struct report_run *run, struct live *live, int edge) {
    const struct edge *of = &live->edges.edge[edge];
    bool in_use = true;
    double from = 0;
    for (long i = 0; i < run->changes; i++) {
        const struct report_change *change = &run->change[i];
        if (change->layer != of->target || change->distance != of->distance || change->back == in_use) continue;
        if (in_use) TRY(add_span(live, edge, from, change->step));
        in_use = change->back, from = change->step;
    }
    live->left += in_use;
    return in_use ? add_span(live, edge, from, live->steps) : GDN_OK;
}

int live_of(const struct report_run *run, struct live *out) {
    *out = (struct live){.steps = run->done};
    TRY(edges_create(&run->config.model, &out->edges));
    for (int e = 0; e < out->edges.count; e++)
        if (out->edges.edge[e].measured) TRY(follow(run, out, e));
    return GDN_OK;
}

void live_free(struct live *live) {
    edges_free(&live->edges);
    free(live->span);
    *live = (struct live){0};
}

/* ---- the figure: a row for each connection, the lowest layer's nearest at the bottom */

enum { LEFT_MARGIN = 156, RIGHT_MARGIN = 24, TITLE = 32, TOP_MARGIN = 8, BOTTOM_MARGIN = 48, NAMED_ROWS = 80 };

struct rows {
    int count, height; /* of one, in pixels */
};

static struct rows rows_of(const struct live *live) {
    const int count = live->edges.measured;
    return (struct rows){count, count <= NAMED_ROWS ? 15 : count <= 300 ? 6 : 3};
}

/* Each row's name where there is room, "3 ← 1" for layer 3's from layer 1; else each layer's number at its lowest. */
static void write_names(FILE *out, const struct live *live, const struct rows *rows) {
    const char *separator = "";
    int row = 0, last = -1;
    const int every = rows->count <= NAMED_ROWS ? 1 : (live->edges.num_layers + 31) / 32;
    fprintf(out, "set ytics (");
    for (int e = 0; e < live->edges.count; e++) {
        const struct edge *edge = &live->edges.edge[e];
        if (!edge->measured) continue;
        if (rows->count > NAMED_ROWS) {
            if (edge->target != last && edge->target % every == 0)
                fprintf(out, "%s'%d' %d", separator, edge->target, row), separator = ", ";
        } else if (edge->source < 0) {
            fprintf(out, "%s'%d ← embedding' %d", separator, edge->target, row), separator = ", ";
        } else {
            fprintf(out, "%s'%d ← %d' %d", separator, edge->target, edge->source, row), separator = ", ";
        }
        last = edge->target;
        row++;
    }
    fprintf(out, ")\nset ylabel '%s' offset 1,0 textcolor rgb '#777777'\n",
            rows->count > NAMED_ROWS ? "layer, its nearest source lowest" : "layer ← what it reads");
}

/* A line between layers, so that a layer's rows are seen to belong together. */
static void write_layers(FILE *out, const struct live *live, double last) {
    int row = 0, target = -1;
    for (int e = 0; e < live->edges.count; e++) {
        if (!live->edges.edge[e].measured) continue;
        if (row && live->edges.edge[e].target != target)
            fprintf(out, "set arrow from 0,%g to %.9g,%g nohead lc rgb '#777777' lw 0.4 dt 3 back\n", row - 0.5, last,
                    row - 0.5);
        target = live->edges.edge[e].target;
        row++;
    }
}

/* $all: the whole of each row, pale; $live: the spans. Columns: from, to, row. */
static void write_bars(FILE *out, const struct live *live, double scale) {
    int row = 0;
    long s = 0;
    fprintf(out, "$all << END\n");
    for (int i = 0; i < live->edges.measured; i++) fprintf(out, "0 %.9g %d\n", live->steps * scale, i);
    fprintf(out, "END\n$live << END\n");
    for (int e = 0; e < live->edges.count; e++) {
        for (; s < live->spans && live->span[s].edge == e; s++)
            fprintf(out, "%.9g %.9g %d\n", live->span[s].from * scale, live->span[s].to * scale, row);
        row += live->edges.edge[e].measured;
    }
    fprintf(out, "END\n");
}

int live_plot(const struct live *live, enum plot_format format, const char *title, struct plot *plot) {
    const struct rows rows = rows_of(live);
    const int top = TOP_MARGIN + (title ? TITLE : 0), height = top + rows.count * rows.height + BOTTOM_MARGIN;
    TRY(plot_open(plot, format, FIGURE_WIDTH, height));
    FILE *out = plot->script;
    const struct figure_axis steps = axis_number("step", live->steps);
    const double last = live->steps > 0 ? live->steps * steps.scale : 1;
    fprintf(out,
            "unset key\nset border 0\nset tics nomirror scale 0 textcolor rgb '#777777'\nset format x '%%g%s'\n"
            "set xlabel 'step' offset 0,0.4 textcolor rgb '#777777'\nset xrange [0:%.9g]\nset yrange [-0.7:%g]\n"
            "set lmargin at screen %.6f\nset rmargin at screen %.6f\nset tmargin at screen %.6f\nset bmargin at screen %.6f\n",
            steps.unit, last, rows.count - 0.3, (double)LEFT_MARGIN / FIGURE_WIDTH,
            1 - (double)RIGHT_MARGIN / FIGURE_WIDTH, 1 - (double)top / height, (double)BOTTOM_MARGIN / height);
    if (title) {
        fprintf(out, "set title ");
        plot_quote(out, title);
        fputc('\n', out);
    }
    write_names(out, live, &rows);
    write_layers(out, live, last);
    write_bars(out, live, steps.scale);
    fprintf(out, "set style fill solid noborder\n"
                 "plot $all using 1:3:1:2:($3-0.1):($3+0.1) with boxxyerror fs transparent solid 0.25 noborder lc rgb '#777777', "
                 "$live using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fs solid noborder lc rgb '#3b82f6'\n");
    return GDN_OK;
}
