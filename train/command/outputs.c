#include "train/command/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/output.h"
#include "dist/checkpoint/checkpoint.h"
#include "kernels/base/status.h"

/* In a run directory. */
static const char *const kept[] = {"config.yaml",  "tokenizer.json", "tokenizer_config.json", "metrics.jsonl",
                                   "metrics.prom", "checkpoints",    "tensorboard",           "deltas"};

static int refuse_kept(const char *path, const char *directory, const char *name) {
    char *input;
    if (asprintf(&input, "%s/%s", directory, name) < 0) return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    int status = output_refuse_input(path, input, "a file of the run");
    free(input);
    return status;
}

/* The file, and those of single nodes that it joins (checkpoint.files: node), which lie beside it. */
static int refuse_checkpoint(const char *path, const char *file) {
    int status = output_refuse_input(path, file, "the checkpoint");
    for (int node = 0, there = true; there && !status; node++) {
        char *part = checkpoint_part(file, node);
        if (!part) return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
        there = access(part, F_OK) == 0;
        status = output_refuse_input(path, part, "a part of the checkpoint");
        free(part);
    }
    return status;
}

int outputs_verify(const char *option, const char *path, const char *given) {
    char *file;
    TRY(output_verify(option, path));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) TRY(refuse_kept(path, given, kept[i]));
    if (checkpoint_resolve(given, &file)) { /* a run without one; else whoever reads it says so */
        gdn_failure_clear();
        return GDN_OK;
    }
    int status = refuse_checkpoint(path, file);
    free(file);
    return status;
}
