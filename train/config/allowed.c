/* The words of what a key allows, and of a value that it does not. */
#include "train/config/private.h"

#include <float.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "model/rules/rules.h"

/* "a, b or c" of "a|b|c". */
static void write_text(const char *text, FILE *out) {
    for (const char *at = text; *at;) {
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
        fprintf(out, "an integer from %.0f to %ld in plain digits", key->min,
                key->max < (double)LONG_MAX ? (long)key->max : LONG_MAX);
        break;
    case KEY_UNSIGNED:
        fprintf(out, "an integer from 0 to %llu in plain digits", ULLONG_MAX);
        break;
    case KEY_REAL:
        fprintf(out, "a finite decimal number");
        if (key->min == FLT_MIN)
            fprintf(out, " above 0");
        else
            fprintf(out, " of at least %g", key->min);
        if (key->max < FLT_MAX) fprintf(out, " and %s %g", key->below ? "below" : "at most", key->max);
        break;
    case KEY_BOOL:
        fprintf(out, "true or false");
        break;
    case KEY_WORD:
        write_text(key_choices(key), out);
        break;
    case KEY_STRING:
        fprintf(out, "text");
        break;
    case KEY_FILES:
        fprintf(out, "a list of texts or one text");
        break;
    case KEY_INTS:
        fprintf(out, "a list of at most %d increasing integers from %.0f to %d", MAX_DISTANCES, key->min,
                INT_MAX);
        break;
    case KEY_REALS:
        fprintf(out, "a list of at most %d finite decimal numbers above 0", MAX_EXITS);
        break;
    case KEY_EDGES:
        fprintf(out, "a list of at most %d [TARGET, SOURCE], layers' numbers, SOURCE below TARGET from -1 on",
                MAX_EDGES);
        break;
    case KEY_RAMP:
        fprintf(out, "a list of at most %d [STEP, SEQUENCES], steps increasing from 0", RAMP_MAX);
        break;
    case KEY_GROUPS:
        fprintf(out,
                "a list of at most %d {match: TEXT, lr_scale: NUMBER, weight_decay: NUMBER, beta1: NUMBER, "
                "beta2: NUMBER}",
                GROUPS_MAX);
        break;
    case KEY_RULES:
        fprintf(out, "a list of at most %d {kind: ", MAX_RULES - 1);
        write_text(rules_words(), out);
        fprintf(out, ", and settings of that kind}");
        break;
    case KEY_SOURCES:
        fprintf(out, "a list of {path: TEXT, weight: a number above 0, name: TEXT}");
        break;
    case KEY_PATHS:
        fprintf(out, "a mapping of names to files, such as {books: 'books/*.txt', letters: letters.txt},");
        break;
    }
}

int value_wrong(const struct key *key, const char *label, struct fy_node *node, const struct place *place) {
    char value[SHOWN], *allowed = NULL;
    size_t length;
    FILE *out = open_memstream(&allowed, &length);
    if (!out) return gdn_fail(GDN_INTERNAL, "out of memory for a message");
    if (key->type == KEY_WORD && !strchr(key_choices(key), '|'))
        fprintf(out, "this version has %s only", key_choices(key));
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
