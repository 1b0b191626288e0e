/* The program's top: finds the subcommand, and sees that the failure it returns with is printed. Nothing
 * below ends the program. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/config/nearest.h"
#include "train/command/version.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"train", cmd_train, "trains a model, on all ranks under mpirun or srun"},
    {"eval", cmd_eval, "the loss of a checkpoint on a data set"},
    {"prune", cmd_prune, "what each delta connection does for the loss; a smaller model without some"},
    {"rules", cmd_rules, "what rules between layers have learned, by layer and source"},
    {"generate", cmd_generate, "continues a prompt"},
    {"data", cmd_data, "prepares and inspects token files"},
    {"checkpoint", cmd_checkpoint, "lists, verifies and compares checkpoints"},
    {"deltas", cmd_deltas, "lists, rebuilds and plots stored differences of delta connections"},
    {"report", cmd_report, "one HTML page with plots of one run or several"},
    {"plan", cmd_plan, "what a run would take on a mesh of any size, without training"},
    {"check", cmd_check, "whether the machines it is started on are fit for a run"},
    {"bench", cmd_bench, "measures the speed of operations and of whole steps"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *out) {
    fprintf(
        out,
        "Usage: gdn COMMAND [OPTION...] [ARGUMENT...]\n"
        "\n"
        "Trains language models with gated delta connections: besides its predecessor's output, each\n"
        "transformer layer gets what earlier layers' states differ by from its own, through learned gates.\n"
        "\n");
    for (int c = 0; c < COMMANDS; c++) fprintf(out, "  gdn %-12s%s\n", commands[c].name, commands[c].summary);
    fprintf(
        out,
        "\n"
        "gdn COMMAND --help explains a command, gdn train --help-config every key of a configuration, and\n"
        "gdn --version says what the program was built from.\n"
        "\n"
        "A first run, with any plain text file:\n"
        "\n"
        "  gdn train configs/tiny.yaml --set data.train=my.txt --run-dir runs/first\n"
        "  gdn generate --help\n"
        "\n"
        "The run directory then holds config.yaml (every setting written out), metrics.jsonl (a line a step) "
        "and\n"
        "checkpoints/. The same command again continues from the newest checkpoint. On several ranks:\n"
        "\n"
        "  mpirun -n 4 gdn train configs/tiny.yaml --set data.train=my.txt --run-dir runs/first\n"
        "\n"
        "Exit status:\n"
        "  0  finished\n"
        "  1  internal error\n"
        "  2  bad usage, configuration or input\n"
        "  3  stopped early on request, with a checkpoint saved: run again to continue\n"
        "  4  stopped early, and no checkpoint could be saved\n"
        "  5  stopped because training diverged and could not recover\n");
}

static int unknown_command(const char *name) {
    const char *names[COMMANDS + 1] = {NULL};
    for (int c = 0; c < COMMANDS; c++) names[c] = commands[c].name;
    const char *near = name[0] == '-' ? NULL : nearest_word(name, names);
    const char *what = name[0] == '-' ? "option" : "command";
    if (near)
        return gdn_fail(GDN_INPUT, "unknown command '%.100s'; did you mean gdn %s? gdn --help lists all",
                        name, near);
    return gdn_fail(GDN_INPUT, "unknown %s '%.100s'; gdn --help lists what there is", what, name);
}

static int run(int argc, char **argv) {
    if (argc < 2)
        return gdn_fail(GDN_INPUT,
                        "a command is missing, such as gdn train CONFIG.yaml; gdn --help lists them");
    bool help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
    bool version = !strcmp(argv[1], "--version");
    if (help && gdn_print_failure_here()) print_help(stdout);
    if (version && gdn_print_failure_here()) version_print(stdout);
    if (help || version) return GDN_OK;
    for (int c = 0; c < COMMANDS; c++) {
        if (strcmp(argv[1], commands[c].name)) continue;
        char name[64];
        snprintf(name, sizeof name, "gdn %s", commands[c].name);
        argv[1] = name;
        return commands[c].run(argc - 1, argv + 1);
    }
    return unknown_command(argv[1]);
}

/* A standard stream that the caller has closed fails when it is used; without this, the first file that is
 * opened would take its place, and be written into. */
static void hold_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int gdn_main(int argc, char **argv) {
    hold_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file beyond ulimit -f is a write that fails, and is told as one */
    int status = run(argc, argv);
    if (status == GDN_OK) status = commands_finish_printing();
    commands_report(status);
    return status;
}
