/* How it is said that values do not go together: why, and then each of them with where it comes from. */
#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/config/private.h"

const struct place *key_place(const struct reading *reading, const char *path) {
    return &reading->place[key_find(path) - config_keys];
}

/* A line "model.hidden_size: 130 (line 3)" for each of the paths, which end with NULL. */
static void write_values(const struct reading *reading, const char *const *paths, FILE *out) {
    for (; *paths; paths++) {
        const char *path = *paths;
        const struct key *key = key_find(path);
        const struct place *place = key_place(reading, path);
        char text[SHOWN];
        char *value = value_text(reading->config, key);
        fprintf(out, "\n  %s: %s", path, shown(value ? value : "?", text));
        free(value);
        if (place->set)
            fprintf(out, " (--set %s)", shown(place->set, text));
        else if (place->file && place->line)
            fprintf(out, " (line %d)", place->line);
        else if (!place->file)
            fprintf(out, " (default)");
    }
}

int refuse(const struct reading *reading, const struct conflict *conflict) {
    char *values = NULL, name[SHOWN];
    size_t length;
    FILE *out = open_memstream(&values, &length);
    if (!out) return gdn_fail(GDN_INTERNAL, "out of memory for a message");
    write_values(reading, conflict->key, out);
    fclose(out);
    int status = gdn_fail(GDN_INPUT, "%s: %s%s", shown(reading->name, name), conflict->why, values);
    free(values);
    return status;
}

int possible(const struct reading *reading, const struct conflict *conflict) {
    return conflict ? refuse(reading, conflict) : GDN_OK;
}
