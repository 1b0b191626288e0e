#include "data/tokenizer/pattern.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/characters.h"
#include "kernels/base/status.h"

static void begin_oniguruma(void) {
    onig_initialize(&(OnigEncoding){ONIG_ENCODING_UTF8}, 1);
}

static int compile(const char *expression, size_t length, regex_t **out,
                   OnigUChar words[ONIG_MAX_ERROR_MESSAGE_LEN]) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    OnigErrorInfo about;
    const OnigUChar *bytes = (const OnigUChar *)expression;
    pthread_once(&once, begin_oniguruma);
    int failed = onig_new(out, bytes, bytes + length, ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                          ONIG_SYNTAX_DEFAULT, &about);
    if (failed) *out = NULL, onig_error_code_to_str(words, failed, &about);
    return failed;
}

int pattern_open_regex(const char *expression, struct pattern *out) {
    OnigUChar words[ONIG_MAX_ERROR_MESSAGE_LEN];
    *out = (struct pattern){0};
    if (!compile(expression, strlen(expression), &out->regex, words)) return GDN_OK;
    return gdn_fail(GDN_INTERNAL, "the regular expression %s: %s", expression, (const char *)words);
}

int pattern_open(const struct place *place, const json_t *object, const char *name, struct pattern *out) {
    const json_t *value = json_object_get(object, name);
    struct place inner = place_inside(place, name, -1);
    const char *text;
    size_t length;
    *out = (struct pattern){0};
    TRY(fields_known(&inner, value, "String Regex"));
    bool regex = json_object_get(value, "Regex");
    TRY(field_string(&inner, value, regex ? "Regex" : "String", &text, &length));
    if (!length) return place_fail(&inner, "is empty, and a text or an expression is expected");
    if (regex) {
        OnigUChar words[ONIG_MAX_ERROR_MESSAGE_LEN];
        char message[QUOTED];
        if (!compile(text, length, &out->regex, words)) return GDN_OK;
        return place_fail(&inner, "is no regular expression: %s", quoted((const char *)words, message));
    }
    if (!(out->text = malloc(length))) return gdn_fail(GDN_INTERNAL, "no memory for a pattern");
    memcpy(out->text, text, out->length = length);
    return GDN_OK;
}

void pattern_close(struct pattern *pattern) {
    free(pattern->text);
    if (pattern->regex) onig_free(pattern->regex);
    *pattern = (struct pattern){0};
}

struct search search_begin(const struct pattern *pattern, OnigRegion *region, const char *text,
                           size_t length) {
    return (struct search){.pattern = pattern, .region = region, .text = text, .length = length};
}

static int search_text(struct search *search, size_t *start, size_t *end, bool *found) {
    const struct pattern *pattern = search->pattern;
    const char *at =
        memmem(search->text + search->from, search->length - search->from, pattern->text, pattern->length);
    if ((*found = at)) {
        *start = (size_t)(at - search->text);
        search->from = *end = *start + pattern->length;
    }
    return GDN_OK;
}

int search_next(struct search *search, size_t *start, size_t *end, bool *found) {
    if (search->pattern->text) return search_text(search, start, end, found);
    const OnigUChar *text = (const OnigUChar *)search->text;
    *found = false;
    while (search->from <= search->length) {
        onig_region_clear(search->region);
        int at = onig_search(search->pattern->regex, text, text + search->length, text + search->from,
                             text + search->length, search->region, ONIG_OPTION_NONE);
        if (at == ONIG_MISMATCH) return GDN_OK;
        if (at < 0) {
            OnigUChar words[ONIG_MAX_ERROR_MESSAGE_LEN];
            onig_error_code_to_str(words, at);
            return gdn_fail(GDN_INPUT, "a regular expression of the tokenizer fails on the text: %s",
                            (const char *)words);
        }
        *start = (size_t)search->region->beg[0];
        *end = (size_t)search->region->end[0];
        if (*start < *end || !search->any || *end != search->last_end) {
            search->any = *found = true;
            search->from = search->last_end = *end;
            return GDN_OK;
        }
        size_t size = 1; /* empty, at the end of the last: look on behind the next character */
        if (search->from < search->length) character_at(search->text + search->from, &size);
        search->from += size;
    }
    return GDN_OK;
}
