/* What may not differ: from a checkpoint to the run that continues from it, and from rank to rank. */
#include "train/config/private.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

/* Sources of two mixtures, from the first on, that have the same weights. */
static int alike_weights(const struct data_config *a, const struct data_config *b) {
    int i = 0;
    while (i < a->num_sources && i < b->num_sources && a->sources[i].weight == b->sources[i].weight) i++;
    return i;
}

/* Whether the run's data or model would be the same. A mixture's files may move unless `exact`, its weights
 * may not change. */
static bool same(const struct key *key, bool exact, const struct config *a, const struct config *b) {
    if (key->type != KEY_SOURCES || exact) return value_same(a, b, key);
    const int alike = alike_weights(&a->data, &b->data);
    return alike == a->data.num_sources && alike == b->data.num_sources;
}

static void show_weight(const struct data_config *of, int i, char out[SHOWN]) {
    if (i < of->num_sources)
        snprintf(out, SHOWN, "%g", of->sources[i].weight);
    else
        snprintf(out, SHOWN, "not there");
}

/* Where two mixtures differ whose files may move: the first weight. */
static void find_weight(const struct key *key, const struct config *now, const struct config *before,
                        struct difference *out) {
    const int i = alike_weights(&now->data, &before->data);
    *out = (struct difference){.whole = false};
    snprintf(out->path, sizeof out->path, "%s[%d].weight", key->path, i);
    show_weight(&now->data, i, out->now);
    show_weight(&before->data, i, out->before);
}

/* What is compared: all keys; those that a resume needs and that are not `decided` [CONFIG_KEYS]; or those of
 * the model without its connections and rules. */
enum compared { COMPARE_ALL, COMPARE_RESUME, COMPARE_TRUNK };
struct comparison {
    enum compared what;
    const bool *decided;
    const char *owner; /* of the other configuration, */
    const char *why;   /* and what it is to differ */
};

static bool is_trunk(const struct key *key) {
    return !strncmp(key->path, "model.", 6) && strncmp(key->path, "model.delta.", 12) &&
           strcmp(key->path, "model.rules");
}

static bool is_compared(const struct comparison *c, const struct key *key) {
    if (c->what == COMPARE_TRUNK) return is_trunk(key);
    return c->what == COMPARE_ALL || (key->resume && !c->decided[key - config_keys]);
}

/* Fails with `why` and what differs. */
static int compare(const struct config *now, const struct config *before, const struct comparison *c) {
    char *differences = NULL;
    size_t length;
    FILE *out = open_memstream(&differences, &length);
    int differing = 0;
    for (int k = 0; out && k < CONFIG_KEYS; k++) {
        const struct key *key = &config_keys[k];
        if (!is_compared(c, key) || same(key, c->what == COMPARE_ALL, now, before)) continue;
        char *old = value_text(before, key), *new = value_text(now, key);
        struct difference d;
        if (key->type == KEY_SOURCES && c->what != COMPARE_ALL)
            find_weight(key, now, before, &d);
        else
            difference_find(key->path, new ? new : "?", old ? old : "?", &d);
        /* A line each for the first three, the rest in one line: five lines at most. */
        fprintf(out, "%s%s is %s, %s %s", differing < 4 ? "\n  " : "; ", d.path, d.now, c->owner, d.before);
        if (c->what == COMPARE_RESUME && key->asked)
            fprintf(out, " (to change it: --resume-with %s=%s)", key->path, new &&d.whole ? new : "…");
        differing++;
        free(old);
        free(new);
    }
    if (!out || fclose(out)) return gdn_fail(GDN_INTERNAL, "out of memory for comparing configurations");
    int status = differing > 0 ? gdn_fail(GDN_INPUT, "%s:%s", c->why, differences) : GDN_OK;
    free(differences);
    return status;
}

/* The same with a configuration as text. */
static int match(const struct config *now, const char *text, const struct comparison *c) {
    struct config before;
    TRY(config_read_saved(text, &before));
    int status = compare(now, &before, c);
    config_free(&before);
    return status;
}

int config_match_trunk(const struct config *now, const struct config *other, const char *owner) {
    char of[SHOWN], in[SHOWN + 8];
    snprintf(in, sizeof in, "in %s", shown(owner, of));
    return compare(
        now, other,
        &(struct comparison){COMPARE_TRUNK, NULL, in,
                             "the starting weights are of another model than the configuration says"});
}

int config_match_but(const struct config *now, const char *saved, const bool *decided) {
    return match(
        now, saved,
        &(struct comparison){
            COMPARE_RESUME, decided, "in the checkpoint",
            "the checkpoint was made with another configuration, which must stay as it was (or start "
            "afresh in another run directory)"});
}

int config_match_resume(const struct config *now, const char *saved) {
    bool decided[CONFIG_KEYS];
    for (int k = 0; k < CONFIG_KEYS; k++) decided[k] = config_keys[k].asked;
    return config_match_but(now, saved, decided);
}

int config_other_optimizer(const struct config *now, const char *saved, bool *other) {
    struct config before;
    TRY(config_read_saved(saved, &before));
    *other = before.train.optimizer != now->train.optimizer;
    config_free(&before);
    return GDN_OK;
}

int config_match_ranks(const struct config *mine, const char *first) {
    return match(
        mine, first,
        &(struct comparison){
            COMPARE_ALL, NULL, "on rank 0",
            "this rank read another configuration than rank 0; the same file and options are expected"});
}
