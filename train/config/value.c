/* One key's value: from YAML into its member, with type and limits checked, and back. */
#include "train/config/private.h"

#include <float.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/config/number.h"

static void *member(void *base, const struct key *key) {
    return (char *)base + key->offset;
}
static const void *member_of(const void *base, const struct key *key) {
    return (const char *)base + key->offset;
}

/* "a, b or c" of "a|b|c". */
static void write_words(const char *words, FILE *out) {
    for (const char *at = words; *at;) {
        size_t length = strcspn(at, "|");
        bool last = !at[length];
        bool before_last = !last && !strchr(at + length + 1, '|');
        fprintf(out, "%.*s%s", (int)length, at, last ? "" : before_last ? " or " : ", ");
        at += length + !last;
    }
}

void value_allowed(const struct key *key, FILE *out) {
    switch (key->type) {
    case KEY_INT:
    case KEY_LONG: /* a double cannot tell LONG_MAX from the number after it */
        fprintf(out, "an integer from %.0f to %ld in plain digits", key->least,
                key->most < (double)LONG_MAX ? (long)key->most : LONG_MAX);
        break;
    case KEY_UNSIGNED:
        fprintf(out, "an integer from 0 to %llu in plain digits", ULLONG_MAX);
        break;
    case KEY_REAL:
        fprintf(out, "a finite decimal number");
        if (key->least == FLT_MIN)
            fprintf(out, " above 0");
        else
            fprintf(out, " of at least %g", key->least);
        if (key->most < FLT_MAX) fprintf(out, " and %s %g", key->below ? "below" : "at most", key->most);
        break;
    case KEY_BOOL:
        fprintf(out, "true or false");
        break;
    case KEY_WORD:
        write_words(key->words, out);
        break;
    case KEY_STRING:
        fprintf(out, "text");
        break;
    case KEY_FILES:
        fprintf(out, "a list of texts or one text");
        break;
    case KEY_INTS:
        fprintf(out, "a list of at most %d increasing integers from %.0f to %d", MAX_DISTANCES, key->least,
                INT_MAX);
        break;
    case KEY_RAMP:
        fprintf(out, "a list of at most %d [STEP, SEQUENCES], steps increasing from 0", RAMP_MOST);
        break;
    case KEY_SOURCES:
        fprintf(out, "a list of {path: TEXT, weight: a number above 0, name: TEXT}");
        break;
    case KEY_PATHS:
        fprintf(out, "a mapping of names to files, such as {books: 'books/*.txt', letters: letters.txt},");
        break;
    }
}

/* Records that the value is not what the key allows. */
static int wrong_value(const struct key *key, const char *label, struct fy_node *node,
                       const struct place *place) {
    char value[SHOWN], *allowed = NULL;
    size_t length;
    FILE *out = open_memstream(&allowed, &length);
    if (!out) return gdn_fail(GDN_INTERNAL, "out of memory for a message");
    if (key->type == KEY_WORD && !strchr(key->words, '|'))
        fprintf(out, "this version has %s only", key->words);
    else {
        value_allowed(key, out);
        fprintf(out, " is expected");
    }
    bool quoted =
        node && fy_node_is_scalar(node) && !fy_node_is_null(node) && fy_node_get_style(node) != FYNS_PLAIN;
    if (key->type == KEY_STRING)
        fprintf(out, node && fy_node_is_scalar(node) && !quoted ? ", in quotes" : "");
    else if (quoted && key->type != KEY_WORD)
        fprintf(out, ", without quotes");
    fclose(out);
    int status = fail_at(place, "%s is %s: %s", label, yaml_shown(node, value), allowed);
    free(allowed);
    return status;
}

/* A number's text into its member; false where it is of another type or outside the limits. */
static bool read_number(void *base, const struct key *key, const char *text) {
    long integer = 0;
    uint64_t natural = 0;
    double value = 0;
    switch (key->type) {
    case KEY_INT:
        if (!number_long(text, &integer) || integer < INT_MIN || integer > INT_MAX) return false;
        if ((double)integer < key->least || (double)integer > key->most) return false;
        *(int *)member(base, key) = (int)integer;
        return true;
    case KEY_LONG:
        if (!number_long(text, &integer)) return false;
        if ((double)integer < key->least || (double)integer > key->most) return false;
        *(long *)member(base, key) = integer;
        return true;
    case KEY_UNSIGNED:
        if (!number_unsigned(text, &natural)) return false;
        *(uint64_t *)member(base, key) = natural;
        return true;
    default:
        if (!number_real(text, &value) || value < key->least || value > key->most) return false;
        if (key->below && value >= key->most) return false;
        *(double *)member(base, key) = value;
        return true;
    }
}

static bool is_truth(const char *text, bool *out) {
    bool yes = !strcmp(text, "true") || !strcmp(text, "True") || !strcmp(text, "TRUE");
    bool no = !strcmp(text, "false") || !strcmp(text, "False") || !strcmp(text, "FALSE");
    *out = yes;
    return yes || no;
}

static bool read_word(void *base, const struct key *key, const char *text) {
    bool truth;
    if (!strncmp(key->words, "false|true|", 11) && is_truth(text, &truth)) {
        *(int *)member(base, key) = truth;
        return true;
    }
    size_t length = strlen(text);
    int index = 0;
    for (const char *at = key->words;; index++) {
        size_t word = strcspn(at, "|");
        if (word == length && !strncmp(at, text, length)) {
            *(int *)member(base, key) = index;
            return true;
        }
        if (!at[word]) return false;
        at += word + 1;
    }
}

