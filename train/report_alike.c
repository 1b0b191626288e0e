/* gdn report: whether runs' validation losses were measured alike. A loss on other data, on another part of
 * them or in sequences of another length is another quantity: two of them have no order. */
#include "train/report_page.h"

#include <string.h>

static bool same_paths(const struct path_list *a, const struct path_list *b) {
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++) same = !strcmp(a->paths[i], b->paths[i]);
    return same;
}

static bool same_sources(const struct data_config *a, const struct data_config *b) {
    bool same = a->num_sources == b->num_sources;
    for (int i = 0; same && i < a->num_sources; i++)
        same = same_paths(&a->sources[i].path, &b->sources[i].path);
    return same;
}

/* Sets of a name that both have. */
static bool same_sets(const struct data_config *a, const struct data_config *b) {
    for (int i = 0; i < a->num_validations; i++)
        for (int k = 0; k < b->num_validations; k++)
            if (!strcmp(a->validations[i].name, b->validations[k].name) &&
                !same_paths(&a->validations[i].path, &b->validations[k].path))
                return false;
    return true;
}

enum { KEYS = 8 };
static const char *const key[KEYS] = {
    "train.sequence_length", "train.eval_batches",       "train.batch_size", "data.validation",
    "data.validations",      "data.validation_fraction", "data.train",       "data.sources"};

/* Adds what makes the losses of `a` and `b` different quantities. The batch counts where only some batches
 * are read, the training data where a part of them is held out. */
static void compare(const struct config *a, const struct config *b, bool differs[KEYS]) {
    const struct data_config *x = &a->data, *y = &b->data;
    bool some = a->train.eval_batches > 0 || b->train.eval_batches > 0;
    bool part = x->validation_fraction > 0 || y->validation_fraction > 0;
    const bool now[KEYS] = {
        a->train.sequence_length != b->train.sequence_length,
        a->train.eval_batches != b->train.eval_batches,
        some && a->train.batch_size != b->train.batch_size,
        !same_paths(&x->validation, &y->validation),
        !same_sets(x, y),
        x->validation_fraction != y->validation_fraction,
        part && !same_paths(&x->train, &y->train),
        part && !same_sources(x, y),
    };
    for (int k = 0; k < KEYS; k++) differs[k] |= now[k];
}

/* True where any key differs between runs that have a validation loss and a configuration. */
static bool find(const struct report *report, bool differs[KEYS]) {
    const struct report_run *first = NULL;
    bool any = false;
    memset(differs, 0, KEYS * sizeof *differs);
    for (int r = 0; r < report->count; r++) {
        const struct report_run *run = &report->run[r];
        if (!run->configured || run->curve[CURVE_VALIDATION].count == 0) continue;
        if (first) compare(&first->config, &run->config, differs);
        if (!first) first = run;
    }
    for (int k = 0; k < KEYS; k++) any |= differs[k];
    return any;
}

bool report_alike(const struct report *report) {
    bool differs[KEYS];
    return !find(report, differs);
}

void report_tell_alike(const struct report *report) {
    bool differs[KEYS];
    if (!find(report, differs)) return;
    fprintf(report->page,
            "<p class=\"caution\">Validation losses of these runs cannot be compared, and which is "
            "least says nothing: they were measured differently (");
    const char *comma = "";
    for (int k = 0; k < KEYS; k++) {
        if (!differs[k]) continue;
        fprintf(report->page, "%s<code>%s</code>", comma, key[k]);
        comma = ", ";
    }
    fprintf(report->page,
            "). <code>gdn eval --data FILE</code> measures checkpoints on the same data.</p>\n");
}
