#include "tests/train/config/config_fixture.h"

#include <stdarg.h>
#include <string.h>

#include "kernels/base/status.h"
#include "tests/support/unit.h"

struct config right(const char *text, const char *first, const char *second) {
    char *overrides[] = {(char *)first, (char *)second};
    int count = (first != NULL) + (second != NULL);
    struct config config;
    if (config_parse(text, "run.yaml", overrides, count, &config))
        fail_msg("%s\nrefused: %s", text, gdn_failure());
    return config;
}

void failure_has(const char *word) {
    if (!strstr(gdn_failure(), word)) fail_msg("'%s' is not said by: %s", word, gdn_failure());
}

void failure_is_short(void) {
    int lines = 1;
    for (const char *at = gdn_failure(); *at; at++) lines += *at == '\n';
    if (lines > 5 || !gdn_failure()[0] || strstr(gdn_failure(), "\n\n"))
        fail_msg("one to five lines are expected: %s", gdn_failure());
}

void refused(const char *text, const char *set, ...) {
    char *overrides[] = {(char *)set};
    struct config config;
    int status = config_parse(text, "run.yaml", overrides, set != NULL, &config);
    if (!status) config_free(&config);
    if (status != GDN_INPUT) fail_msg("status %d for: %s --set %s", status, text, set ? set : "nothing");
    failure_is_short();
    va_list list;
    va_start(list, set);
    for (const char *word; (word = va_arg(list, const char *));) failure_has(word);
    va_end(list);
    gdn_failure_clear();
}
