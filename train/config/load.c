#include "train/config/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/base/status.h"

enum { MAX_FILE = 1 << 20 }; /* bytes; far beyond any configuration, so that a wrong file is not read whole */

static void (*set_beyond_keys)(struct config *config);

void config_register(void (*set)(struct config *config)) {
    set_beyond_keys = set;
}

void config_free(struct config *config) {
    for (int k = 0; k < CONFIG_KEYS; k++) value_free(config, &config_keys[k]);
}

/* Defaults, then the text, then the overrides; nothing is checked beyond single values. */
static int read_all(const char *text, size_t length, char *const *overrides, int count,
                    struct reading *reading) {
    *reading->config = (struct config){0};
    if (set_beyond_keys) set_beyond_keys(reading->config);
    for (int k = 0; k < CONFIG_KEYS; k++) TRY(value_default(reading->config, &config_keys[k]));
    TRY(read_file_text(reading, text, length));
    for (int i = 0; i < count; i++) TRY(read_override(reading, overrides[i], false));
    return GDN_OK;
}

static int parse(const char *text, size_t length, char *const *overrides, int count,
                 struct reading *reading) {
    int status = read_all(text, length, overrides, count, reading);
    if (!status) status = validate_combinations(reading);
    if (status) config_free(reading->config);
    return status;
}

int config_parse(const char *text, const char *name, char *const *overrides, int count, struct config *out) {
    struct reading reading = {.config = out, .name = name};
    return parse(text, strlen(text), overrides, count, &reading);
}

int config_parse_trained(const char *text, const char *name, char *const *overrides, int count,
                         struct config *out, struct config_asked *asked) {
    struct reading reading = {.config = out, .name = name, .trained = true};
    TRY(parse(text, strlen(text), overrides, count, &reading));
    asked->device = key_place(&reading, KEY_PATH(device))->set;
    asked->tokenizer = key_place(&reading, KEY_PATH(data.tokenizer))->set;
    asked->precision = key_place(&reading, KEY_PATH(train.precision))->set;
    return GDN_OK;
}

int config_read_saved(const char *text, struct config *out) {
    struct reading reading = {.config = out, .name = "the checkpoint's configuration"};
    int status = read_all(text, strlen(text), NULL, 0, &reading);
    if (status)
        config_free(out);
    else if (out->model.num_kv_heads == 0)
        out->model.num_kv_heads = out->model.num_heads;
    return status;
}

int config_read_file(const char *path, char **text, size_t *length) {
    FILE *file = fopen(path, "rb");
    struct stat about;
    if (!file || fstat(fileno(file), &about)) {
        int why = errno;
        if (file) fclose(file);
        return gdn_fail(GDN_INPUT, "%s: the configuration cannot be read: %s", path, strerror(why));
    }
    *text = malloc(MAX_FILE + 1);
    *length = *text && !S_ISDIR(about.st_mode) ? fread(*text, 1, MAX_FILE + 1, file) : 0;
    int why = S_ISDIR(about.st_mode) ? EISDIR : ferror(file) ? errno : 0;
    fclose(file);
    int status = GDN_OK;
    if (!*text)
        status = gdn_fail(GDN_INTERNAL, "out of memory for %s", path);
    else if (why)
        status = gdn_fail(GDN_INPUT, "%s: the configuration cannot be read: %s", path, strerror(why));
    else if (*length > MAX_FILE)
        status = gdn_fail(GDN_INPUT, "%s: is larger than %d bytes: a YAML configuration is expected", path,
                          MAX_FILE);
    if (status) free(*text);
    return status;
}

int config_load(const char *path, char *const *overrides, int count, struct config *out) {
    char *text = NULL;
    size_t length = 0;
    TRY(config_read_file(path, &text, &length));
    struct reading reading = {.config = out, .name = path};
    int status = parse(text, length, overrides, count, &reading);
    free(text);
    return status;
}
