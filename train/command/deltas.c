/* gdn deltas: lists, shows, rebuilds and plots stored differences. One process, no MPI. */
#include <stdio.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/command/deltas.h"
#include "train/command/options.h"

enum key { KEY_STEP = 256, KEY_LAYER, KEY_DISTANCE, KEY_JSON, KEY_RANK, KEY_OUT, KEY_FORCE, KEY_FORMAT };

static int take_option(int key, const char *value, void *input) {
    struct deltas_settings *settings = input;
    switch (key) {
    case KEY_STEP:
        return ranges_take("--step", value, &settings->choice.step);
    case KEY_LAYER:
        return ranges_take("--layer", value, &settings->choice.layer);
    case KEY_DISTANCE:
        return ranges_take("--distance", value, &settings->choice.distance);
    case KEY_JSON:
        settings->json = true;
        return GDN_OK;
    case KEY_RANK:
        return options_long("--rank", value, 0, INT32_MAX, &settings->rank);
    case KEY_OUT:
        return options_path("--out", value, &settings->out);
    case KEY_FORCE:
        settings->force = true;
        return GDN_OK;
    default: /* KEY_FORMAT */
        settings->format = strcmp(value, "png") ? PLOT_SVG : PLOT_PNG;
        if (!strcmp(value, "svg") || !strcmp(value, "png")) return GDN_OK;
        return gdn_fail(GDN_INPUT, "--format '%s': svg or png is expected", value);
    }
}

#define CHOICE_OPTIONS(steps)                                                                                \
    {"step", KEY_STEP, "N", 0, "Steps, such as 100 or 0,50,100-200 (default: " steps ")", 0},                \
        {"layer", KEY_LAYER, "L", 0, "Target layers, counted from 0 (default: all)", 0}, {                   \
        "distance", KEY_DISTANCE, "D", 0, "Distances (default: all)", 0                                      \
    }

static const struct argp_option ls_options[] = {
    CHOICE_OPTIONS("all"),
    {"json", KEY_JSON, NULL, 0, "One JSON object instead of a table", 0},
    {0},
};
static const struct argp_option show_options[] = {
    CHOICE_OPTIONS("the newest"),
    {0},
};
static const struct argp_option reconstruct_options[] = {
    CHOICE_OPTIONS("the newest"),
    {"rank", KEY_RANK, "R", 0, "Use the first R singular values only (default: all that are stored)", 0},
    {"out", KEY_OUT, "FILE", 0, "The HDF5 file to write", 0},
    {"force", KEY_FORCE, NULL, 0, "Replace the file if it exists", 0},
    {0},
};
static const struct argp_option plot_options[] = {
    CHOICE_OPTIONS("all"),
    {"out", KEY_OUT, "DIRECTORY", 0, "Where figures go; created if missing, figures in it are replaced", 0},
    {"format", KEY_FORMAT, "FORMAT", 0, "svg (default) or png", 0},
    {0},
};

#define RUN_HELP                                                                                             \
    "RUN is a run directory, or its folder deltas. Differences are stored by runs with "                     \
    "delta_store.interval. "
#define DAMAGE_HELP                                                                                          \
    "Every byte is checked against checksums. What is whole is shown in spite of damaged files, which are "  \
    "named; the exit status is then 2.\n\n"

static const struct {
    const char *name;
    int (*run)(const struct deltas_settings *);
    bool newest; /* without --step: of the newest alone */
    struct command_line line;
} commands[] = {
    {"gdn deltas ls",
     deltas_ls,
     false,
     {.arguments = "RUN",
      .doc = "List stored differences, by step, layer and distance.\v" RUN_HELP
             "A line has the source layer, the size of the difference as a matrix (T tokens x D channels), "
             "the rank of the "
             "factors, their relative error (Frobenius norm), the bytes of the factors and of the difference "
             "itself, and the mean of the connection's gates. " DAMAGE_HELP
             "Example: gdn deltas ls runs/tiny --step 0-500 --layer 3,7",
      .own = ls_options,
      .take = take_option,
      .min = 1,
      .max = 1}},
    {"gdn deltas show",
     deltas_show,
     true,
     {.arguments = "RUN",
      .doc = "Show all that is known of stored differences.\v" RUN_HELP
             "Shown are the shape, the norm, the error of the factors, the first singular values, the energy "
             "by rank "
             "(what part of the squared norm the first 1, 2, 4, ... singular values hold, and the error "
             "where only these are kept), and how the gates are spread over 0 to 1. " DAMAGE_HELP
             "Example: gdn deltas show runs/tiny --layer 3 --distance 1",
      .own = show_options,
      .take = take_option,
      .min = 1,
      .max = 1}},
    {"gdn deltas reconstruct",
     deltas_reconstruct,
     true,
     {.arguments = "RUN",
      .doc = "Write a difference, as the factors have it, to an HDF5 file.\v" RUN_HELP
             "The file has one dataset, delta [batch, length, hidden] = U diag(sigma) Vt, with attributes "
             "that tell where "
             "it is from, its rank and the relative error. It is complete or not there.\n\n"
             "Example: gdn deltas reconstruct runs/tiny --layer 3 --distance 1 --rank 4 \\\n      --out "
             "delta.h5",
      .own = reconstruct_options,
      .take = take_option,
      .min = 1,
      .max = 1}},
    {"gdn deltas plot",
     deltas_plot,
     false,
     {.arguments = "RUN",
      .doc =
          "Draw figures of stored differences, by gnuplot (Debian: gnuplot-nox).\v" RUN_HELP
          "The figures: overview (maps of layers and distances), spectra (singular values, the first being "
          "1) and energy (part of the squared norm by rank), all of the newest step; gates (their mean "
          "and one deviation around it), errors and norms over the steps. Of more than 12 layers, 12 are "
          "drawn, evenly chosen; --layer chooses others. A run that prunes (train.prune) stores none: of it there is "
          "one figure, connections, with a row for each and a bar for the steps in which it is in use.\n\n"
          "Example: gdn deltas plot runs/tiny --out figures",
      .own = plot_options,
      .take = take_option,
      .min = 1,
      .max = 1}},
};
enum { NUM_COMMANDS = sizeof commands / sizeof *commands };

static int run_command(int i, int argc, char **argv) {
    struct deltas_settings settings = {.rank = DELTAS_ALL};
    struct options options;
    int status = options_parse(&commands[i].line, argc, argv, &options, &settings);
    if (!status && !options.done) {
        settings.run = options.argument[0];
        settings.choice.newest = commands[i].newest && !settings.choice.step.count;
        status = commands[i].run(&settings);
    }
    options_free(&options);
    return status;
}

static const struct command_group group = {
    .name = "gdn deltas",
    .expected = "ls, show, reconstruct or plot",
    .overview = "Usage: gdn deltas ls|show|reconstruct|plot [OPTION...] RUN\n"
                "Look at stored differences (target - source) of delta connections.\n\n"
                "  ls            list them: rank, error, bytes, gates\n"
                "  show          all that is known of one: singular values, energy by rank, gates\n"
                "  reconstruct   write one to an HDF5 file\n"
                "  plot          draw figures of all\n\n"
                "A run with delta_store.interval stores them in RUN/deltas as HDF5 files of low-rank\n"
                "factors, which h5ls and h5py read too. 'gdn deltas ls --help' and so on explain each.\n",
    .commands = commands,
    .size = sizeof *commands,
    .count = NUM_COMMANDS,
    .run = run_command,
};

int cmd_deltas(int argc, char **argv) {
    return options_choose(&group, argc, argv);
}
