/* The key whose value is a list of pairs: train.batch_ramp. */
#include "train/config/private.h"

#include <limits.h>
#include <string.h>

#include "kernels/base/status.h"

/* One entry of train.batch_ramp, behind the one before. */
static int read_entry(long entry[2], const long *before, const char *label, struct fy_node *node,
                      const struct key *key, const struct place *list) {
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

int ramp_read(void *base, const struct key *key, const char *label, struct fy_node *list,
              const struct place *place) {
    long(*entry)[2] = (void *)((char *)base + key->offset);
    int length = fy_node_sequence_item_count(list);
    if (length > RAMP_MAX)
        return fail_at(place, "%s has %d entries: at most %d are allowed", label, length, RAMP_MAX);
    memset(entry, 0, RAMP_MAX * sizeof *entry);
    void *iterator = NULL;
    for (int i = 0; i < length; i++) {
        char name[48];
        snprintf(name, sizeof name, "%s[%d]", label, i);
        TRY(read_entry(entry[i], i ? entry[i - 1] : NULL, name, fy_node_sequence_iterate(list, &iterator),
                       key, place));
    }
    *(int *)((char *)base + key->count_offset) = length;
    return GDN_OK;
}

void ramp_write(const void *entries, int count, FILE *out) {
    const long(*entry)[2] = entries;
    fputc('[', out);
    for (int i = 0; i < count; i++)
        fprintf(out, "%s[%ld, %ld]", i ? ", " : "", entry[i][RAMP_STEP], entry[i][RAMP_SIZE]);
    fputc(']', out);
}
