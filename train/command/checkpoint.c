/* gdn checkpoint: lists, verifies and compares checkpoints, and takes models of other programs in and out.
 * One process, no MPI. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/checkpoint/checkpoint.h"
#include "kernels/base/status.h"
#include "train/command/checkpoint_list.h"
#include "train/command/commands.h"
#include "train/command/options.h"
#include "train/config/number.h"
#include "train/huggingface/huggingface.h"

enum { DIFFERENT = 1 }; /* exit status of diff, as diff(1) has it */

enum { KEY_JSON = 256, KEY_FORMAT, KEY_SHARD, KEY_DTYPE };

struct settings {
    bool json;                         /* of ls */
    const char *format;                /* of export */
    struct huggingface_options export; /* the same */
};

/* "5GB", "200MB", "64KB" or a number of bytes. */
static int take_size(const char *option, const char *value, int64_t *out) {
    static const struct {
        const char *unit;
        long bytes;
    } units[] = {{"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000}};
    char digits[24];
    long number, scale = 1;
    size_t length = strlen(value);
    snprintf(digits, sizeof digits, "%s", value);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        if (length > 2 && length < sizeof digits && !strcmp(value + length - 2, units[u].unit))
            scale = units[u].bytes, digits[length - 2] = 0;
    if (!number_long(digits, &number) || number < 1 || number > INT64_MAX / scale)
        return gdn_fail(GDN_INPUT, "%s is '%.100s': bytes, or KB, MB or GB as in 200MB, are expected", option,
                        value);
    *out = number * scale;
    return GDN_OK;
}

static int take_option(int key, const char *value, void *input) {
    struct settings *settings = input;
    if (key == KEY_JSON) settings->json = true;
    if (key == KEY_FORMAT) settings->format = value;
    if (key == KEY_DTYPE) settings->export.dtype = value;
    return key == KEY_SHARD ? take_size("--shard-size", value, &settings->export.shard) : GDN_OK;
}

static int list(const struct options *options, const struct settings *settings) {
    return checkpoint_list(options->argument[0], settings->json);
}

static int verify_one(const char *given) {
    char *path;
    TRY(checkpoint_resolve(given, &path));
    int status = checkpoint_verify(path, stdout);
    free(path);
    return status;
}

/* Goes through all paths whatever the first ones are like. */
static int verify(const struct options *options, const struct settings *unused) {
    (void)unused;
    int bad = 0;
    for (int i = 0; i < options->num_arguments; i++) {
        int status = verify_one(options->argument[i]);
        if (!status) continue;
        if (options->num_arguments == 1 || status != GDN_INPUT) return status;
        bad++;
        printf("%s\n", gdn_failure());
        gdn_failure_clear();
    }
    TRY(commands_finish_printing());
    if (bad) return gdn_fail(GDN_INPUT, "%d of %d checkpoints are not whole", bad, options->num_arguments);
    return GDN_OK;
}

static int compare(const char *given_a, const char *given_b, bool *same) {
    char *a, *b;
    TRY(checkpoint_resolve(given_a, &a));
    int status = checkpoint_resolve(given_b, &b);
    if (!status) {
        status = checkpoint_diff(a, b, same, stdout);
        free(b);
    }
    free(a);
    return status;
}

static int diff(const struct options *options, const struct settings *unused) {
    (void)unused;
    bool same;
    TRY(compare(options->argument[0], options->argument[1], &same));
    if (same) printf("the tensors are the same\n");
    TRY(commands_finish_printing());
    if (same) return GDN_OK;
    return gdn_fail(DIFFERENT, "%s and %s differ", options->argument[0], options->argument[1]);
}

static int import(const struct options *options, const struct settings *unused) {
    (void)unused;
    TRY(huggingface_import(options->argument[0], options->argument[1], stdout));
    return commands_finish_printing();
}

static int export(const struct options *options, const struct settings *settings) {
    char *path;
    if (!settings->format || strcmp(settings->format, "huggingface"))
        return gdn_fail(GDN_INPUT, "--format %s: --format huggingface is expected",
                        settings->format ? settings->format : "is not given");
    TRY(checkpoint_resolve(options->argument[0], &path));
    int status = huggingface_export(path, options->argument[1], &settings->export);
    free(path);
    return status;
}

#define PATH_HELP                                                                                            \
    "PATH is a run directory (its newest checkpoint is meant), a step_N directory, or a checkpoint.h5. "

static const struct argp_option list_options[] = {
    {"json", KEY_JSON, NULL, 0, "Print a list of objects as JSON, on one line", 0},
    {0},
};

static const struct argp_option export_options[] = {
    {"format", KEY_FORMAT, "FORMAT", 0, "huggingface: config.json and safetensors; there is no other", 0},
    {"dtype", KEY_DTYPE, "DTYPE", 0, "float32 (default), bfloat16 or float16", 0},
    {"shard-size", KEY_SHARD, "SIZE", 0,
     "Weights of a file at most, as bytes or 200MB or 5GB (default 5GB); a larger tensor has a file alone",
     0},
    {0},
};

static const struct {
    const char *name;
    int (*run)(const struct options *, const struct settings *);
    struct command_line line;
} commands[] = {
    {"gdn checkpoint ls",
     list,
     {.arguments = "RUN-DIRECTORY",
      .doc = "List a run's checkpoints, the newest first.\v"
             "A line has the steps done, the samples consumed, the validation loss where it was measured, "
             "the size, and "
             "the state: 'whole', or 'damaged' with the reason. 'latest' marks the one that was saved last: "
             "a restarted "
             "run continues from it, or where it is damaged from the next whole one; 'best' marks the one "
             "with the "
             "least validation loss. Every byte is read to tell whole from "
             "damaged, so "
             "that large checkpoints take a while.\n\n"
             "With --json the list is printed as JSON, on one line: objects of step, path, bytes, valid "
             "(whole), "
             "latest, best, samples and loss (null where not known), and reason (what is wrong, or null).\n\n"
             "Example: gdn checkpoint ls runs/tiny\n"
             "Example: gdn checkpoint ls runs/tiny --json | jq -r '.[] | select(.best).path'",
      .own = list_options,
      .take = take_option,
      .min = 1,
      .max = 1}},
    {"gdn checkpoint verify",
     verify,
     {.arguments = "PATH...",
      .doc = "Check every byte of checkpoints against their checksums.\v" PATH_HELP
             "The exit status is 0 where all are whole and 2 where one is not.\n\n"
             "Example: gdn checkpoint verify runs/tiny/checkpoints/step_*",
      .min = 1,
      .max = -1}},
    {"gdn checkpoint diff",
     diff,
     {.arguments = "PATH PATH",
      .doc = "Compare the tensors of two checkpoints.\v" PATH_HELP
             "Printed are the tensors that only one has, that differ in shape, or that differ in a number, "
             "with the "
             "greatest absolute difference: weights, the optimiser's averages and its step counts. Any two "
             "HDF5 files "
             "will do. The exit status is as of diff: 0 where nothing differs, 1 where something does, 2 "
             "where a file "
             "cannot be read.\n\n"
             "Example: gdn checkpoint diff runs/one-rank runs/two-ranks",
      .min = 2,
      .max = 2}},
    {"gdn checkpoint import",
     import,
     {.arguments = "DIR OUT.h5",
      .doc = "Make a checkpoint of a model in a folder of Hugging Face's.\v"
             "DIR has config.json and model.safetensors, or the files that model.safetensors.index.json "
             "names, in "
             "float32, bfloat16 or float16; a tokenizer.json there is carried along, and none is needed. Of "
             "the families there are llama, "
             "mistral, qwen2, qwen3 and gdn's own. "
             "Whatever gdn does not have or does not know (a key, an architecture, a tensor) is refused by "
             "name. "
             "OUT.h5 holds the weights alone, at step 0: verify, diff, gdn eval, gdn generate and "
             "checkpoint.init_from take it; the last takes DIR too.\n\n"
             "Printed is the section model of a configuration to train with. Connections are added to it "
             "there, "
             "under model.delta: they begin as no change to the function.\n\n"
             "Example: gdn checkpoint import SmolLM2-135M smol.h5 > smol.yaml\n"
             "Example: gdn generate smol.h5 --ids --prompt '504 2365' --context 512",
      .min = 2,
      .max = 2}},
    {"gdn checkpoint export",
     export,
     {.arguments = "PATH DIR",
      .doc = "Make a folder of Hugging Face's of a checkpoint.\v" PATH_HELP
             "DIR must not be there, or be empty; it appears complete or not at all. A plain transformer is "
             "a LlamaForCausalLM (or of the family that has its biases and norms), one with connections or "
             "rules between "
             "layers "
             "a GdnForCausalLM, which transformers loads with trust_remote_code=True.\n\n"
             "Example: gdn checkpoint export --format huggingface --dtype bfloat16 runs/plain plain-hf",
      .own = export_options,
      .take = take_option,
      .min = 2,
      .max = 2}},
};
enum { NUM_COMMANDS = sizeof commands / sizeof *commands };

static int run_command(int i, int argc, char **argv) {
    struct settings settings = {.export = {.dtype = "float32", .shard = 5000000000}};
    struct options options;
    int status = options_parse(&commands[i].line, argc, argv, &options, &settings);
    if (!status && !options.done) status = commands[i].run(&options, &settings);
    options_free(&options);
    return status;
}

static const struct command_group group = {
    .name = "gdn checkpoint",
    .expected = "ls, verify, diff, import or export",
    .overview = "Usage: gdn checkpoint ls|verify|diff|import|export [OPTION...] PATH...\n"
                "List, verify and compare checkpoints; take models of other programs in and out.\n\n"
                "  ls       list a run's checkpoints: step, samples, loss, size, state\n"
                "  verify   check every byte against the checksums\n"
                "  diff     compare the tensors of two checkpoints\n"
                "  import   make a checkpoint of a folder of Hugging Face's\n"
                "  export   make such a folder of a checkpoint\n\n"
                "A checkpoint is an HDF5 file, checkpoint.h5, that h5ls and h5py read too; with\n"
                "checkpoint.files: node it joins part_00000.h5 and so on beside it.\n"
                "'gdn checkpoint ls --help' and so on explain each.\n",
    .commands = commands,
    .size = sizeof *commands,
    .count = NUM_COMMANDS,
    .run = run_command,
};

int cmd_checkpoint(int argc, char **argv) {
    return options_choose(&group, argc, argv);
}
