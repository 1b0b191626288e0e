/* Values as JSON. What value_write writes is YAML whose only difference is that words stand without quotes.
 */
#include "train/config/private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Copies a value, with quotes around what is a word: no number, and not true or false. */
static void write_quoted(const char *text, FILE *out) {
    for (size_t n; *text; text += n) {
        n = strspn(text, "+-.0123456789");
        if (n) n += strspn(text + n, "eE+-.0123456789"); /* a number with its exponent */
        bool word = !n && in_word(*text);
        while (word && in_word(text[n])) n++;
        if (!n) n = 1;
        word = word && strncmp(text, "true", n < 4 ? 4 : n) && strncmp(text, "false", n < 5 ? 5 : n);
        fprintf(out, word ? "\"%.*s\"" : "%.*s", (int)n, text);
    }
}

static void write_value(const struct config *config, const struct key *key, FILE *out) {
    char *text = value_text(config, key);
    write_quoted(text ? text : "?", out);
    free(text);
}

char *config_json(const struct config *config, const char *path) {
    const size_t length = strlen(path);
    const bool section = path[length - 1] == '.';
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    int written = 0;
    for (int k = 0; k < CONFIG_KEYS; k++) {
        const struct key *key = &config_keys[k];
        if (strncmp(key->path, path, section ? length : length + 1)) continue;
        if (section) fprintf(out, "%s\"%s\": ", written++ ? ", " : "{", key->path + length);
        write_value(config, key, out);
    }
    if (section) fputs(written ? "}" : "{}", out);
    return fclose(out) ? (free(text), NULL) : text;
}
