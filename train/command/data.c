/* gdn data: a group of commands about token files. */
#include "train/command/data.h"

#include <stdio.h>

#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/command/options.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"gdn data write", data_write},
    {"gdn data tokenizer", data_tokenizer},
    {"gdn data show", data_show},
    {"gdn data sample", data_sample},
};

static int run_command(int i, int argc, char **argv) {
    return commands[i].run(argc, argv);
}

int cmd_data(int argc, char **argv) {
    char list[FORMAT_LIST], overview[3 * FORMAT_LIST];
    snprintf(overview, sizeof overview,
             "Usage: gdn data write|tokenizer|show|sample [OPTION...] PATH...\n"
             "Prepare and inspect token files, the data of gdn train.\n\n"
             "  write      turn text files into a token file (%s)\n"
             "  tokenizer  train a tokenizer on text\n"
             "  show       print what a token file holds\n"
             "  sample     print samples just as training reads them\n\n"
             "'gdn data write --help' and so on explain each.\n",
             token_format_list(FORMATS_WRITTEN, ", ", list));
    const struct command_group group = {
        .name = "gdn data",
        .expected = "write, tokenizer, show or sample",
        .overview = overview,
        .commands = commands,
        .size = sizeof *commands,
        .count = sizeof commands / sizeof *commands,
        .run = run_command,
    };
    return options_choose(&group, argc, argv);
}
