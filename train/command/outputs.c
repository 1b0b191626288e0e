#include "train/command/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "data/output.h"
#include "kernels/base/status.h"

/* In a run directory, and in a checkpoint's. */
static const char *const kept[] = {"config.yaml",   "tokenizer.json", "tokenizer_config.json",
                                   "metrics.jsonl", "metrics.prom",   "checkpoints",
                                   "tensorboard",   "deltas",         "checkpoint.h5"};

static int refuse_kept(const char *path, const char *directory, const char *name) {
    char *input;
    if (asprintf(&input, "%s/%s", directory, name) < 0) return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    int status = output_refuse_input(path, input, "a file of the run");
    free(input);
    return status;
}

int outputs_verify(const char *option, const char *path, const char *given) {
    struct stat about;
    TRY(output_verify(option, path));
    if (!stat(given, &about) && !S_ISDIR(about.st_mode))
        return output_refuse_input(path, given, "the checkpoint");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) TRY(refuse_kept(path, given, kept[i]));
    return GDN_OK;
}
