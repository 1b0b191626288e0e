#include "kernels/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char words[4096]; /* of a thread: one that writes checkpoints may fail as others do */

int gdn_fail(int status, const char *format, ...) {
    if (!words[0]) {
        va_list list;
        va_start(list, format);
        vsnprintf(words, sizeof words, format, list);
        va_end(list);
    }
    return status;
}

int gdn_fail_in(int status, const char *format, ...) {
    if (!status) return status;
    char inner[sizeof words];
    memcpy(inner, words, sizeof words);
    va_list list;
    va_start(list, format);
    int used = vsnprintf(words, sizeof words, format, list);
    va_end(list);
    if (used >= 0 && (size_t)used < sizeof words)
        snprintf(words + used, sizeof words - (size_t)used, ": %s", inner);
    return status;
}

const char *gdn_failure(void) {
    return words;
}

void gdn_failure_clear(void) {
    words[0] = 0;
}
