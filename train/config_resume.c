/* What may not change between a checkpoint and the run that continues from it. */
#include "train/config_private.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

/* Whether the run's data or model would be another one. A mixture's files may move, its weights may not
 * change. */
static bool same(const struct key *key, const struct config *a, const struct config *b) {
    if (key->type == KEY_SOURCES) {
        if (a->data.num_sources != b->data.num_sources) return false;
        for (int i = 0; i < a->data.num_sources; i++)
            if (a->data.sources[i].weight != b->data.sources[i].weight) return false;
        return true;
    }
    char *left = value_text(a, key), *right = value_text(b, key);
    bool equal = left && right && !strcmp(left, right);
    free(left);
    free(right);
    return equal;
}

int config_match_resume(const struct config *now, const char *saved) {
    struct config before;
    TRY(config_read_saved(saved, &before));
    char *words = NULL;
    size_t length;
    FILE *out = open_memstream(&words, &length);
    int differing = 0;
    for (int k = 0; out && k < CONFIG_KEYS; k++) {
        const struct key *key = &config_keys[k];
        if (!key->resume || same(key, now, &before)) continue;
        char *old = value_text(&before, key), *new = value_text(now, key), old_shown[SHOWN], new_shown[SHOWN];
        /* A line each for the first three, the rest in one line: five lines at most. */
        fprintf(out, "%s%s is %s, in the checkpoint %s", differing < 4 ? "\n  " : "; ", key->path,
                shown(new ? new : "?", new_shown), shown(old ? old : "?", old_shown));
        differing++;
        free(old);
        free(new);
    }
    config_free(&before);
    if (!out || fclose(out)) return gdn_fail(GDN_INTERNAL, "out of memory for comparing configurations");
    int status = GDN_OK;
    if (differing > 0)
        status = gdn_fail(
            GDN_INPUT,
            "the checkpoint was made with another configuration, which must stay as it was (or start afresh "
            "in another run directory):%s",
            words);
    free(words);
    return status;
}
