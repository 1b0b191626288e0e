/* The table of token formats, and their names. */
#include "data/format.h"
#include "kernels/base/append.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 16 };

static const struct token_format *row[MAX_ROWS + 1] = {&text_format, &hdf5_format, &llmc_format,
                                                       &megatron_format, &nanogpt_format, &jsonl_format};

int token_format_register(const struct token_format *another) {
    int number = 0;
    while (row[number]) number++;
    if (number == MAX_ROWS) abort();
    row[number] = another;
    return number;
}

const struct token_format *token_format_of(int number) {
    return row[number];
}

int token_format_number(const struct token_format *wanted) {
    int number = 0;
    while (row[number] != wanted) number++;
    return number;
}

const struct token_format *token_format_named(const char *name) {
    for (int i = 0; row[i]; i++)
        if (!strcmp(name, row[i]->name)) return row[i];
    return NULL;
}

const char *token_format_words(void) {
    static char words[FORMAT_LIST];
    size_t used = 0;
    for (int i = 0; row[i]; i++)
        used = text_append(words, sizeof words, used, "%s%s", i ? "|" : "", row[i]->name);
    return words;
}

static bool is_listed(const struct token_format *format, enum format_list list) {
    if (list == FORMATS_WRITTEN) return format->write;
    if (list == FORMATS_NEVER_FOUND) return !format->recognise && !format->text && !format->documents;
    return list != FORMATS_EXPLAINED || !format->documents;
}

const char *token_format_list(enum format_list list, const char *last, char out[FORMAT_LIST]) {
    size_t used = 0;
    int count = 0, listed = 0;
    for (int i = 0; row[i]; i++) count += is_listed(row[i], list);
    out[0] = 0;
    for (int i = 0; row[i]; i++) {
        if (!is_listed(row[i], list)) continue;
        const char *between = !listed ? "" : listed == count - 1 ? last : ", ";
        used = text_append(out, FORMAT_LIST, used, "%s%s", between, row[i]->name);
        if (list == FORMATS_EXPLAINED)
            used = text_append(out, FORMAT_LIST, used, " (%s)", row[i]->about);
        listed++;
    }
    return out;
}
