#include "train/plan/fit.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "model/model.h"
#include "train/config/batch.h"
#include "train/partition/divide.h"
#include "train/plan/plan.h"

enum {
    CHANGES = 10,
    WORD = 64,
    TIMES = 16,      /* as many ranks, at most */
    MESHES = 4096,   /* of a number of ranks that are looked at */
    PASSES = 100000, /* of all meshes that are planned, over all ranks; and layers */
};

/* Settings as the command line would have them. */
struct change {
    int count;
    char word[CHANGES][WORD];
    long ranks;
};

static void set(struct change *change, const char *key, long value) {
    snprintf(change->word[change->count++], WORD, "%s=%ld", key, value);
}

/* What the search has in hand. */
struct search {
    const struct fit *fit;
    const char *text; /* the configuration */
    const struct memory *planned;
    double state;       /* bytes of weights and gradients of the whole model */
    double moments;     /* and of its moments */
    double passes;      /* planned so far, to bound the time */
    struct change *out; /* the change under trial */
};

/* What the configuration has already is no advice. */
static void recompute_all(const struct train_config *train, struct change *change) {
    if (train->recompute != RECOMPUTE_FULL)
        snprintf(change->word[change->count++], WORD, "train.recompute=full");
    if (train->recompute_delta != RECOMPUTE_SAME)
        snprintf(change->word[change->count++], WORD, "train.recompute_delta=same");
    if (train->recompute_every > 1) set(change, "train.recompute_every", 1);
    if (train->recompute_delta_every) set(change, "train.recompute_delta_every", 0);
}

/* -------------------------------------------------------------------------------------------- one trial */

/* Of all that auto could choose, full needs least, or nearly. */
static void assume_min(struct train_config *train) {
    if (train->recompute == RECOMPUTE_AUTO) train->recompute = RECOMPUTE_FULL;
    if (train->recompute_delta == RECOMPUTE_AUTO) train->recompute_delta = RECOMPUTE_FULL;
}

/* Weights and gradients are divided among tensor and pipeline ranks, moments among all: no rank can do with
 * less than an even part. */
static bool could_hold(const struct search *s, long tensor, long pipeline, long ranks) {
    double min = s->state / (double)(tensor * pipeline) + s->moments / (double)ranks;
    return min <= (double)s->fit->available->bytes;
}

/* The axes of a mesh, of which the one that takes the rest has all that so many ranks leave. */
static struct axis_sizes axes_filled(const int size[AXES], long ranks) {
    struct axis_sizes axes;
    memcpy(axes.size, size, sizeof axes.size);
    axes.size[axes_rest()] = (int)(ranks / axes_each(size));
    return axes;
}

static int divide(const struct train_config *train, const struct axis_sizes *axes, long *share,
                  long *micro_batch) {
    return batch_divide(train, axes_batch(axes->size, 0).parts, share, micro_batch);
}

/* What planning a mesh takes: the schedule has each pass of each rank, and is made of every layer. */
static bool affordable(struct search *s, const struct config *config, long ranks) {
    const struct mesh_config *mesh = &config->mesh;
    const struct axis_sizes axes = axes_filled(mesh->size, ranks);
    long share, micro_batch;
    if (axes_ranks(axes.size) != ranks || divide(&config->train, &axes, &share, &micro_batch)) return false;
    double passes = (double)(share / micro_batch) * mesh->size[AXIS_PIPELINE] * mesh_chunks(mesh) +
                    config->model.num_layers;
    if (s->passes + passes > PASSES) return false;
    s->passes += passes;
    return true;
}

static bool config_fits(struct search *s, struct config *config, long ranks) {
    int64_t max, available = s->fit->available->bytes;
    config->train.memory = (double)available / GIB; /* for auto */
    assume_min(&config->train);
    return could_hold(s, config->mesh.size[AXIS_TENSOR], config->mesh.size[AXIS_PIPELINE], ranks) &&
           affordable(s, config, ranks) && !plan_max_memory(config, ranks, available, &max) &&
           max <= available;
}

static bool fits(struct search *s, const struct change *change) {
    char *overrides[CHANGES];
    struct config config;
    bool fit = false;
    for (int i = 0; i < change->count; i++) overrides[i] = (char *)change->word[i];
    if (!config_parse(s->text, "", overrides, change->count, &config)) {
        fit = config_fits(s, &config, change->ranks);
        config_free(&config);
    }
    gdn_failure_clear();
    return fit;
}

