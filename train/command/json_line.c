#include "train/command/json_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "kernels/base/utf8.h"

json_t *json_finite(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_bytes(const char *bytes, size_t length) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    for (size_t i = 0, width; i < length; i += width ? width : 1)
        if ((width = utf8_bytes(bytes + i, length - i)))
            fwrite(bytes + i, 1, width, out);
        else
            fputs("\xef\xbf\xbd", out); /* U+FFFD */
    json_t *string = fclose(out) ? NULL : json_stringn(text, size);
    free(text);
    return string;
}

int json_print_line(json_t *value) {
    if (!value) return gdn_fail(GDN_INTERNAL, "out of memory for the output as JSON");
    int failed = json_dumpf(value, stdout, JSON_COMPACT);
    json_decref(value);
    if (failed) return gdn_fail(GDN_INTERNAL, "the output cannot be written as JSON");
    putchar('\n');
    return commands_finish_printing();
}
