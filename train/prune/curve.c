/* The loss over how many connections are kept, drawn. */
#include "train/prune/prune.h"
#include "train/plot/plot.h"

#include <math.h>

enum { WIDTH = 720, HEIGHT = 440 };

static void write_curve(const struct prune *prune, FILE *out) {
    fprintf(out, "$loss << END\n");
    for (int c = 0; c < prune->points; c++)
        fprintf(out, "%d %.9g\n", prune->curve[c].kept, prune->curve[c].loss);
    fprintf(out, "END\n");
    fprintf(out,
            "set grid lc rgb '#dddddd' lt 1 lw 0.5\nset border 3\nset tics nomirror\nset key top right\n"
            "set xlabel 'connections kept'\nset ylabel 'validation loss, nats a token'\n"
            "set title 'Loss without the least important of %d connections'\nset xrange [0:%d]\n",
            prune->count, prune->count);
    fprintf(out,
            "plot $loss using 1:2 with linespoints lc rgb '#0072B2' lw 1.6 pt 7 ps 0.55 notitle, "
            "%.9g with lines lc rgb '#000000' dt 2 title 'with all'",
            prune->loss);
    int kept = 0;
    for (int i = 0; i < prune->count; i++) kept += prune->edge[i].kept;
    if (!isnan(prune->kept_loss))
        fprintf(
            out,
            ", '+' using (%d):(%.9g) every ::0::0 with points lc rgb '#D55E00' pt 7 ps 1.2 title '%d kept'",
            kept, prune->kept_loss, kept);
    fputc('\n', out);
}

int prune_draw(const struct prune *prune, const char *path) {
    struct plot plot;
    int status = plot_open(&plot, PLOT_SVG, WIDTH, HEIGHT);
    if (!status) {
        write_curve(prune, plot.script);
        status = plot_draw(&plot, path);
    }
    plot_close(&plot);
    return status;
}
