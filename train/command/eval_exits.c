#include "train/command/eval_exits.h"

#include "kernels/base/status.h"
#include "train/command/json_line.h"
#include "train/plot/plot.h"

void exits_print(const struct exits_report *report, FILE *out) {
    const struct exits_found *found = report->found;
    fprintf(out, "\n  exit at layer          loss  agreement   for %g agreement\n", report->agreement);
    for (int e = 0; e < found->count; e++) {
        double leave;
        int threshold = exit_threshold(&found->exit[e], report->agreement, &leave);
        fprintf(out, "  %13d  %12.9g   %8.4f   ", report->model->exit.layers[e], exit_loss_of(&found->exit[e]),
                exit_agreement(&found->exit[e]));
        if (threshold > CONFIDENCES)
            fprintf(out, "no confidence suffices\n");
        else
            fprintf(out, "confidence %.3f, which %.1f%% of tokens have\n", threshold / (double)CONFIDENCES,
                    100 * leave);
    }
    fprintf(out, "  %13d  %12.9g          1   the last layer\n", report->model->num_layers - 1, found->loss);
    fprintf(out, "\n  gdn generate --exit ");
    for (int e = 0; e < found->count; e++) {
        double leave;
        int threshold = exit_threshold(&found->exit[e], report->agreement, &leave);
        fprintf(out, threshold > CONFIDENCES ? "%s2" : "%s%.3f", e ? "," : "", threshold / (double)CONFIDENCES);
    }
    fputc('\n', out);
}

json_t *exits_json(const struct exits_report *report) {
    const struct exits_found *found = report->found;
    json_t *list = json_array();
    for (int e = 0; e < found->count; e++) {
        double leave;
        int threshold = exit_threshold(&found->exit[e], report->agreement, &leave);
        json_array_append_new(
            list, json_pack("{s:i, s:o, s:o, s:o, s:o}", "layer", report->model->exit.layers[e], "loss",
                            json_finite(exit_loss_of(&found->exit[e])), "agreement",
                            json_finite(exit_agreement(&found->exit[e])), "threshold",
                            threshold > CONFIDENCES ? json_null() : json_real(threshold / (double)CONFIDENCES),
                            "leave", json_finite(leave)));
    }
    return list;
}

static void write_points(const struct exits_report *report, FILE *out) {
    const struct exits_found *found = report->found;
    fprintf(out, "$exits << END\n");
    for (int e = 0; e < found->count; e++)
        fprintf(out, "%d %.9g %.9g\n", report->model->exit.layers[e] + 1, exit_loss_of(&found->exit[e]),
                exit_agreement(&found->exit[e]));
    fprintf(out, "%d %.9g 1\nEND\n", report->model->num_layers, found->loss);
}

int exits_draw(const struct exits_report *report, const char *path) {
    struct plot plot;
    int status = plot_open(&plot, PLOT_SVG, 640, 400);
    if (!status) {
        write_points(report, plot.script);
        fprintf(plot.script,
                "set xlabel 'layers computed'\nset ylabel 'loss (nats a token)'\nset y2label 'agreement'\n"
                "set y2range [0:1]\nset y2tics\nset ytics nomirror\nset xrange [0:%d]\nset grid\nset key center right\n"
                "plot $exits using 1:2 with linespoints title 'loss', "
                "$exits using 1:3 axes x1y2 with linespoints title 'agreement with the last layer'\n",
                report->model->num_layers);
        status = plot_draw(&plot, path);
    }
    plot_close(&plot);
    return status;
}
