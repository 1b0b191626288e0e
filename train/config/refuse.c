/* How it is said that values do not go together: why, and then each of them with where it comes from. */
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "model/rules/rules.h"
#include "train/config/private.h"

const struct place *key_place(const struct reading *reading, const char *path) {
    return &reading->place[key_find(path) - config_keys];
}

/* A line "model.hidden_size: 130 (line 3)" for each of the paths, which end with NULL. What a rule does not
 * have of the settings gets none. */
static void write_values(const struct reading *reading, const char *const *paths, int rule, FILE *out) {
    static const char of_rule[] = "model.rules[].";
    for (; *paths; paths++) {
        const char *path = *paths,
                   *setting = strncmp(path, of_rule, sizeof of_rule - 1) ? NULL : path + sizeof of_rule - 1;
        const struct key *key = key_find(setting ? MODEL(rules) : path);
        const struct place *place = key_place(reading, key->path);
        char text[SHOWN];
        char *value = setting ? rule_setting_text(&reading->config->model.rules[rule], setting)
                              : value_text(reading->config, key);
        if (setting && !value) continue;
        if (setting)
            fprintf(out, "\n  model.rules[%d].%s: %s", rule, setting, shown(value, text));
        else
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

int refuse(const struct reading *reading, const struct conflict *conflict, int rule) {
    char *values = NULL, name[SHOWN];
    size_t length;
    FILE *out = open_memstream(&values, &length);
    if (!out) return gdn_fail(GDN_INTERNAL, "out of memory for a message");
    write_values(reading, conflict->key, rule, out);
    fclose(out);
    int status = gdn_fail(GDN_INPUT, "%s: %s%s", shown(reading->name, name), conflict->why, values);
    free(values);
    return status;
}

int possible(const struct reading *reading, const struct conflict *conflict) {
    return conflict ? refuse(reading, conflict, 0) : GDN_OK;
}

int possible_rules(const struct reading *reading, int tensor, int sharing) {
    int entry;
    const struct conflict *conflict = rules_conflict(&reading->config->model, tensor, sharing, &entry);
    return conflict ? refuse(reading, conflict, entry) : GDN_OK;
}
