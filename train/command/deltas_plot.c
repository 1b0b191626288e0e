/* gdn deltas plot: reads what is chosen and draws every figure. */
#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/deltas/figure.h"
#include "train/deltas/each.h"
#include "train/command/deltas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int no_memory(void) {
    return gdn_fail(GDN_INTERNAL, "out of memory for figures");
}

/* Keeps a record without the two large factors. */
static int keep(void *context, const struct delta_entry *entry, struct delta_record *record, int element) {
    struct delta_set *set = context;
    (void)entry, (void)element;
    struct delta_record *more = realloc(set->record, (size_t)(set->count + 1) * sizeof *more);
    if (!more) return no_memory();
    set->record = more;
    set->record[set->count] = *record;
    set->record[set->count].factors.u = set->record[set->count].factors.vt = NULL;
    record->factors.sigma = NULL; /* ours now */
    set->count++;
    return 0;
}

static void set_free(struct delta_set *set) {
    for (int i = 0; i < set->count; i++) delta_record_free(&set->record[i]);
    free(set->record);
    free(set->layer);
    free(set->distance);
}

static int by_value(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Sorts and leaves each number once. */
static int unique(int *number, int count) {
    int left = 0;
    qsort(number, (size_t)count, sizeof *number, by_value);
    for (int i = 0; i < count; i++)
        if (left == 0 || number[i] != number[left - 1]) number[left++] = number[i];
    return left;
}

static int index_set(struct delta_set *set) {
    set->layer = malloc((size_t)(set->count + 1) * sizeof *set->layer);
    set->distance = malloc((size_t)(set->count + 1) * sizeof *set->distance);
    if (!set->layer || !set->distance) return no_memory();
    for (int i = 0; i < set->count; i++) {
        set->layer[i] = set->record[i].layer, set->distance[i] = set->record[i].distance;
        if (i == 0 || set->record[i].step != set->newest) set->steps++;
        set->newest = set->record[i].step; /* they are in this order */
    }
    set->layers = unique(set->layer, set->count);
    set->distances = unique(set->distance, set->count);
    return 0;
}

const struct delta_record *delta_set_newest(const struct delta_set *set, int layer, int distance) {
    for (int i = set->count; i-- > 0 && set->record[i].step == set->newest;)
        if (set->record[i].layer == layer && set->record[i].distance == distance) return &set->record[i];
    return NULL;
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
    enum { MOST = 24 };
    size_t length = strlen(run);
    bool whole = length <= MOST;
    snprintf(set->title, sizeof set->title, "%s%s", whole ? "" : "...", whole ? run : run + length - MOST);
}

int deltas_plot(const struct deltas_settings *settings) {
    if (!settings->out) return gdn_fail(GDN_INPUT, "gdn deltas plot: --out DIRECTORY is missing");
    struct delta_survey survey;
    struct delta_set set = {0};
    name_set(&set, settings->run);
    TRY(delta_survey(settings->run, &settings->choice, &survey));
    int status = deltas_each(&survey, keep, &set);
    if (!status && set.count) status = index_set(&set);
    if (!status && set.count) status = draw_all(settings, &set);
    if (!status) status = deltas_report_damage(&survey);
    set_free(&set);
    delta_survey_free(&survey);
    return status;
}
