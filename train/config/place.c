/* Where values come from, and user's text in messages. */
#include "train/config/private.h"

#include <stdarg.h>
#include <string.h>

#include "kernels/base/status.h"

const char *shown(const char *text, char *out) {
    size_t length = 0;
    for (; text[length] && length < SHOWN - 4; length++) {
        unsigned char c = (unsigned char)text[length];
        out[length] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
    }
    if (text[length]) { /* cut, but not inside a UTF-8 character */
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
        memcpy(out + length, "...", 4);
    } else {
        out[length] = 0;
    }
    return out;
}

int fail_at(const struct place *place, const char *format, ...) {
    char text[2048], name[SHOWN], line[32] = "";
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (place->set)
        return gdn_fail(GDN_INPUT, "%s %s: %s", place->resumed ? "--resume-with" : "--set",
                        shown(place->set, name), text);
    if (place->line > 0) snprintf(line, sizeof line, ", line %d", place->line);
    return gdn_fail(GDN_INPUT, "%s%s: %s", shown(place->file ? place->file : "default", name), line, text);
}
