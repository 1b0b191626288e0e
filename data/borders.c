#include "data/borders.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/marks.h"
#include "kernels/base/status.h"

static int validate(const char *path, long tokens, long number, int64_t before, int64_t at) {
    if (number == 0 && at != 0)
        return gdn_fail(GDN_INPUT, "%s: the first of its `documents` is %lld, and must be 0, its first token",
                        path, (long long)at);
    if (number > 0 && at <= before)
        return gdn_fail(
            GDN_INPUT,
            "%s: number %ld of its `documents` is %lld, and must be more than the one before it, %lld", path,
            number, (long long)at, (long long)before);
    if (at > tokens)
        return gdn_fail(GDN_INPUT,
                        "%s: number %ld of its `documents` is %lld, and the file has only %ld tokens", path,
                        number, (long long)at, tokens);
    return GDN_OK;
}

int borders_add(struct borders *borders, const char *path, long tokens, const int64_t *at, long count) {
    int64_t *grown = realloc(borders->at, (size_t)(borders->count + count + 1) * sizeof *grown);
    if (!grown) return gdn_fail(GDN_INTERNAL, "%s: no memory for where its documents start", path);
    borders->at = grown;
    for (long i = 0; i < count; i++) {
        long number = borders->count;
        TRY(validate(path, tokens, number, number ? grown[number - 1] : -1, at[i]));
        grown[borders->count++] = at[i];
    }
    return GDN_OK;
}

int borders_finish(const struct borders *borders, const char *path, long tokens) {
    if (borders->count > 1 && borders->at[borders->count - 1] == tokens) return GDN_OK;
    return gdn_fail(GDN_INPUT,
                    "%s: the last of its `documents` is %lld, and must be %ld, the number of its tokens",
                    path, borders->count ? (long long)borders->at[borders->count - 1] : -1, tokens);
}

void borders_free(struct borders *borders) {
    free(borders->at);
    *borders = (struct borders){0};
}

void borders_mark(const struct borders *borders, long first, long count, int32_t *row) {
    long low = 0, high = borders->count; /* the first border that is not before `first` */
    while (low < high) {
        long middle = low + (high - low) / 2;
        if (borders->at[middle] < first)
            low = middle + 1;
        else
            high = middle;
    }
    for (long i = low; i < borders->count && borders->at[i] < first + count; i++)
        row[borders->at[i] - first] |= MARK_DOCUMENT;
}
