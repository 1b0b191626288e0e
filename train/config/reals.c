/* The key whose value is a list of numbers: model.exit.weights. */
#include "train/config/private.h"

#include "kernels/base/status.h"
#include "train/config/number.h"

static int read_real(void *entry, int index, const struct key *key, const char *label, struct fy_node *node,
                     const struct place *list) {
    const struct key number = {.type = KEY_REAL, .min = key->min, .max = key->max};
    struct place place = place_of(node, list);
    (void)index;
    return entry_read(entry, &number, label, node, &place);
}

static void write_real(const void *entry, FILE *out) {
    char digits[NUMBER_TEXT];
    number_write(*(const double *)entry, digits);
    fputs(digits, out);
}

const struct entries real_entries = {MAX_EXITS, sizeof(double), read_real, write_real};
