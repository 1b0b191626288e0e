/* Panels: first the maps of layers and sources, red above zero and blue below; then curves over layers. */
#include "train/learned/learned.h"

#include <math.h>

#include "kernels/base/status.h"

enum { COLUMNS = 4, PANEL_WIDTH = 320, PANEL_HEIGHT = 260, HEAD = 40 };

static double greatest(const struct learned *l) {
    double most = 0;
    for (int i = 0; i < l->count; i++) most = fmax(most, fabs(l->value[i].value));
    return most > 0 ? most : 1;
}

static void write_values(FILE *out, const struct learned *l, int number) {
    fprintf(out, "$v%d << END\n", number);
    for (int i = 0; i < l->count; i++) {
        const struct learned_value *v = &l->value[i];
        fprintf(out, "%d %d %.9g\n", v->layer, v->source, v->value);
    }
    fprintf(out, "END\n");
}

static void write_title(FILE *out, const struct learned *l) {
    fprintf(out, "set title ");
    plot_quote(out, l->name);
    fprintf(out, "\nset xlabel '%s'\nset ylabel '%s'\n", l->own ? "layer" : "source, -1: embedding",
            !l->own ? "layer" : l->number ? "" : "root mean square");
}

static void write_curve(FILE *out, const struct learned_set *set, int number) {
    fprintf(out, "set xrange [-0.5:%d.5]\nset autoscale y\nset offsets 0, 0, graph 0.1, graph 0.1\n"
                 "plot $v%d using 1:3 with linespoints pt 7 ps 0.5 lc rgb '#21618c'\n",
            set->layers - 1, number);
}

static void write_map(FILE *out, const struct learned_set *set, int number) {
    const struct learned *l = &set->learned[number];
    fprintf(out, "set xrange [-1.5:%d.5]\nset yrange [-0.5:%d.5]\nset offsets\nset cbrange [%.9g:%.9g]\n"
                 "set palette defined (%s0 '#f7f7f7', 1 '#b2182b')\n"
                 "plot $v%d using 2:1:(0.5):(0.5):3 with boxxyerror fs solid 1 noborder lc palette\n",
            set->layers - 2, set->layers - 1, l->number ? -greatest(l) : 0, greatest(l),
            l->number ? "-1 '#2166ac', " : "", number);
}

int learned_draw(const struct learned_set *set, const char *title, const char *path) {
    int columns = set->count < COLUMNS ? set->count : COLUMNS, rows = (set->count + columns - 1) / columns;
    struct plot plot;
    int status = plot_open(&plot, PLOT_SVG, columns * PANEL_WIDTH, HEAD + rows * PANEL_HEIGHT);
    if (!status) {
        FILE *out = plot.script;
        for (int i = 0; i < set->count; i++) write_values(out, &set->learned[i], i);
        fprintf(out, "unset key\nset cbtics scale 0.5\nset format cb '%%.2g'\nset format y '%%g'\nset multiplot layout %d,%d title ",
                rows, columns);
        plot_quote(out, title);
        fprintf(out, "\n");
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < set->count; i++) {
                if (set->learned[i].own != (pass == 1)) continue;
                write_title(out, &set->learned[i]);
                (pass ? write_curve : write_map)(out, set, i);
            }
        fprintf(out, "unset multiplot\n");
        status = plot_draw(&plot, path);
    }
    plot_close(&plot);
    return status;
}