/* ------------------------------------------------------------------------------------------ on this mesh */

/* The largest micro-batch below the present one with which it fits, on top of `change`. */
static bool smaller_micro_batch(struct search *s, const struct change *change) {
    const struct config *config = s->fit->config;
    const struct axis_sizes axes = axes_filled(config->mesh.size, s->fit->ranks);
    long share, micro_batch;
    if (divide(&config->train, &axes, &share, &micro_batch)) return false;
    for (long count = share / micro_batch + 1; count <= share && count <= PASSES; count++) {
        if (share % count) continue;
        *s->out = *change;
        set(s->out, "train.micro_batch_size", share / count);
        if (fits(s, s->out)) return true;
    }
    return false;
}

static bool same_mesh(struct search *s, const struct change *none, const struct change *all) {
    if (s->fit->config->checkpoint.asynchronous == SAVE_BACKGROUND && s->planned->bytes[MEMORY_CHECKPOINT]) {
        *s->out = *none;
        snprintf(s->out->word[s->out->count++], WORD, "checkpoint.asynchronous=false");
        if (fits(s, s->out)) return true;
    }
    *s->out = *all;
    return (all->count && fits(s, all)) || smaller_micro_batch(s, none) || smaller_micro_batch(s, all);
}

/* ------------------------------------------------------------------------------------------ other meshes */

struct candidate {
    struct axis_sizes axes;
    double distance; /* from the present mesh: factors of two, over all axes */
};

static int nearer(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (fabs(x->distance - y->distance) > 1e-9) return x->distance < y->distance ? -1 : 1;
    int more = x->axes.size[AXIS_TENSOR], less = y->axes.size[AXIS_TENSOR]; /* sends more than a pipeline */
    return more < less ? -1 : more > less;
}

static double distance(const struct axis_sizes *from, const struct axis_sizes *to) {
    double sum = 0;
    for (int a = 0; a < axes_count(); a++) sum += fabs(log2((double)to->size[a] / from->size[a]));
    return sum;
}

/* The meshes of so many ranks that the model's shape, the batch and memory do not rule out, nearest first. */
static int list_meshes(const struct search *s, long ranks, struct candidate *out) {
    const struct config *config = s->fit->config;
    const struct axis_sizes now = axes_filled(config->mesh.size, s->fit->ranks);
    int count = 0;
    for (int tensor = 1; tensor <= ranks; tensor++) {
        if (ranks % tensor || model_conflict(&config->model, tensor)) continue;
        const int least = config->mesh.schedule == SCHEDULE_1F1B ? 1 : 2,
                  chunks = config->mesh.schedule == SCHEDULE_ZERO_BUBBLE_V ? 2 : 1;
        for (int pipeline = least; chunks * pipeline <= config->model.num_layers; pipeline++) {
            struct axis_sizes axes = now;
            axes.size[AXIS_TENSOR] = tensor, axes.size[AXIS_PIPELINE] = pipeline;
            if (ranks % axes_each(axes.size)) continue;
            axes = axes_filled(axes.size, ranks);
            const struct candidate next = {axes, distance(&now, &axes)};
            if (config->train.batch_size % axes_batch(axes.size, 0).parts ||
                !could_hold(s, tensor, pipeline, ranks))
                continue;
            if (ranks == s->fit->ranks && next.distance < 1e-9) continue; /* the present one */
            if (count < MESHES) out[count++] = next;
        }
    }
    qsort(out, (size_t)count, sizeof *out, nearer);
    return count;
}

static void set_mesh(const struct search *s, const int size[AXES]) {
    const struct mesh_config *now = &s->fit->config->mesh;
    long pipeline = size[AXIS_PIPELINE], stages = pipeline * now->interleave;
    struct change *out = s->out;
    for (int a = 0; a < axes_count(); a++)
        if (now->size[a] && now->size[a] != size[a]) set(out, axis_rows[a].key, size[a]);
    if (now->interleave > 1 && (pipeline == 1 || stages > s->fit->config->model.num_layers))
        set(out, "mesh.interleave", 1);
}

