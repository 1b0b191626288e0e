/* What may change from a checkpoint to the run that goes on from it, where --resume-with asks for it. */
#include "train/config/private.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/append.h"
#include "kernels/base/status.h"

/* Whether `change`, KEY=VALUE, is of this key. */
static bool is_of(const char *change, const struct key *key) {
    size_t length = strcspn(change, "=");
    return change[length] && strlen(key->path) == length && !strncmp(change, key->path, length);
}

int config_validate_changes(char *const *changes, int count) {
    for (int i = 0; i < count; i++) {
        char allowed[256] = "", name[SHOWN];
        bool known = false;
        size_t used = 0;
        for (int k = 0; k < CONFIG_KEYS; k++) {
            if (!config_keys[k].asked) continue;
            known |= is_of(changes[i], &config_keys[k]);
            used = text_append(allowed, sizeof allowed, used, "%s%s=…", used ? ", " : "", config_keys[k].path);
        }
        if (!known)
            return gdn_fail(GDN_INPUT, "--resume-with %s: one of these is expected: %s",
                            shown(changes[i], name), allowed);
    }
    return GDN_OK;
}

/* Whether one of the changes is of the key. */
static bool among(char *const *changes, int count, const struct key *key) {
    for (int i = 0; i < count; i++)
        if (is_of(changes[i], key)) return true;
    return false;
}

/* Whether a change says what becomes of the key. Batch size and ramp are one setting: either replaces
 * both. */
static bool given(const struct resume *resume, const struct key *key) {
    const char *pair[] = {KEY_PATH(train.batch_size), KEY_PATH(train.batch_ramp)};
    for (int i = 0; i < 2; i++)
        if (!strcmp(key->path, pair[i]) && among(resume->changes, resume->count, key_find(pair[1 - i])))
            return true;
    return among(resume->changes, resume->count, key);
}

/* The one of them that was not changed follows the other. */
static void join_batches(struct train_config *train, char *const *changes, int count) {
    bool size = among(changes, count, key_find(KEY_PATH(train.batch_size))),
         ramp = among(changes, count, key_find(KEY_PATH(train.batch_ramp)));
    if (size && !ramp) train->num_ramp = 0;
    if (ramp && !size && train->num_ramp)
        train->batch_size = (int)train->batch_ramp[train->num_ramp - 1][RAMP_SIZE];
}

/* What is differently now than in `before`, and what is as the configuration was when it was changed. */
struct settings {
    struct config before; /* in the checkpoint */
    struct config said;   /* by the configuration, when --resume-with was last there */
    struct config now;    /* by the configuration */
};

static int copy_value(struct config *to, const struct config *from, const struct key *key) {
    char *text = value_text(from, key);
    struct key same = *key;
    same.value = text;
    int status =
        text ? value_default(to, &same) : gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
    free(text);
    return status;
}

int config_change(struct config *now, char *const *changes, int count) {
    struct reading reading = {.config = now, .name = "the configuration with --resume-with"};
    struct config checked;
    for (int i = 0; i < count; i++) TRY(read_override(&reading, changes[i], true));
    join_batches(&now->train, changes, count);
    char *text = config_text(now);
    if (!text) return gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
    int status = config_parse(text, reading.name, NULL, 0, &checked);
    free(text);
    TRY(status);
    config_free(now);
    *now = checked;
    return GDN_OK;
}

/* A line of the key: that it changes now, or that it has been changed, unless who asks knows. */
static void tell(const struct settings *s, const struct config *result, const struct resume *resume,
                 const struct key *key, FILE *out) {
    char *before = value_text(&s->before, key), *now = value_text(&s->now, key),
         *after = value_text(result, key);
    if (before && now && after) {
        if (strcmp(before, after))
            fprintf(out, "gdn: note: from step %lld on %s is %s, before it was %s\n", (long long)resume->step,
                    key->path, after, before);
        else if (strcmp(now, after) && !given(resume, key))
            fprintf(out, "gdn: note: %s stays %s, as --resume-with has set it; the configuration says %s\n",
                    key->path, after, now);
    }
    free(before);
    free(now);
    free(after);
}

/* Batch size and ramp are one setting: either was asked for, or both are as they were. */
static void decide_batches(const struct settings *s, const struct resume *resume, bool decided[CONFIG_KEYS]) {
    const struct key *size = key_find("train.batch_size"), *ramp = key_find("train.batch_ramp");
    decided[size - config_keys] = decided[ramp - config_keys] =
        given(resume, size) || given(resume, ramp) ||
        (value_same(&s->now, &s->said, size) && value_same(&s->now, &s->said, ramp));
}

static int take(struct settings *s, struct config *now, const struct resume *resume, struct resumed *out) {
    bool decided[CONFIG_KEYS];
    for (int k = 0; k < CONFIG_KEYS; k++) {
        const struct key *key = &config_keys[k];
        decided[k] = key->asked && (given(resume, key) || value_same(&s->now, &s->said, key));
    }
    decide_batches(s, resume, decided);
    TRY(config_match_but(now, resume->saved, decided));
    out->configured = resume->count        ? config_text_of(now, true)
                      : resume->configured ? strdup(resume->configured)
                                           : NULL;
    if ((resume->count || resume->configured) && !out->configured)
        return gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
    for (int k = 0; k < CONFIG_KEYS; k++)
        if (config_keys[k].asked) TRY(copy_value(now, &s->before, &config_keys[k]));
    TRY(config_change(now, resume->changes, resume->count));
    out->length = s->before.train.sequence_length;
    size_t length;
    FILE *stream = open_memstream(&out->text, &length);
    if (!stream) return gdn_fail(GDN_INTERNAL, "out of memory for a message");
    for (int k = 0; k < CONFIG_KEYS; k++) {
        if (!config_keys[k].asked) continue;
        out->changed |= !value_same(&s->before, now, &config_keys[k]);
        tell(s, now, resume, &config_keys[k], stream);
    }
    return fclose(stream) ? gdn_fail(GDN_INTERNAL, "out of memory for a message") : GDN_OK;
}

int config_resume(struct config *now, const struct resume *resume, struct resumed *out) {
    struct settings s = {0};
    *out = (struct resumed){0};
    TRY(config_read_saved(resume->saved, &s.before));
    char *text = config_text(now);
    int status = text ? config_read_saved(text, &s.now)
                      : gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
    free(text);
    if (!status) {
        status = config_read_saved(resume->configured ? resume->configured : resume->saved, &s.said);
        if (!status) {
            status = take(&s, now, resume, out);
            config_free(&s.said);
        }
        config_free(&s.now);
    }
    config_free(&s.before);
    if (status) resumed_free(out);
    return status;
}

void resumed_free(struct resumed *resumed) {
    free(resumed->configured);
    free(resumed->text);
    *resumed = (struct resumed){0};
}
