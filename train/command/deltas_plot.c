/* gdn deltas plot: reads what is chosen and draws every figure; of a run that prunes, which stores no differences, the one of
 * the connections in use. */
#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/deltas/each.h"
#include "train/deltas/figure.h"
#include "train/command/deltas.h"
#include "train/report/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int no_memory(void) {
    return gdn_fail(GDN_INTERNAL, "out of memory for figures");
}

/* DIRECTORY/NAME.svg, NULL without memory; free() it. */
static char *path_of(const struct deltas_settings *settings, const char *name) {
    char *path;
    return asprintf(&path, "%s/%s.%s", settings->out, name, settings->format == PLOT_SVG ? "svg" : "png") < 0 ? NULL : path;
}

static int make_directory(const struct deltas_settings *settings) {
    if (mkdir(settings->out, 0777) && errno != EEXIST)
        return gdn_fail(GDN_INPUT, "--out: %s cannot be created: %s", settings->out, strerror(errno));
    return 0;
}

/* Figure −1: the maps. */
static int draw(const struct deltas_settings *settings, const struct delta_set *set, int figure) {
    char *path = path_of(settings, figure < 0 ? "overview" : delta_figures[figure].name);
    if (!path) return no_memory();
    int status = figure < 0 ? delta_maps_draw(set, settings->format, path)
                            : delta_figure_draw(&delta_figures[figure], set, settings->format, path);
    if (!status) printf("%s\n", path);
    free(path);
    return status;
}

static int draw_all(const struct deltas_settings *settings, const struct delta_set *set) {
    TRY(make_directory(settings));
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

/* ------------------------------------------------------------------------------------------- of a run that prunes */

static int draw_live(const struct deltas_settings *settings, const struct live *live) {
    struct delta_set named;
    struct plot plot;
    char title[sizeof named.title + 128];
    name_set(&named, settings->run);
    snprintf(title, sizeof title, "%s: connections in use; %d of %d after %.0f steps", named.title, live->left,
             live->edges.measured, live->steps);
    TRY(make_directory(settings));
    char *path = path_of(settings, "connections");
    if (!path) return no_memory();
    int status = live_plot(live, settings->format, title, &plot);
    if (!status) status = plot_draw(&plot, path);
    if (!status) printf("%s\n", path);
    plot_close(&plot);
    free(path);
    return status ? status : commands_finish_printing();
}

static int plot_live(const struct deltas_settings *settings, const struct report_run *run) {
    const struct delta_choice *choice = &settings->choice;
    struct live live;
    if (choice->step.count || choice->layer.count || choice->distance.count)
        return gdn_fail(GDN_INPUT,
                        "--step, --layer and --distance choose stored differences, and %s, which prunes (train.prune), has "
                        "none: its figure is of all connections and steps",
                        settings->run);
    int status = live_of(run, &live);
    if (!status) status = draw_live(settings, &live);
    live_free(&live);
    return status;
}

/* Whether RUN/NAME is there. */
static bool run_has(const char *run, const char *name) {
    char *path;
    if (asprintf(&path, "%s/%s", run, name) < 0) return false;
    bool there = !access(path, F_OK);
    free(path);
    return there;
}

/* Reads the run, and draws the figure where it prunes. */
static int try_live(const struct deltas_settings *settings, bool *drawn) {
    struct report_run run;
    int status = report_run_read(settings->run, &run);
    *drawn = !status && live_has(&run);
    if (*drawn) status = plot_live(settings, &run);
    report_run_free(&run);
    return status;
}

int deltas_plot(const struct deltas_settings *settings) {
    if (!settings->out) return gdn_fail(GDN_INPUT, "gdn deltas plot: --out DIRECTORY is missing");
    bool drawn = false;
    if (!run_has(settings->run, "deltas") && run_has(settings->run, "metrics.jsonl")) TRY(try_live(settings, &drawn));
    if (drawn) return GDN_OK;
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
