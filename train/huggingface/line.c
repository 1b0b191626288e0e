/* Lines of gdn's configuration that a config.json becomes, and words for what it says. */
#include "train/huggingface/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

const char *settings_shown(const json_t *value, char out[SHOWN_JSON]) {
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY) : NULL;
    snprintf(out, SHOWN_JSON, "%s", text ? text : "left out");
    if (text && strlen(text) >= SHOWN_JSON) strcpy(out + SHOWN_JSON - 4, "...");
    free(text);
    return out;
}

int settings_refuse(const struct settings *s, const char *name, const json_t *value, const char *right) {
    char shown[SHOWN_JSON];
    return gdn_fail(GDN_INPUT, "%s: %s is %s, which gdn does not have: %s is expected", s->path, name,
                    settings_shown(value, shown), right);
}

void settings_add(struct settings *s, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("  ", s->model);
    vfprintf(s->model, format, arguments);
    fputc('\n', s->model);
    va_end(arguments);
}
