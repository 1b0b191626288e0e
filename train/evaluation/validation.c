#include "train/evaluation/validation.h"

#include "kernels/base/status.h"
#include "train/evaluation/data_part.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

long validation_wanted(const struct train_config *train, long batches) {
    long wanted;
    if (__builtin_mul_overflow(batches, (long)train->batch_size, &wanted)) return LONG_MAX;
    return wanted > 0 ? wanted : LONG_MAX;
}

/* Room for everything that the configuration may have. */
static int reserve(const struct data_config *data, struct validation *out) {
    size_t max = (size_t)data->num_sources + (size_t)data->num_validations + 1;
    out->sampler = calloc(max, sizeof *out->sampler);
    out->part = calloc(max, sizeof *out->part);
    out->set = calloc(max, sizeof *out->set);
    if (out->sampler && out->part && out->set) return 0;
    return gdn_fail(GDN_INTERNAL, "out of memory for %zu validation sets", max);
}

/* A set of the parts `first` … `end` − 1. */
static int add_set(struct validation *v, const char *name, int first, int end) {
    struct validation_set *set = &v->set[v->sets++];
    *set = (struct validation_set){strdup(name), first, end};
    return set->name ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the names of validation sets");
}

/* Takes a sampler over, as a set of one part for each of its sources. */
static int add_sampler(struct validation *v, struct sampler *sampler, int sources, const char *name,
                       long wanted) {
    int first_part = v->parts;
    long first = 0;
    v->sampler[v->samplers++] = sampler;
    if (wanted >= sampler_sequences(sampler)) wanted = LONG_MAX;
    for (int k = 0; k < sources; k++) {
        const long all = sampler_share(sampler, k, LONG_MAX);
        v->part[v->parts++] =
            (struct validation_part){sampler, first, sampler_share(sampler, k, wanted), all};
        first += all;
    }
    return add_set(v, name, first_part, v->parts);
}

static int open_mixture(const struct config *config, struct validation *v) {
    const struct data_config *data = &config->data;
    const bool mixed = !data->train.count;
    const double fraction = data_held_out(data);
    struct sampler *sampler;
    TRY(gdn_fail_in(data_part_open(config, &data->train, false, 1 - fraction, 1, &sampler),
                    "data.validation_fraction %g with train.sequence_length %d", fraction,
                    config->train.sequence_length));
    TRY(add_sampler(v, sampler, mixed ? data->num_sources : 1, VALIDATION_NAME,
                    validation_wanted(&config->train, config->train.eval_batches)));
    if (!mixed || data->num_sources > VALIDATION_SOURCES) return 0;
    for (int k = 0; k < data->num_sources; k++) TRY(add_set(v, data->sources[k].name, k, k + 1));
    return 0;
}

static int open_file(const struct config *config, const char *key, const struct path_list *files,
                     const char *name, struct validation *v) {
    struct sampler *sampler;
    TRY(gdn_fail_in(data_part_open(config, files, false, 0, 1, &sampler), "%s with train.sequence_length %d",
                    key, config->train.sequence_length));
    return add_sampler(v, sampler, 1, name, validation_wanted(&config->train, config->train.eval_batches));
}

int validation_open(const struct config *config, struct validation *out) {
    const struct data_config *data = &config->data;
    *out = (struct validation){0};
    TRY(reserve(data, out));
    if (data->validation.count)
        TRY(open_file(config, "data.validation", &data->validation, VALIDATION_NAME, out));
    else if (data->validation_fraction > 0)
        TRY(open_mixture(config, out));
    for (int i = 0; i < data->num_validations; i++) {
        const struct source_config *given = &data->validations[i];
        char key[128];
        snprintf(key, sizeof key, "data.validations.%s", given->name);
        TRY(open_file(config, key, &given->path, given->name, out));
    }
    return 0;
}

int validation_few(const struct validation *all, long wanted, struct validation *out) {
    const struct validation_set *first = &all->set[0];
    const int parts = first->end - first->first;
    *out = (struct validation){.part = calloc((size_t)parts, sizeof *out->part),
                               .set = calloc(1, sizeof *out->set),
                               .bytes = all->bytes};
    if (!out->part || !out->set) return gdn_fail(GDN_INTERNAL, "out of memory for validation sequences");
    for (int k = 0; k < parts; k++) {
        struct validation_part part = all->part[first->first + k];
        const long share = wanted < sampler_sequences(part.sampler) ? sampler_share(part.sampler, k, wanted) : LONG_MAX;
        if (share < part.sequences) part.sequences = share;
        out->part[out->parts++] = part;
    }
    return add_set(out, first->name, 0, parts);
}

void validation_close(struct validation *validation) {
    for (int i = 0; i < validation->samplers; i++) sampler_close(validation->sampler[i]);
    for (int i = 0; i < validation->sets; i++) free(validation->set[i].name);
    free(validation->sampler);
    free(validation->part);
    free(validation->set);
    *validation = (struct validation){0};
}

/* "a, b, c" of what the sets are called; free it. */
static char *names_of(const struct validation *v) {
    char *names = NULL;
    size_t length;
    FILE *out = open_memstream(&names, &length);
    if (!out) return NULL;
    for (int i = 0; i < v->sets; i++) fprintf(out, "%s%s", i ? ", " : "", v->set[i].name);
    return fclose(out) ? (free(names), NULL) : names;
}

int validation_keep(struct validation *v, const char *name) {
    int found = 0;
    while (found < v->sets && strcmp(v->set[found].name, name)) found++;
    if (found == v->sets) {
        char *names = names_of(v);
        int status = gdn_fail(GDN_INPUT, "'%s' is none of the run's validation sets; these are: %s", name,
                              names ? names : "");
        free(names);
        return status;
    }
    const struct validation_set kept = v->set[found];
    for (int i = 0; i < v->sets; i++)
        if (i != found) free(v->set[i].name);
    v->parts = kept.end - kept.first;
    memmove(v->part, v->part + kept.first, (size_t)v->parts * sizeof *v->part);
    v->set[0] = (struct validation_set){kept.name, 0, v->parts};
    v->sets = 1;
    return 0;
}

long validation_sequences(const struct validation *validation, int set) {
    long sum = 0;
    for (int i = validation->set[set].first; i < validation->set[set].end; i++)
        sum += validation->part[i].sequences;
    return sum;
}

long validation_all(const struct validation *validation, int set) {
    long sum = 0;
    for (int i = validation->set[set].first; i < validation->set[set].end; i++)
        sum += validation->part[i].all;
    return sum;
}

long validation_max(const struct validation *validation) {
    long max = 0;
    for (int i = 0; i < validation->parts; i++)
        if (validation->part[i].sequences > max) max = validation->part[i].sequences;
    return max;
}
