/* json_value [KEY…] < OUTPUT: the last line of a command's output as JSON, or what it has under these keys
 * one inside the other (numbers: places in a list), printed on one line. Status 1 where that line is no JSON
 * in UTF-8 or lacks the key. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    char *text = NULL;
    size_t room = 0;
    ssize_t length = getdelim(&text, &room, 0, stdin);
    if (length < 1 || text[length - 1] != '\n') return fprintf(stderr, "no whole line\n"), 1;
    text[length - 1] = 0;
    char *line = strrchr(text, '\n');
    json_error_t error;
    json_t *root = json_loads(line ? line + 1 : text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    json_t *value = root;
    free(text);
    if (!value) return fprintf(stderr, "no JSON: %s\n", error.text), 1;
    for (int i = 1; i < argc; i++) {
        value = json_is_array(value) ? json_array_get(value, (size_t)atol(argv[i]))
                                     : json_object_get(value, argv[i]);
        if (!value) break;
    }
    if (value) json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    if (value)
        putchar('\n');
    else
        fprintf(stderr, "the keys lead nowhere\n");
    json_decref(root);
    return !value;
}
