#include "kernels/base/status.h"

#include <stdarg.h>
#include <stdio.h>

static char words[4096];

int gdn_fail(int status, const char *format, ...) {
    if (!words[0]) {
        va_list list;
        va_start(list, format);
        vsnprintf(words, sizeof words, format, list);
        va_end(list);
    }
    return status;
}

const char *gdn_failure(void) {
    return words;
}

void gdn_failure_clear(void) {
    words[0] = 0;
}
