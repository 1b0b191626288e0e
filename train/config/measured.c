/* What makes validation losses different quantities: other data, another part of them, sequences of another
 * length. Two of them have no order. */
#include "train/config/private.h"

#include <string.h>

#include "kernels/base/status.h"

static bool same_paths(const struct path_list *a, const struct path_list *b) {
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++) same = !strcmp(a->paths[i], b->paths[i]);
    return same;
}

/* Weights say which sequences are read where not all are. */
static bool same_sources(const struct data_config *a, const struct data_config *b, bool some) {
    bool same = a->num_sources == b->num_sources;
    for (int i = 0; same && i < a->num_sources; i++)
        same = same_paths(&a->sources[i].path, &b->sources[i].path) &&
               (!some || a->sources[i].weight == b->sources[i].weight);
    return same;
}

/* Sets of a name that both have, and which is the first, where that is one of these. */
static bool same_sets(const struct data_config *a, const struct data_config *b) {
    bool first = !a->validation.count && !b->validation.count && a->validation_fraction == 0 &&
                 b->validation_fraction == 0 && a->num_validations && b->num_validations;
    if (first && strcmp(a->validations[0].name, b->validations[0].name)) return false;
    for (int i = 0; i < a->num_validations; i++)
        for (int k = 0; k < b->num_validations; k++)
            if (!strcmp(a->validations[i].name, b->validations[k].name) &&
                !same_paths(&a->validations[i].path, &b->validations[k].path))
                return false;
    return true;
}

const char *const measure_key[MEASURE_KEYS] = {
    "train.sequence_length", "train.eval_batches",       "train.batch_size", "data.validation",
    "data.validations",      "data.validation_fraction", "data.train",       "data.sources"};

/* The batch counts where only some batches are read, the training data where a part of them is held out. */
void config_measured(const struct config *a, const struct config *b, bool differs[MEASURE_KEYS]) {
    const struct data_config *x = &a->data, *y = &b->data;
    bool some = a->train.eval_batches > 0 || b->train.eval_batches > 0;
    bool part = x->validation_fraction > 0 || y->validation_fraction > 0;
    const bool now[MEASURE_KEYS] = {
        a->train.sequence_length != b->train.sequence_length,
        a->train.eval_batches != b->train.eval_batches,
        some && a->train.batch_size != b->train.batch_size,
        !same_paths(&x->validation, &y->validation),
        !same_sets(x, y),
        x->validation_fraction != y->validation_fraction,
        part && !same_paths(&x->train, &y->train),
        part && !same_sources(x, y, some),
    };
    for (int k = 0; k < MEASURE_KEYS; k++) differs[k] |= now[k];
}

int config_measured_as(const struct config *now, const char *saved, bool *comparable) {
    struct config before;
    bool differs[MEASURE_KEYS] = {false};
    TRY(config_read_saved(saved, &before));
    config_measured(&before, now, differs);
    config_free(&before);
    *comparable = true;
    for (int k = 0; k < MEASURE_KEYS; k++)
        *comparable &=
            !differs[k] || !strcmp(measure_key[k], "data.train") || !strcmp(measure_key[k], "data.sources");
    return GDN_OK;
}
