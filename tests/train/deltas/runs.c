#include "tests/train/deltas/runs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/base/status.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"

const struct made_up shape = {.batch = 2, .length = 3, .hidden = 5, .rank = 2};

void make_run(const char *name, char run[256], char deltas[300]) {
    snprintf(run, 256, "%s/%s", scratch(), name);
    snprintf(deltas, 300, "%s/deltas", run);
    assert_int_equal(mkdir(run, 0777), 0);
}

void write_file(const char *deltas, int64_t step, int layer, int distances, char path[4096]) {
    assert_true(made_up_file(deltas, step, layer, distances, &shape, path));
}

void fails_with(int status, const char *text) {
    assert_int_equal(status, GDN_INPUT);
    if (!strstr(gdn_failure(), text)) fail_msg("'%s' lacks '%s'", gdn_failure(), text);
    gdn_failure_clear();
}

void touch(const char *folder, const char *name) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("not ours\n", file);
    fclose(file);
}