/* Any mesh of so many ranks, with as little else as possible. */
static bool other_mesh(struct search *s, long ranks, const struct change *ways, int count,
                       struct candidate *meshes) {
    int found = list_meshes(s, ranks, meshes);
    for (int way = 0; way < count; way++)
        for (int i = 0; i < found; i++) {
            *s->out = ways[way];
            s->out->ranks = ranks;
            set_mesh(s, meshes[i].axes.size);
            if (fits(s, s->out)) return true;
        }
    return false;
}

/* ----------------------------------------------------------------------------------------------- search */

/* First on this mesh, then on others of as many ranks, then on the fewest times as many. */
static bool find_with(struct search *s, struct candidate *meshes) {
    const struct train_config *train = &s->fit->config->train;
    struct change none = {.ranks = s->fit->ranks}, all = none;
    recompute_all(train, &all);
    if (same_mesh(s, &none, &all)) return true;
    struct change ways[] = {none, all, none, all};
    set(&ways[2], "train.micro_batch_size", 1);
    set(&ways[3], "train.micro_batch_size", 1);
    int count = train->micro_batch_size == 1 ? 2 : 4;
    for (long times = 1; times <= TIMES && s->fit->ranks * times <= PLAN_RANKS; times++)
        if (other_mesh(s, s->fit->ranks * times, ways, count, meshes)) return true;
    return false;
}

static int find(const struct fit *fit, const char *text, const struct memory *planned, struct change *out,
                bool *found) {
    struct search search = {.fit = fit, .text = text, .planned = planned, .out = out};
    struct candidate *meshes = calloc(MESHES, sizeof *meshes);
    int64_t parameters, moments;
    if (!meshes) return gdn_fail(GDN_INTERNAL, "out of memory for the search of a mesh");
    int status = plan_parameters(fit->config, &parameters, &moments);
    search.state = 2.0 * (double)parameters * (double)sizeof(real);
    search.moments = (double)moments * (double)sizeof(real);
    if (!status) *found = find_with(&search, meshes);
    free(meshes);
    return status;
}

/* "train.recompute: full, mesh.pipeline: 4 on 8 ranks with as much memory each" */
static void change_text(const struct fit *fit, const struct change *change, char *changes, size_t size) {
    FILE *out = fmemopen(changes, size, "w");
    if (!out) return;
    for (int i = 0; i < change->count; i++) {
        const char *word = change->word[i], *value = strchr(word, '=') + 1;
        fprintf(out, "%s%.*s: %s", i ? ", " : "", (int)(value - word - 1), word, value);
    }
    const char *between = change->count ? " " : "";
    if (change->ranks != fit->ranks)
        fprintf(out, "%son %ld ranks with as much memory each", between, change->ranks);
    fclose(out);
}

static int refuse(const struct fit *fit, const char *who, const struct memory *planned, const char *advice) {
    const struct available *a = fit->available;
    double needed = (double)memory_sum(planned);
    bool large = needed >= 2 * GIB;
    const char *unit = large ? "GiB" : "MiB";
    double size = large ? GIB : GIB / 1024;
    char parts[256], from[100];
    memory_text(planned, size, parts);
    if (a->given > 0)
        snprintf(from, sizeof from, "train.memory: %g GiB", a->given);
    else
        snprintf(from, sizeof from, "what its machine has free for it, less %g%% for code and libraries",
                 100 * MEMORY_RESERVE);
    return gdn_fail(GDN_INPUT, "%s needs %.2f %s of memory, but has %.2f (%s)\n  %s %s\n  %s", who,
                    needed / size, unit, (double)a->bytes / size, from, unit, parts, advice);
}

int fit_verify(const struct fit *fit, const char *who, const struct memory *planned) {
    if (memory_fits(fit->available, planned)) return 0;
    char *text = config_text(fit->config), changes[500] = "", advice[600];
    struct change change;
    bool found = false;
    if (!text) return gdn_fail(GDN_INTERNAL, "out of memory for the configuration's text");
    int status = find(fit, text, planned, &change, &found);
    free(text);
    TRY(status);
    if (found) change_text(fit, &change, changes, sizeof changes);
    snprintf(advice, sizeof advice,
             found ? "what would fit: %s"
                   : "nothing that was tried would fit (recomputation of all layers, smaller micro-batches, "
                     "other meshes of as many ranks and of up to 16 times as many)%s: use a smaller model",
             changes);
    return refuse(fit, who, planned, advice);
}
