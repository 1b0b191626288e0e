/* gdn report: one HTML page about one run or several. One process, no MPI. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/output.h"
#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/command/options.h"
#include "train/command/outputs.h"
#include "train/command/version.h"
#include "train/report/page.h"

enum { MAX_RUNS = 32 };

static int take_option(int key, const char *value, void *input) {
    const char **output = input;
    (void)key;
    *output = value;
    return GDN_OK;
}

static const struct argp_option own[] = {
    {"output", 'o', "FILE", 0, "The page to write (default: RUN/report.html; of several runs ./report.html)",
     0},
    {0},
};

static const struct command_line line = {
    .arguments = "RUN...",
    .doc =
        "Make one HTML page with plots of a run, or of several runs side by side.\v"
        "RUN is a run directory, as gdn train leaves it, of a run that is over or still training. The page "
        "shows loss, gradient norm and learning rate, throughput and step times, memory by category, gates "
        "and "
        "contributions of delta connections by layer and distance over time, which of them are in use where the run "
        "prunes, checkpoints, and everything "
        "that interrupted the run: starts, signals, spikes, faults. Of several runs it has the same plots "
        "with a "
        "colour for each, aligned by step, and a table of the configuration keys that differ.\n\n"
        "The page is one file that needs no other, nor a network, and shows nothing but what metrics.jsonl "
        "and "
        "config.yaml say. What a run has not recorded is left out, with a line that says which setting "
        "records it: "
        "train.gate_interval for gates, monitor.interval for memory and connections over time, "
        "train.eval_interval for the validation loss.\n\n"
        "Steps that a run did again, after it had gone back to an older checkpoint, count once: the last "
        "time. "
        "Goodput is the time of the steps that count over the time from the first start to the last "
        "event.\n\n"
        "gnuplot draws the figures (Debian: package gnuplot-nox). An existing page is replaced.\n\n"
        "Examples:\n"
        "  gdn report runs/tiny\n"
        "  gdn report runs/plain runs/gdn --output compare.html",
    .own = own,
    .take = take_option,
    .min = 1,
    .max = MAX_RUNS,
};

/* Runs whose directories have the same name are told apart by their paths. */
static int name_apart(struct report *report) {
    bool same[MAX_RUNS] = {false};
    for (int a = 0; a < report->count; a++)
        for (int b = 0; b < report->count; b++)
            same[a] |= a != b && !strcmp(report->run[a].name, report->run[b].name);
    for (int r = 0; r < report->count; r++) {
        if (!same[r]) continue;
        char *path = strdup(report->run[r].path);
        if (!path) return report_no_memory();
        free(report->run[r].name);
        report->run[r].name = path;
    }
    return GDN_OK;
}

static int make_page(struct report *report, const char *path) {
    char *text = NULL;
    size_t size = 0;
    report->page = open_memstream(&text, &size);
    if (!report->page) return report_no_memory();
    int status = report_page(report);
    if (fclose(report->page) && !status) status = report_no_memory();
    if (!status) status = output_text(path, text, size);
    if (!status) printf("%s\n", path);
    free(text);
    return status;
}

static int make_report(const struct options *options, const char *output) {
    struct report_run run[MAX_RUNS];
    struct report report = {.run = run, .commit = version_commit()};
    char *path = NULL;
    int status = GDN_OK;
    for (; report.count < options->num_arguments && !status; report.count++)
        status = report_run_read(options->argument[report.count], &run[report.count]);
    if (!status) status = name_apart(&report);
    bool one = options->num_arguments == 1;
    if (!status && asprintf(&path, "%s%s",
                            output ? output
                            : one  ? options->argument[0]
                                   : "report.html",
                            !output && one ? "/report.html" : "") < 0) {
        path = NULL;
        status = report_no_memory();
    }
    for (int r = 0; r < report.count && !status; r++)
        status = outputs_verify("--output", path, options->argument[r]);
    if (!status) status = make_page(&report, path);
    free(path);
    while (report.count > 0) report_run_free(&run[--report.count]);
    return status;
}

int cmd_report(int argc, char **argv) {
    const char *output = NULL;
    struct options options;
    int status = options_parse(&line, argc, argv, &options, &output);
    if (!status && !options.done) status = make_report(&options, output);
    options_free(&options);
    return status;
}
