/* Lists of stored differences, with the files that cannot be read beside them. */
#include "train/deltas/list.h"

#include "kernels/base/append.h"
#include "kernels/base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(void) {
    return gdn_fail(GDN_INTERNAL, "out of memory for a list of stored differences");
}

static int add_damage(struct delta_survey *survey, const char *path, int64_t step, int layer) {
    struct delta_damage *more =
        realloc(survey->damage, (size_t)(survey->damaged + 1) * sizeof *survey->damage);
    if (!more) return no_memory();
    survey->damage = more;
    struct delta_damage *d = &more[survey->damaged];
    *d = (struct delta_damage){strdup(path), strdup(gdn_failure()), step, layer};
    survey->damaged++;
    gdn_failure_clear();
    return d->path && d->text ? 0 : no_memory();
}

int delta_survey_damaged(struct delta_survey *survey, const struct delta_entry *entry) {
    for (int i = 0; i < survey->damaged; i++) {
        if (strcmp(survey->damage[i].path, entry->path)) continue;
        gdn_failure_clear();
        return 0;
    }
    return add_damage(survey, entry->path, entry->step, entry->layer);
}

static int add_entry(struct delta_list *list, const struct delta_found *found, int distance) {
    struct delta_entry *more = realloc(list->entry, (size_t)(list->count + 1) * sizeof *more);
    if (!more) return no_memory();
    list->entry = more;
    more[list->count] = (struct delta_entry){strdup(found->path), found->step, found->layer, distance};
    return more[list->count++].path ? 0 : no_memory();
}

static int look_into(struct delta_survey *survey, const struct delta_choice *choice,
                     const struct delta_found *found) {
    int *distances, count;
    survey->files++;
    int status = delta_file_distances(found->path, found->step, found->layer, &distances, &count);
    if (status == GDN_INPUT) return add_damage(survey, found->path, found->step, found->layer);
    for (int i = 0; i < count && !status; i++)
        if (!choice || ranges_have(&choice->distance, distances[i]))
            status = add_entry(&survey->list, found, distances[i]);
    free(distances);
    return status;
}

/* Lists what is chosen, be it nothing. */
static int survey_all(const char *run, const struct delta_choice *choice, struct delta_survey *out) {
    struct delta_found *found;
    int count, status = 0;
    *out = (struct delta_survey){0};
    TRY(delta_find(run, choice, &found, &count));
    for (int i = 0; i < count && !status; i++)
        if (!choice || !choice->newest || found[i].step == found[count - 1].step)
            status = look_into(out, choice, &found[i]);
    delta_found_free(found, count);
    if (status) delta_survey_free(out);
    return status;
}

/* ---------------------------------------------------------------------------------------------- in words */

enum { RANGES_TEXT = 200 };

/* Puts the numbers that entries have, each once, into words: "1, 2, 5". */
static void write_numbers(const struct delta_list *list, int64_t (*number)(const struct delta_entry *),
                          char text[RANGES_TEXT]) {
    int64_t last = -1;
    size_t used = 0;
    text[0] = 0;
    for (;;) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < list->count; i++) {
            int64_t n = number(&list->entry[i]);
            if (n > last && n < next) next = n;
        }
        if (next == INT64_MAX) return;
        used = text_append(text, RANGES_TEXT, used, "%s%" PRId64, used ? ", " : "", next);
        if (used > RANGES_TEXT - 32) {
            strcpy(text + used, ", ...");
            return;
        }
        last = next;
    }
}

static int64_t step_in(const struct delta_entry *entry) {
    return entry->step;
}
static int64_t layer_in(const struct delta_entry *entry) {
    return entry->layer;
}
static int64_t distance_in(const struct delta_entry *entry) {
    return entry->distance;
}

static int none_chosen(const char *run) {
    struct delta_survey all;
    char steps[RANGES_TEXT], layers[RANGES_TEXT], distances[RANGES_TEXT];
    TRY(survey_all(run, NULL, &all));
    write_numbers(&all.list, step_in, steps);
    write_numbers(&all.list, layer_in, layers);
    write_numbers(&all.list, distance_in, distances);
    bool any = all.list.count, damage = all.damaged;
    delta_survey_free(&all);
    if (any)
        return gdn_fail(GDN_INPUT,
                        "%s has no stored difference of that step, layer and distance\n"
                        "stored are the steps %s; layers %s; distances %s",
                        run, steps, layers, distances);
    if (damage) return gdn_fail(GDN_INPUT, "%s has only damaged files of other steps and layers", run);
    return gdn_fail(GDN_INPUT,
                    "%s has no stored differences: there is no deltas/step_N/layer_N.h5; "
                    "delta_store.interval has a run store them",
                    run);
}

int delta_survey(const char *run, const struct delta_choice *choice, struct delta_survey *out) {
    TRY(survey_all(run, choice, out));
    if (out->list.count || out->damaged) return 0;
    delta_survey_free(out);
    return none_chosen(run);
}

void delta_survey_free(struct delta_survey *survey) {
    delta_list_free(&survey->list);
    for (int i = 0; i < survey->damaged; i++) {
        free(survey->damage[i].path);
        free(survey->damage[i].text);
    }
    free(survey->damage);
    *survey = (struct delta_survey){0};
}

int delta_list_open(const char *run, struct delta_list *out) {
    struct delta_survey survey;
    *out = (struct delta_list){0};
    TRY(delta_survey(run, NULL, &survey));
    int status = survey.damaged ? gdn_fail(GDN_INPUT, "%s", survey.damage[0].text) : 0;
    if (!status) {
        *out = survey.list;
        survey.list = (struct delta_list){0};
    }
    delta_survey_free(&survey);
    return status;
}

void delta_list_free(struct delta_list *list) {
    for (int i = 0; i < list->count; i++) free(list->entry[i].path);
    free(list->entry);
    *list = (struct delta_list){0};
}
