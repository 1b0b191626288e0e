#include "train/deltas/ranges.h"

#include "kernels/base/status.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

/* A number at *text, which then points behind it. False where there is none or it is too large. */
static bool take_number(const char **text, int64_t *out) {
    if (!isdigit((unsigned char)**text)) return false;
    char *end;
    errno = 0;
    *out = strtoll(*text, &end, 10);
    *text = end;
    return !errno;
}

static bool take_range(const char **text, struct ranges *ranges) {
    int64_t first, last;
    if (!take_number(text, &first)) return false;
    last = first;
    if (**text == '-') {
        ++*text;
        if (!take_number(text, &last)) return false;
    }
    if (last < first || ranges->count == RANGES_MAX) return false;
    ranges->range[ranges->count].first = first;
    ranges->range[ranges->count++].last = last;
    return true;
}

int ranges_take(const char *option, const char *text, struct ranges *ranges) {
    const char *at = text;
    while (take_range(&at, ranges)) {
        if (!*at) return GDN_OK;
        if (*at++ != ',') break;
    }
    return gdn_fail(
        GDN_INPUT, "%s is '%.100s': numbers and ranges such as 3 or 0,2,5-9 are expected, at most %d of them",
        option, text, RANGES_MAX);
}

struct ranges ranges_one(int64_t number) {
    return (struct ranges){.count = 1, .range = {{number, number}}};
}

bool ranges_have(const struct ranges *ranges, int64_t number) {
    for (int i = 0; i < ranges->count; i++)
        if (number >= ranges->range[i].first && number <= ranges->range[i].last) return true;
    return ranges->count == 0;
}
