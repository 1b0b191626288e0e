#include "train/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/batch.h"
#include "train/plan.h"

enum { CHANGES = 6, WORD = 64 };

/* Settings as the command line would have them. */
struct change {
    int count;
    char word[CHANGES][WORD];
    long ranks;
};

static void set(struct change *change, const char *key, long value) {
    snprintf(change->word[change->count++], WORD, "%s=%ld", key, value);
}

/* What the configuration has already is no advice. */
static void recompute_all(const struct train_config *train, struct change *change) {
    if (train->recompute != RECOMPUTE_FULL)
        snprintf(change->word[change->count++], WORD, "train.recompute=full");
    if (train->recompute_delta != RECOMPUTE_SAME)
        snprintf(change->word[change->count++], WORD, "train.recompute_delta=same");
    if (train->recompute_every > 1) set(change, "train.recompute_every", 1);
    if (train->recompute_delta_every) set(change, "train.recompute_delta_every", 0);
}

/* The greatest memory of a rank with the change, or −1 where it cannot be. */
static int64_t planned_with(const struct fit *fit, const char *text, const struct change *change) {
    char *overrides[CHANGES];
    struct config config;
    struct plan plan;
    const struct plan_machine machine = {.flops = 1, .bandwidth = {1, 1, 1}, .memory = 1};
    int64_t most = -1;
    for (int i = 0; i < change->count; i++) overrides[i] = (char *)change->word[i];
    if (!config_parse(text, "", overrides, change->count, &config)) {
        config.train.memory = (double)fit->available->bytes / GIB; /* for auto */
        if (!plan_create(&config, change->ranks, &machine, &plan)) {
            for (long r = 0; r < plan.ranks; r++) {
                int64_t bytes = memory_sum(&plan.rank[r].memory);
                if (bytes > most) most = bytes;
            }
            plan_free(&plan);
        }
        config_free(&config);
    }
    gdn_failure_clear();
    return most;
}

static bool fits(const struct fit *fit, const char *text, const struct change *change) {
    int64_t most = planned_with(fit, text, change);
    return most >= 0 && most <= fit->available->bytes;
}

/* The largest micro-batch below the present one with which it fits, on top of `change`. */
static bool smaller_micro(const struct fit *fit, const char *text, long data, const struct change *change,
                          struct change *out) {
    long share, micro;
    if (batch_divide(&fit->config->train, (int)data, &share, &micro)) return false;
    for (long size = micro - 1; size > 0; size--) {
        if (share % size) continue;
        *out = *change;
        set(out, "train.micro_batch_size", size);
        if (fits(fit, text, out)) return true;
    }
    return false;
}

/* The fewest times as many ranks on one axis, the pipeline first. */
static bool more_ranks(const struct fit *fit, const char *text, long data, const struct change *change,
                       struct change *out) {
    const struct mesh_config *mesh = &fit->config->mesh;
    const struct {
        const char *key;
        long size;
    } axes[] = {{"mesh.pipeline", mesh->pipeline}, {"mesh.tensor", mesh->tensor}, {"mesh.data", data}};
    for (long times = 2; times <= 16; times *= 2)
        for (int i = 0; i < 3; i++) {
            *out = *change;
            set(out, axes[i].key, axes[i].size * times);
            out->ranks = fit->ranks * times;
            if (fits(fit, text, out)) return true;
        }
    return false;
}

/* The first of these that fits; false: none. */
static bool find(const struct fit *fit, const char *text, const struct memory *planned, struct change *out) {
    const struct mesh_config *mesh = &fit->config->mesh;
    long data = fit->ranks / mesh->tensor / mesh->pipeline;
    struct change none = {.ranks = fit->ranks}, all = none, both;
    recompute_all(&fit->config->train, &all);
    both = all;
    set(&both, "train.micro_batch_size", 1);
    *out = none;
    if (fit->config->checkpoint.asynchronous == SAVE_BACKGROUND && planned->bytes[MEMORY_CHECKPOINT]) {
        snprintf(out->word[out->count++], WORD, "checkpoint.asynchronous=false");
        if (fits(fit, text, out)) return true;
    }
    *out = all;
    if (fits(fit, text, &all)) return true;
    if (smaller_micro(fit, text, data, &none, out) || smaller_micro(fit, text, data, &all, out)) return true;
    return more_ranks(fit, text, data, &none, out) || more_ranks(fit, text, data, &all, out) ||
           more_ranks(fit, text, data, &both, out);
}

/* "train.recompute: full, mesh.pipeline: 4 on 8 ranks with as much memory each" */
static void change_words(const struct fit *fit, const struct change *change, char *words, size_t size) {
    FILE *out = fmemopen(words, size, "w");
    if (!out) return;
    for (int i = 0; i < change->count; i++) {
        const char *word = change->word[i], *value = strchr(word, '=') + 1;
        fprintf(out, "%s%.*s: %s", i ? ", " : "", (int)(value - word - 1), word, value);
    }
    if (change->ranks != fit->ranks) fprintf(out, " on %ld ranks with as much memory each", change->ranks);
    fclose(out);
}

static int refuse(const struct fit *fit, const char *who, const struct memory *planned, const char *advice) {
    const struct available *a = fit->available;
    bool large = (double)memory_sum(planned) >= 2 * GIB;
    const char *unit = large ? "GiB" : "MiB";
    double size = large ? GIB : GIB / 1024;
    char parts[256], from[100];
    memory_words(planned, size, parts);
    if (a->given > 0)
        snprintf(from, sizeof from, "train.memory: %g GiB", a->given);
    else
        snprintf(from, sizeof from, "what its machine has free for it, less %g%% for code and libraries",
                 100 * MEMORY_RESERVE);
    return gdn_fail(GDN_INPUT, "%s needs %.2f %s of memory, but has %.2f (%s)\n  %s %s\n  %s", who,
                    (double)memory_sum(planned) / size, unit, (double)a->bytes / size, from, unit, parts,
                    advice);
}

int fit_check(const struct fit *fit, const char *who, const struct memory *planned) {
    if (memory_fits(fit->available, planned)) return 0;
    char *text = config_text(fit->config), words[300] = "", advice[400];
    struct change change;
    if (!text) return gdn_fail(GDN_INTERNAL, "out of memory for the configuration's text");
    bool found = find(fit, text, planned, &change);
    free(text);
    if (found) change_words(fit, &change, words, sizeof words);
    snprintf(advice, sizeof advice,
             found
                 ? "what would fit: %s"
                 : "nothing that was tried would fit (recomputation of all layers, smaller micro-batches, up "
                   "to 16 times as many ranks)%s: use a smaller model",
             words);
    return refuse(fit, who, planned, advice);
}
