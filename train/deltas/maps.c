/* Maps: a field for each layer and distance, coloured by a number of the newest step. For models with more
 * layers than panels can show. */
#include "train/deltas/figure.h"

#include "kernels/base/status.h"
#include "train/deltas/each.h"

#include <inttypes.h>
#include <math.h>

enum { MAP_LEFT = 70, MAP_TOP = 95, MAP_GAP = 130, MAP_BOTTOM = 50, MAX_TICS = 24 };

static double error_of(const struct delta_record *r) {
    return r->factors.error;
}
static double norm_of(const struct delta_record *r) {
    return r->factors.norm;
}
static double first_of(const struct delta_record *r) {
    double error = deltas_error_of(&r->factors, 1);
    return r->factors.norm > 0 ? fmax(0, 1 - error * error) : 0;
}
static double gate_of(const struct delta_record *r) {
    return r->gate_mean;
}

static const struct {
    const char *title;
    double (*number)(const struct delta_record *);
    double max; /* that it can be */
} maps[] = {
    {"relative error", error_of, 1},
    {"norm", norm_of, INFINITY},
    {"energy of rank 1", first_of, 1},
    {"mean of the gates", gate_of, 1},
};
enum { MAPS = sizeof maps / sizeof *maps };

struct sizes {
    int field_width, field_height, map_width, map_height, width, height;
};

static struct sizes sizes_of(const struct delta_set *set) {
    struct sizes s = {.field_width = set->distances <= 8    ? 52
                                     : set->distances <= 16 ? 24
                                                            : 8,
                      .field_height = set->layers <= 16   ? 26
                                      : set->layers <= 48 ? 13
                                                          : 6};
    s.map_width = set->distances * s.field_width;
    if (s.map_width < 110) s.map_width = 110; /* for the title above it */
    s.map_height = set->layers * s.field_height;
    if (s.map_height < 160) s.map_height = 160; /* for the numbers beside its colours */
    s.width = MAP_LEFT + MAPS * (s.map_width + MAP_GAP);
    s.height = MAP_TOP + s.map_height + MAP_BOTTOM;
    return s;
}

/* "set xtics ('1' 0, '2' 1, …)", not more than can be read. */
static void write_tics(FILE *out, char axis, const int *number, int count) {
    int every = (count + MAX_TICS - 1) / MAX_TICS;
    fprintf(out, "set %ctics (", axis);
    for (int i = 0; i < count; i += every) fprintf(out, "%s'%d' %d", i ? ", " : "", number[i], i);
    fprintf(out, ") scale 0\n");
}

/* A number in few characters. */
static const char *short_number(double x, char text[32]) {
    const char *format = x == 0      ? "%g"
                         : x < 0.001 ? "%.0e"
                         : x < 0.01  ? "%.2g"
                         : x < 100   ? "%.3g"
                         : x < 1e4   ? "%.0f"
                                     : "%.0e";
    snprintf(text, 32, format, x);
    return text;
}

/* Field by field: column, row, number, the colour that text has on it, and the text. */
static void write_fields(FILE *out, const struct delta_set *set, int map) {
    double min = INFINITY, max = -INFINITY;
    for (int i = 0; i < set->count; i++)
        if (set->record[i].step == set->newest) {
            double x = maps[map].number(&set->record[i]);
            min = fmin(min, x), max = fmax(max, x);
        }
    /* Not so narrow that numbers beside the colours look the same. */
    double widen = 0.05 * max - (max - min);
    if (widen > 0 || max == 0)
        min = fmax(0, min - fmax(widen, 1e-9)), max = fmin(maps[map].max, max + fmax(widen, 1e-9));
    fprintf(out, "$m%d << END\n", map);
    for (int l = 0; l < set->layers; l++)
        for (int d = 0; d < set->distances; d++) {
            const struct delta_record *r = delta_set_newest(set, set->layer[l], set->distance[d]);
            if (!r) continue;
            double x = maps[map].number(r);
            char text[32];
            fprintf(out, "%d %d %.9g %d %s\n", d, l, x, (x - min) / (max - min) > 0.6 ? 0 : 0xffffff,
                    short_number(x, text));
        }
    fprintf(out, "END\nset cbrange [%.9g:%.9g]\n", min, max);
}

static void write_map(FILE *out, const struct delta_set *set, const struct sizes *s, int map) {
    double left = MAP_LEFT + map * (s->map_width + MAP_GAP);
    fprintf(out,
            "set lmargin at screen %.6f\nset rmargin at screen %.6f\nset tmargin at screen %.6f\n"
            "set bmargin at screen %.6f\nset title '%s'\n",
            left / s->width, (left + s->map_width) / s->width, 1 - (double)MAP_TOP / s->height,
            (double)MAP_BOTTOM / s->height, maps[map].title);
    fprintf(out, "%s\n", map ? "unset ylabel" : "set ylabel 'layer'");
    fprintf(out, "set colorbox user origin %.6f,%.6f size %.6f,%.6f\n", (left + s->map_width + 8) / s->width,
            (double)MAP_BOTTOM / s->height, 10.0 / s->width, (double)s->map_height / s->height);
    write_fields(out, set, map);
    fprintf(out, "plot $m%d using 1:2:(0.5):(0.5):3 with boxxyerror fs solid 1 noborder lc palette", map);
    if (s->field_width > 40 && s->field_height > 20)
        fprintf(out, ", '' using 1:2:(strcol(5)):4 with labels font ',9' tc rgb variable");
    fprintf(out, "\nunset label 1\n");
}

int delta_maps_draw(const struct delta_set *set, enum plot_format format, const char *path) {
    struct sizes s = sizes_of(set);
    struct plot plot;
    int status = plot_open(&plot, format, s.width, s.height);
    if (!status) {
        FILE *out = plot.script;
        char title[256];
        snprintf(title, sizeof title, "%s: stored differences, step %" PRId64, set->title, set->newest);
        /* Viridis: its lightness rises evenly. */
        fprintf(out, "set palette defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n"
                     "set multiplot\nunset key\nset border 0\nset xlabel 'distance'\nset cbtics scale 0.5\n"
                     "set format cb '%%.3g'\nset label 1 ");
        plot_quote(out, title);
        fprintf(out, " at screen %.6f,%.6f left font ',14'\n", (double)MAP_LEFT / s.width,
                1 - 24.0 / s.height);
        fprintf(out, "set xrange [-0.5:%d.5]\nset yrange [-0.5:%d.5]\n", set->distances - 1, set->layers - 1);
        write_tics(out, 'x', set->distance, set->distances);
        write_tics(out, 'y', set->layer, set->layers);
        for (int map = 0; map < MAPS; map++) write_map(out, set, &s, map);
        fprintf(out, "unset multiplot\n");
        status = plot_draw(&plot, path);
    }
    plot_close(&plot);
    return status;
}
