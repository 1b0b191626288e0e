/* A configuration and up to four overrides: the text, then each "KEY=VALUE", with zero bytes between them.
 * Where they parse, what is written parses again and is the same text; and text as a checkpoint's
 * configuration is compared with the defaults without harm. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "train/config/config.h"

enum { OVERRIDES = 4, LINES = 5, MATCH_LINES = 100 /* a line a key that differs */ };

/* Texts of their own are equal; without them and lists, which the written text compares, all bytes are: text
 * would be the same where a number has lost digits in writing. Padding is zero in both. */
static int same_numbers(struct config a, struct config b) {
    char **texts[][2] = {{&a.data.tokenizer, &b.data.tokenizer},
                         {&a.data.field, &b.data.field},
                         {&a.data.cache, &b.data.cache},
                         {&a.checkpoint.init_from, &b.checkpoint.init_from}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(*texts[i][0], *texts[i][1])) return 0;
        *texts[i][0] = *texts[i][1] = NULL;
    }
    struct config *both[] = {&a, &b};
    for (int i = 0; i < 2; i++) {
        both[i]->data.train = both[i]->data.validation = (struct path_list){0};
        both[i]->data.sources = both[i]->data.validations = NULL;
    }
    return !memcmp(&a, &b, sizeof a);
}

/* What is written must be read as what it was. */
static void check_round_trip(const struct config *config) {
    struct config again;
    char *text = config_text(config);
    fuzz_check(text != NULL, "config_text");
    fuzz_check(!config_parse(text, "written", NULL, 0, &again), "what config_text has written is not read");
    fuzz_check(same_numbers(*config, again), "config_text has not written a number as it is");
    char *second = config_text(&again);
    fuzz_check(second && !strcmp(text, second), "what config_text has written is read as something else");
    fuzz_check(!config_match_resume(config, text), "a configuration does not match itself for a resume");
    fuzz_check(!config_match_ranks(config, text), "a configuration does not match itself on another rank");
    free(second);
    free(text);
    config_free(&again);
}

static void check_resume(const char *text) {
    static struct config defaults; /* of the whole process */
    static bool known;
    if (!known)
        fuzz_check(!config_parse("train: {steps: 1}", "default", NULL, 0, &defaults),
                   "a default configuration");
    known = true;
    fuzz_status(config_match_resume(&defaults, text), MATCH_LINES, "config_match_resume");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1), *overrides[OVERRIDES];
    int count = 0;
    fuzz_check(text != NULL, "memory");
    memcpy(text, data, size);
    text[size] = 0;
    for (char *at = text + strlen(text); at < text + size && count < OVERRIDES; at += strlen(at))
        overrides[count++] = ++at;
    struct config config;
    if (fuzz_status(config_parse(text, "fuzzed.yaml", overrides, count, &config), LINES, "config_parse")) {
        fuzz_status(config_validate_for_training(&config), LINES, "config_validate_for_training");
        check_round_trip(&config);
        config_free(&config);
    }
    check_resume(text);
    free(text);
    return 0;
}
