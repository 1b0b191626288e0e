/* Numbers, truth values, words and texts: from YAML into their member, with type and limits checked, and
 * back. */
#include "train/config/private.h"

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

/* A number's text into its member; false where it is of another type or outside the limits. */
static bool read_number(void *base, const struct key *key, const char *text) {
    long integer = 0;
    uint64_t natural = 0;
    double value = 0;
    switch (key->type) {
    case KEY_INT:
        if (!number_long(text, &integer) || integer < INT_MIN || integer > INT_MAX) return false;
        if ((double)integer < key->min || (double)integer > key->max) return false;
        *(int *)member(base, key) = (int)integer;
        return true;
    case KEY_LONG:
        if (!number_long(text, &integer)) return false;
        if ((double)integer < key->min || (double)integer > key->max) return false;
        *(long *)member(base, key) = integer;
        return true;
    case KEY_UNSIGNED:
        if (!number_unsigned(text, &natural)) return false;
        *(uint64_t *)member(base, key) = natural;
        return true;
    default:
        if (!number_real(text, &value) || value < key->min || value > key->max) return false;
        if (key->below && value >= key->max) return false;
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
    if (!strncmp(key_choices(key), "false|true|", 11) && is_truth(text, &truth)) {
        *(int *)member(base, key) = truth;
        return true;
    }
    size_t length = strlen(text);
    int index = 0;
    for (const char *at = key_choices(key);; index++) {
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

/* Puts the home directory in the place of ~ at the start of *text, which is allocated anew. What was found is
 * what is written back, so that config.yaml means the same to whoever reads it. */
static int expand_home(const char *label, const struct place *place, char **text) {
    char name[SHOWN], *whole;
    const char *home = getenv("HOME");
    if ((*text)[0] != '~') return GDN_OK;
    shown(*text, name);
    if ((*text)[1] != '/')
        return fail_at(place,
                       "%s is '%s': only ~/ stands for a home directory; the whole path is expected, or for "
                       "a file of this name ./%s",
                       label, name, name);
    if (!home || home[0] != '/')
        return fail_at(place, "%s is '%s', but HOME, which ~ stands for, is not set to a path", label, name);
    if (asprintf(&whole, "%s%s", home, *text + 1) < 0)
        return gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
    free(*text);
    *text = whole;
    return GDN_OK;
}

int scalar_read(void *base, const struct key *key, const char *label, struct fy_node *node,
                const struct place *place) {
    size_t length = 0;
    const char *given =
        node && fy_node_is_scalar(node) && !fy_node_is_null(node) ? fy_node_get_scalar(node, &length) : NULL;
    if (!given || memchr(given, 0, length)) return value_wrong(key, label, node, place);
    char *text = strndup(given, length);
    if (!text) return gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
    bool plain = fy_node_get_style(node) == FYNS_PLAIN, right;
    if (key->type == KEY_STRING) {
        right = is_string(node, text);
        if (right) {
            int status = key->home ? expand_home(label, place, &text) : GDN_OK;
            free(*(char **)member(base, key));
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
    return right ? GDN_OK : value_wrong(key, label, node, place);
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

static void write_word(const char *text, int index, FILE *out) {
    while (index-- > 0) text += strcspn(text, "|") + 1;
    fprintf(out, "%.*s", (int)strcspn(text, "|"), text);
}

void scalar_write(const void *base, const struct key *key, FILE *out) {
    const void *at = member_of(base, key);
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
        write_word(key_choices(key), *(const int *)at, out);
        break;
    case KEY_STRING:
        value_write_string(*(char *const *)at, out);
        break;
    default:
        break;
    }
}
