#include "kernels/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[4096]; /* of a thread: one that writes checkpoints may fail as others do */

/* What a message quotes may have control characters, which a terminal would obey. */
static void make_plain(void) {
    for (char *at = text; *at; at++)
        if (((unsigned char)*at < 0x20 && *at != '\n') || *at == 0x7f) *at = '?';
}

int gdn_fail(int status, const char *format, ...) {
    if (!text[0]) {
        va_list list;
        va_start(list, format);
        vsnprintf(text, sizeof text, format, list);
        va_end(list);
        make_plain();
    }
    return status;
}

int gdn_fail_in(int status, const char *format, ...) {
    if (!status) return status;
    char inner[sizeof text];
    memcpy(inner, text, sizeof text);
    va_list list;
    va_start(list, format);
    int used = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (used >= 0 && (size_t)used < sizeof text)
        snprintf(text + used, sizeof text - (size_t)used, ": %s", inner);
    make_plain();
    return status;
}

const char *gdn_failure(void) {
    return text;
}

void gdn_failure_clear(void) {
    text[0] = 0;
}
