/* From a YAML document, and from --set, into the configuration. */
#include "train/config/private.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/append.h"
#include "kernels/base/status.h"

/* Records an unknown key, with the nearest known one or, failing that, all of its section. */
static int unknown_key(const char *path, const char *section, struct fy_node *value,
                       const struct place *place) {
    char name[SHOWN], text[SHOWN];
    shown(path, name);
    yaml_shown(value, text);
    const char *near = key_nearest(path);
    if (near && !strcmp(near, path)) /* "model.lr: 1" instead of "model: {lr: 1}" */
        return fail_at(place,
                       "unknown key '%s' (value %s): in a file, write its last name inside the section that "
                       "comes before it",
                       name, text);
    if (near) return fail_at(place, "unknown key %s (value %s): did you mean %s?", name, text, near);
    char all[1024] = "";
    size_t prefix = *section ? strlen(section) + 1 : 0, used = 0;
    const char *last = "";
    for (int k = 0; k < CONFIG_KEYS; k++) {
        const char *known = config_keys[k].path;
        if (prefix && (strncmp(known, section, prefix - 1) || known[prefix - 1] != '.')) continue;
        size_t length = strcspn(known + prefix, ".");
        if (!strncmp(last, known + prefix, length) && (!last[length] || last[length] == '.'))
            continue; /* said */
        last = known + prefix;
        used = text_append(all, sizeof all, used, "%s%.*s", used ? ", " : "", (int)length, last);
    }
    return fail_at(place, "unknown key %s (value %s): %s has %s", name, text,
                   *section ? section : "a configuration", all);
}

static int read_section(struct reading *reading, const char *section, struct fy_node *node,
                        const struct place *place);

/* One key or section, by its full path. */
static int read_path(struct reading *reading, const char *path, const char *section, struct fy_node *value,
                     const struct place *place) {
    if (key_is_section(path)) return read_section(reading, path, value, place);
    const struct key *key = key_find(path);
    if (!key) return unknown_key(path, section, value, place);
    TRY(value_read(reading->config, key, path, value, place));
    reading->place[key - config_keys] = *place;
    return GDN_OK;
}

static int read_section(struct reading *reading, const char *section, struct fy_node *node,
                        const struct place *place) {
    char text[SHOWN];
    struct fy_node *mapping;
    const char *label = *section ? section : "the configuration";
    TRY(yaml_resolve(node, place, label, &mapping));
    struct place found = *place;
    if (found.file) found.line = yaml_line(mapping, place->line);
    if (!mapping || !fy_node_is_mapping(mapping))
        return fail_at(&found, "%s is %s: a mapping of keys to values is expected", label,
                       yaml_shown(mapping, text));
    void *iterator = NULL;
    for (struct fy_node_pair *pair; (pair = fy_node_mapping_iterate(mapping, &iterator));) {
        char *name = NULL, *path = NULL;
        int status = yaml_key(mapping, pair, place, section, &name);
        struct place at = *place;
        if (at.file) at.line = yaml_line(fy_node_pair_key(pair), place->line);
        if (!status && asprintf(&path, "%s%s%s", section, *section ? "." : "", name) < 0)
            status = gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
        /* A dotted name in a file is no path: the section would be given twice, unseen. */
        if (!status && strchr(name, '.')) status = unknown_key(path, section, fy_node_pair_value(pair), &at);
        if (!status) status = read_path(reading, path, section, fy_node_pair_value(pair), &at);
        free(name);
        free(path);
        TRY(status);
    }
    return GDN_OK;
}

int read_file_text(struct reading *reading, const char *text, size_t length) {
    struct place place = {.file = reading->name};
    struct yaml yaml;
    int status = yaml_open(text, length, &place, &yaml);
    if (!status) status = read_section(reading, "", yaml_root(&yaml), &place);
    yaml_close(&yaml);
    return status;
}

int read_override(struct reading *reading, const char *set, bool resumed) {
    struct place place = {.set = set, .resumed = resumed};
    const char *equals = strchr(set, '=');
    if (!equals || equals == set) return fail_at(&place, "KEY=VALUE is expected, such as train.steps=100");
    char *path = strndup(set, (size_t)(equals - set));
    if (!path) return gdn_fail(GDN_INTERNAL, "out of memory for --set");
    char *dot = strrchr(path, '.'), *section = strndup(path, dot ? (size_t)(dot - path) : 0);
    struct yaml yaml = {0};
    int status = section ? yaml_open(equals + 1, strlen(equals + 1), &place, &yaml)
                         : gdn_fail(GDN_INTERNAL, "out of memory for --set");
    /* Keys of a section that is no section are looked for everywhere. */
    if (!status)
        status = read_path(reading, path, key_is_section(section) ? section : "", yaml_root(&yaml), &place);
    yaml_close(&yaml);
    free(section);
    free(path);
    return status;
}
