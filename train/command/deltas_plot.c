/* gdn deltas plot: reads what is chosen and draws every figure. */
#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/deltas/each.h"
#include "train/deltas/figure.h"
#include "train/command/deltas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int no_memory(void) {
    return gdn_fail(GDN_INTERNAL, "out of memory for figures");
}

/* Draws DIRECTORY/NAME.svg; figure −1: the maps. */
static int draw(const struct deltas_settings *settings, const struct delta_set *set, int figure) {
    char *path;
    const char *name = figure < 0 ? "overview" : delta_figures[figure].name;
    if (asprintf(&path, "%s/%s.%s", settings->out, name, settings->format == PLOT_SVG ? "svg" : "png") < 0)
        return no_memory();
    int status = figure < 0 ? delta_maps_draw(set, settings->format, path)
                            : delta_figure_draw(&delta_figures[figure], set, settings->format, path);
    if (!status) printf("%s\n", path);
    free(path);
    return status;
}

static int draw_all(const struct deltas_settings *settings, const struct delta_set *set) {
    if (mkdir(settings->out, 0777) && errno != EEXIST)
        return gdn_fail(GDN_INPUT, "--out: %s cannot be created: %s", settings->out, strerror(errno));
    for (int i = -1; i < delta_figure_count; i++) TRY(draw(settings, set, i));
    return commands_finish_printing();
}

/* The run's path, or the end of a long one. */
static void name_set(struct delta_set *set, const char *run) {
    enum { MAX = 24 };
    size_t length = strlen(run);
    bool whole = length <= MAX;
    snprintf(set->title, sizeof set->title, "%s%s", whole ? "" : "...", whole ? run : run + length - MAX);
}

int deltas_plot(const struct deltas_settings *settings) {
    if (!settings->out) return gdn_fail(GDN_INPUT, "gdn deltas plot: --out DIRECTORY is missing");
    struct delta_survey survey;
    struct delta_set set = {0};
    name_set(&set, settings->run);
    TRY(delta_survey(settings->run, &settings->choice, &survey));
    int status = delta_set_read(&survey, &set);
    if (!status && set.count) status = draw_all(settings, &set);
    if (!status) status = deltas_report_damage(&survey);
    delta_set_free(&set);
    delta_survey_free(&survey);
    return status;
}
