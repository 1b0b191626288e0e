#include "data/tokenizer/carried.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "data/mapping.h"
#include "kernels/base/status.h"

static int read_file(const char *path, char **out) {
    struct mapping file;
    TRY(mapping_open(path, &file));
    *out = strndup((const char *)file.bytes, file.size);
    const bool whole = *out && strlen(*out) == file.size;
    mapping_close(&file);
    if (!*out) return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    return whole ? GDN_OK : gdn_fail(GDN_INPUT, "%s is no JSON: it has a NUL byte", path);
}

char *carried_configuration_path(const char *file) {
    const char *slash = strrchr(file, '/');
    char *path;
    return asprintf(&path, "%.*stokenizer_config.json", slash ? (int)(slash + 1 - file) : 0, file) < 0 ? NULL
                                                                                                       : path;
}

int carried_read(const char *name, struct carried *out) {
    *out = (struct carried){.name = strdup(name)};
    if (!out->name) return gdn_fail(GDN_INTERNAL, "%s: no memory", name);
    if (!strcmp(name, "bytes")) return GDN_OK;
    TRY(read_file(name, &out->file));
    char *path = carried_configuration_path(name);
    if (!path) return gdn_fail(GDN_INTERNAL, "%s: no memory", name);
    int status = access(path, F_OK) ? GDN_OK : read_file(path, &out->configuration);
    free(path);
    return status;
}

int carried_take(const char *where, const char *file, const char *configuration, struct carried *out) {
    *out = (struct carried){.name = NULL};
    if (!file) return GDN_OK;
    out->name = strdup(where);
    out->file = strdup(file);
    if (configuration) out->configuration = strdup(configuration);
    if (out->name && out->file && !out->configuration == !configuration) return GDN_OK;
    return gdn_fail(GDN_INTERNAL, "%s: no memory", where);
}

void carried_free(struct carried *carried) {
    free(carried->name);
    free(carried->file);
    free(carried->configuration);
    *carried = (struct carried){0};
}

int carried_open(const struct carried *carried, struct tokenizer **out) {
    return tokenizer_open_text(carried->name, carried->file, out);
}

uint64_t carried_hash(const struct carried *carried) {
    return carried->file ? XXH3_64bits(carried->file, strlen(carried->file)) : 0;
}

const char *carried_text(const struct carried *carried, char out[CARRIED_TEXT]) {
    snprintf(out, CARRIED_TEXT, carried->file ? "xxh3 %016" PRIx64 : "bytes", carried_hash(carried));
    return out;
}
