/* A config.json, as gdn's configuration; what is understood is written as JSON again. */
#include <jansson.h>
#include <stdlib.h>

#include "harness.h"
#include "train/huggingface/settings.h"

enum { LINES = 5 }; /* that a configuration's message may have */

static void write_section(const struct config *config, const char *path) {
    char *text = config_json(config, path);
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    fuzz_check(json != NULL, path);
    json_decref(json);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct config config;
    int status = settings_parse((const char *)data, size, "config.json", &config);
    if (!fuzz_status(status, LINES, "settings_parse")) return 0;
    write_section(&config, "model.delta.");
    write_section(&config, "model.rules");
    config_free(&config);
    return 0;
}
