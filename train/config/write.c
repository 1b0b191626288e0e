/* The configuration as text: resolved for config.yaml and checkpoints, explained for --help-config. */
#include "train/config/private.h"

#include <stdlib.h>
#include <string.h>

/* Opens the sections of `path` that the key before it was not in; returns how deep the key itself is. */
static int write_sections(const char *path, const char *before, FILE *out) {
    int depth = 0;
    size_t start = 0;
    for (size_t i = 0; path[i]; i++) {
        if (path[i] != '.') continue;
        if (strncmp(path, before, i + 1))
            fprintf(out, "%*s%.*s:\n", 2 * depth, "", (int)(i - start), path + start);
        start = i + 1;
        depth++;
    }
    return depth;
}

char *config_text_of(const struct config *config, bool asked) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out) return NULL;
    const char *before = "";
    for (int k = 0; k < CONFIG_KEYS; k++) {
        const struct key *key = &config_keys[k];
        if (asked && !key->asked) continue;
        int depth = write_sections(key->path, before, out);
        const char *dot = strrchr(key->path, '.');
        fprintf(out, "%*s%s: ", 2 * depth, "", dot ? dot + 1 : key->path);
        value_write(config, key, out);
        fputc('\n', out);
        before = key->path;
    }
    return fclose(out) ? (free(text), NULL) : text;
}

char *config_text(const struct config *config) {
    return config_text_of(config, false);
}

void config_help(FILE *out) {
    fprintf(
        out,
        "Keys of the configuration, with their defaults. In the YAML file, model.delta.kind is written as\n"
        "\n"
        "    model:\n"
        "      delta:\n"
        "        kind: full\n"
        "\n"
        "and on the command line as --set model.delta.kind=full.\n");
    size_t last = 0;
    for (int k = 0; k < CONFIG_KEYS; k++) {
        const struct key *key = &config_keys[k];
        const char *dot = strrchr(key->path, '.');
        size_t section = dot ? (size_t)(dot - key->path) : 0;
        if (k == 0 || section != last || strncmp(key->path, key[-1].path, section)) fputc('\n', out);
        last = section;
        fprintf(out, "%s: %s\n    ", key->path, key->value);
        value_allowed(key, out);
        fprintf(out, "\n    %s\n", key->help);
    }
}
