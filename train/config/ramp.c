/* The key whose value is a list of pairs: train.batch_ramp. */
#include "train/config/private.h"

#include <limits.h>
#include <string.h>

#include "kernels/base/status.h"

/* One entry of train.batch_ramp, behind the one before. */
static int read_entry(void *pair_of, int index, const struct key *key, const char *label,
                      struct fy_node *node, const struct place *list) {
    long *entry = pair_of;
    const long *before = index ? entry - 2 : NULL;
    struct place place = place_of(node, list);
    const struct key number[2] = {
        [RAMP_STEP] = {.type = KEY_LONG, .min = 0, .max = (double)LONG_MAX},
        [RAMP_SIZE] = {.type = KEY_LONG, .min = key->min, .max = key->max},
    };
    char text[SHOWN], name[64];
    struct fy_node *pair;
    TRY(yaml_resolve(node, &place, label, &pair));
    if (!pair || !fy_node_is_sequence(pair) || fy_node_sequence_item_count(pair) != 2)
        return fail_at(&place, "%s is %s: [STEP, SEQUENCES] is expected", label, yaml_shown(pair, text));
    void *iterator = NULL;
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s[%d]", label, i);
        TRY(entry_read(&entry[i], &number[i], name, fy_node_sequence_iterate(pair, &iterator), &place));
    }
    if (!before && entry[RAMP_STEP])
        return fail_at(&place, "%s begins at step %ld: the first entry begins at step 0", label,
                       entry[RAMP_STEP]);
    if (before && entry[RAMP_STEP] <= before[RAMP_STEP])
        return fail_at(&place,
                       "%s begins at step %ld, and the entry before it at %ld: increasing steps are expected",
                       label, entry[RAMP_STEP], before[RAMP_STEP]);
    return GDN_OK;
}

static void write_entry(const void *pair, FILE *out) {
    const long *entry = pair;
    fprintf(out, "[%ld, %ld]", entry[RAMP_STEP], entry[RAMP_SIZE]);
}

const struct entries ramp_entries = {RAMP_MAX, sizeof(long[2]), read_entry, write_entry};