/* Plain text that YAML reads as a number, a truth value or null is no string. */
static bool is_string(struct fy_node *node, const char *text) {
    static const char *const others[] = {"",     "~",    "null",  "Null",  "NULL", "true",
                                         "True", "TRUE", "false", "False", "FALSE"};
    if (fy_node_get_style(node) != FYNS_PLAIN) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(text, others[i])) return false;
    return !number_like(text);
}

static int read_scalar(void *base, const struct key *key, const char *label, struct fy_node *node,
                       const struct place *place) {
    size_t length = 0;
    const char *given =
        node && fy_node_is_scalar(node) && !fy_node_is_null(node) ? fy_node_get_scalar(node, &length) : NULL;
    if (!given || memchr(given, 0, length)) return wrong_value(key, label, node, place);
    char *text = strndup(given, length);
    if (!text) return gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
    bool plain = fy_node_get_style(node) == FYNS_PLAIN, right;
    if (key->type == KEY_STRING) {
        right = is_string(node, text);
        if (right) {
            int status = key->home ? home_expand(label, place, &text) : GDN_OK;
            value_free(base, key);
            *(char **)member(base, key) = text;
            return status;
        }
    } else if (key->type == KEY_WORD)
        right = read_word(base, key, text);
    else if (key->type == KEY_BOOL)
        right = plain && is_truth(text, member(base, key));
    else
        right = plain && read_number(base, key, text);
    free(text);
    return right ? GDN_OK : wrong_value(key, label, node, place);
}

static bool is_list(const struct key *key) {
    return key->type == KEY_INTS || key->type == KEY_RAMP || key->type == KEY_SOURCES ||
           key->type == KEY_PATHS;
}

int value_read(void *base, const struct key *key, const char *label, struct fy_node *node,
               const struct place *place) {
    struct fy_node *value;
    TRY(yaml_resolve(node, place, label, &value));
    if (key->type == KEY_FILES && value && (fy_node_is_scalar(value) || fy_node_is_sequence(value)))
        return list_read_files(base, key, label, value, place);
    if (!is_list(key)) return read_scalar(base, key, label, value, place);
    bool mapping = key->type == KEY_PATHS;
    if (!value || !(mapping ? fy_node_is_mapping(value) : fy_node_is_sequence(value)))
        return wrong_value(key, label, value, place);
    if (mapping) return list_read_paths(base, key, label, value, place);
    if (key->type == KEY_INTS) return list_read_ints(base, key, label, value, place);
    if (key->type == KEY_RAMP) return ramp_read(base, key, label, value, place);
    return list_read_sources(base, key, label, value, place);
}

int value_default(void *base, const struct key *key) {
    struct place nowhere = {0};
    struct yaml yaml;
    int status = yaml_open(key->value, strlen(key->value), &nowhere, &yaml);
    if (!status) status = value_read(base, key, key->path, yaml_root(&yaml), &nowhere);
    yaml_close(&yaml);
    return status;
}

/* A YAML string in double quotes. Besides what must be escaped, so is what some readers take for a line's
 * end. */
void value_write_string(const char *text, FILE *out) {
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            fprintf(out, "\\x%02x", *at);
        else if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
            fprintf(out, "\\x%02x", *++at);                                            /* U+0080 … U+009F */
        else if (at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9)) { /* U+2028, U+2029 */
            fprintf(out, at[2] == 0xa8 ? "\\L" : "\\P");
            at += 2;
        } else
            fputc(*at, out);
    }
    fputc('"', out);
}

static void write_word(const char *words, int index, FILE *out) {
    while (index-- > 0) words += strcspn(words, "|") + 1;
    fprintf(out, "%.*s", (int)strcspn(words, "|"), words);
}

void value_write(const void *base, const struct key *key, FILE *out) {
    const void *at = member_of(base, key);
    int count = is_list(key) ? *(const int *)((const char *)base + key->count_offset) : 0;
    char digits[NUMBER_TEXT];
    switch (key->type) {
    case KEY_INT:
        fprintf(out, "%d", *(const int *)at);
        break;
    case KEY_LONG:
        fprintf(out, "%ld", *(const long *)at);
        break;
    case KEY_UNSIGNED:
        fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case KEY_REAL:
        number_write(*(const double *)at, digits);
        fputs(digits, out);
        break;
    case KEY_BOOL:
        fputs(*(const bool *)at ? "true" : "false", out);
        break;
    case KEY_WORD:
        write_word(key->words, *(const int *)at, out);
        break;
    case KEY_STRING:
        value_write_string(*(char *const *)at, out);
        break;
    case KEY_FILES:
        list_write_files(at, out);
        break;
    case KEY_RAMP:
        ramp_write(at, count, out);
        break;
    case KEY_INTS:
    case KEY_SOURCES:
    case KEY_PATHS:
        list_write(at, key, count, out);
        break;
    }
}

char *value_text(const void *base, const struct key *key) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out) return NULL;
    value_write(base, key, out);
    return fclose(out) ? (free(text), NULL) : text;
}

bool value_same(const void *a, const void *b, const struct key *key) {
    char *left = value_text(a, key), *right = value_text(b, key);
    bool same = left && right && !strcmp(left, right);
    free(left);
    free(right);
    return same;
}

void value_free(void *base, const struct key *key) {
    if (key->type == KEY_STRING) {
        free(*(char **)member(base, key));
        *(char **)member(base, key) = NULL;
    } else if (key->type == KEY_FILES) {
        path_list_free((struct path_list *)member(base, key));
    } else if (key->type == KEY_SOURCES || key->type == KEY_PATHS) {
        list_free_sources(base, key);
    }
}
