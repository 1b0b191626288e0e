/* Looking keys up in the table of keys.c. */
#include "train/config/keys.h"

#include <string.h>

#include "train/config/nearest.h"

const struct key *key_find(const char *path) {
    for (int k = 0; k < CONFIG_KEYS; k++)
        if (!strcmp(config_keys[k].path, path)) return &config_keys[k];
    return NULL;
}

const char *key_choices(const struct key *key) {
    return key->rows ? key->rows() : key->choices;
}

bool key_is_section(const char *path) {
    size_t length = strlen(path);
    for (int k = 0; k < CONFIG_KEYS; k++)
        if (!strncmp(config_keys[k].path, path, length) && config_keys[k].path[length] == '.') return true;
    return false;
}

static const char *leaf(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

const char *key_nearest(const char *path) {
    /* The right name in the wrong place is likelier than a misspelt one. */
    for (int k = 0; k < CONFIG_KEYS; k++)
        if (!strcmp(leaf(config_keys[k].path), leaf(path))) return config_keys[k].path;
    static const char *const sections[] = {
        "model", "model.rope_scaling", "model.delta", "model.exit", "train",    "train.muon", "train.dropout", "mesh",
        "data",  "checkpoint",         "delta_store", "watchdog", "spikes",     "monitor"};
    enum { SECTIONS = sizeof sections / sizeof *sections };
    const char *paths[SECTIONS + CONFIG_KEYS + 1] = {NULL}, *siblings[SECTIONS + CONFIG_KEYS + 1] = {NULL};
    memcpy(paths, sections, sizeof sections);
    for (int k = 0; k < CONFIG_KEYS; k++) paths[SECTIONS + k] = config_keys[k].path;

    /* Inside a known section only the last name can be wrong, and it is compared alone. */
    size_t parent = (size_t)(leaf(path) - path);
    int count = 0;
    for (const char **known = paths; *known; known++)
        if (leaf(*known) == *known + parent && !strncmp(*known, path, parent))
            siblings[count++] = *known + parent;
    const char *near = nearest_word(path + parent, count ? siblings : paths);
    return near && count ? near - parent : near;
}
