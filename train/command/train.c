/* gdn train: from a configuration to a run directory. Everything is checked by reading first; only then is
 * something created. */
#include "train/command/commands.h"

#include "dist/mpi/activity.h"
#include "train/health/guard.h"
#include "train/loop/loop.h"
#include "train/command/options.h"
#include "train/run/ranks.h"
#include "train/health/signals.h"
#include "train/health/watchdog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_DATA_CHANGED = 256 };

static const struct argp_option own[] = {
    {"data-changed", KEY_DATA_CHANGED, "refuse|accept", 0,
     "refuse (default): a run does not go on with training data that are not those its checkpoint was made "
     "with; accept: it does, in the order that follows from the data of now",
     0},
    {0},
};

struct arguments {
    bool accept_data; /* --data-changed accept */
};

static int take(int key, const char *value, void *input) {
    struct arguments *given = input;
    (void)key;
    return options_data_changed(value, &given->accept_data);
}

static const struct command_line line = {
    .arguments = "CONFIG.yaml",
    .doc =
        "Train a model as CONFIG.yaml says, on all ranks that it is started with."
        "\v"
        "Examples:\n"
        "  gdn train configs/tiny.yaml\n"
        "  gdn train configs/tiny.yaml --set train.steps=2000 --set train.lr=5e-4\n"
        "  mpirun -n 4 gdn train configs/tiny.yaml --run-dir runs/four\n"
        "  mpirun -n 8 gdn train configs/tiny.yaml --set mesh.tensor=2 \\\n      --set mesh.pipeline=2\n"
        "\n"
        "The run directory receives config.yaml (every setting, defaults too), metrics.jsonl (a line of "
        "JSON for each step), checkpoints/ and tensorboard/. Running the same command again goes on from the "
        "newest checkpoint there, with any number of ranks and any mesh that fits model and batch; that run "
        "then "
        "takes the very steps that an uninterrupted one would have.\n"
        "\n"
        "A run may go on with another batch size, batch ramp, sequence length or optimiser from its newest "
        "checkpoint: add --resume-with train.batch_size=64 or train.optimizer=muon. It stays so, with or "
        "without the option; the same command may "
        "be repeated.\n"
        "\n"
        "Ctrl-C (INT), TERM, USR1 or USR2, a file `stop` in the run directory, train.time_limit and the end "
        "of a Slurm "
        "job's time stop the run after the step in progress, with a checkpoint. Exit status: 0 "
        "finished; "
        "1 internal error; 2 bad usage, configuration or data; 3 stopped on request, checkpoint saved; "
        "4 stopped, no checkpoint could be saved; 5 training diverged.\n"
        "\n"
        "gdn train --help-config explains every key of the configuration.",
    .common = OPTION_SET | OPTION_RUN_DIR | OPTION_RESUME | OPTION_HELP_CONFIG | OPTION_RESUME_WITH,
    .own = own,
    .take = take,
    .min = 1,
    .max = 1,
};

static int take_existing(struct rundir *rundir) {
    TRY(rundir_lock_existing(rundir));
    return checkpoint_clean_up(rundir->path);
}

static int lock_existing(struct run *run, struct rundir *rundir) {
    return mesh_agree(&run->mesh, run->mesh.rank == 0 ? take_existing(rundir) : 0);
}

/* Every rank writes its part of a checkpoint; this must not fail at the end of the training. */
static int see_rundir(const struct rundir *rundir) {
    if (!access(rundir->path, W_OK | X_OK)) return 0;
    return gdn_fail(
        GDN_INPUT,
        "run directory %s cannot be written by this rank: %s; all nodes need to see it (a shared file "
        "system, an absolute path)",
        rundir->path, strerror(errno));
}

/* From the configuration to where training starts. *done: there is nothing left to do. */
static int find_position(struct run *run, struct rundir *rundir, const struct options *options, FILE *log,
                         bool *done) {
    TRY(lock_existing(run, rundir));
    TRY(run_find_start(run, rundir->path, options->resume, log));
    TRY(run_adopt(run, options->resume_with, options->num_resume_with, log));
    TRY(run_prepare(run, log));
    TRY(run_take_position(run));
    *done = run->origin.resumed && !run->origin.elsewhere && run->position.step >= run->config.train.steps &&
            !run->position.evaluation_due;
    return 0;
}

/* From there to where the first step can be taken. */
static int make_ready(struct run *run, const struct arguments *given, FILE *log) {
    TRY(run_open_data(run, log));
    TRY(run_match_data(run, given->accept_data, log));
    TRY(run_plan(run));
    TRY(run_reserve(run));
    TRY(run_load(run, log));
    return run_create(run);
}

/* Everything but MPI's beginning and end. */
static int train(struct run *run, struct rundir *rundir, const struct options *options,
                 const struct arguments *given, struct watchdog **watchdog) {
    FILE *out = run->mesh.rank == 0 ? stdout : NULL, *log = run->mesh.rank == 0 ? stderr : NULL;
    bool done;
    TRY(mesh_agree(&run->mesh, config_validate_changes(options->resume_with, options->num_resume_with)));
    TRY(run_configure(run, options->argument[0], options->set, options->num_set));
    guard_limits(&run->config.watchdog);
    TRY(watchdog_begin(&run->mesh, &run->config.watchdog, watchdog));
    TRY(find_position(run, rundir, options, log, &done));
    if (done) {
        if (out)
            fprintf(out,
                    "%s has done its %lld steps already: nothing is left to do; raise train.steps to go on\n",
                    run->origin.checkpoint.path, (long long)run->position.step);
        return 0;
    }
    TRY(make_ready(run, given, log));

    struct stop stop = {0};
    TRY(mesh_agree(&run->mesh, stop_open(&stop, rundir->path, run->config.train.time_limit, run->mesh.rank)));
    const struct rundir_files files = {run->config_text, run->data.tokenizer.carried.file,
                                       run->data.tokenizer.carried.configuration};
    int status = run->mesh.rank == 0 ? rundir_open(rundir, &files, run->position.step) : 0;
    TRY(mesh_agree(&run->mesh, status));
    TRY(mesh_agree(&run->mesh, see_rundir(rundir)));
    return loop_run(run, rundir, &stop, out);
}

/* What MPI's beginning is watched by: of a configuration that can be read twice and is right, which is looked
 * at again when all ranks are there. */
static void limit_beginning(const struct options *options) {
    struct config config;
    struct stat about;
    if (stat(options->argument[0], &about) || !S_ISREG(about.st_mode)) return;
    if (!config_load(options->argument[0], options->set, options->num_set, &config)) {
        guard_limits(&config.watchdog);
        config_free(&config);
    }
    gdn_failure_clear();
}

static int train_on_ranks(const struct options *options, const struct arguments *given) {
    struct run run;
    struct rundir rundir;
    struct watchdog *watchdog = NULL;
    run_init(&run);
    TRY(rundir_name(&rundir, options->run_dir, options->argument[0]));
    TRY(signals_hold(gdn_print_failure_here()));
    limit_beginning(options);
    int status = ranks_begin(&run.mesh);
    if (!status) status = train(&run, &rundir, options, given, &watchdog);
    signals_quiet();
    if (executor_failed(run.trainer.executor) || executor_failed(run.evaluation.executor))
        ranks_abort(&run.mesh, status);
    activity_phase(PHASE_END, run.position.step);
    commands_flush_unneeded(stdout);
    rundir_close(&rundir);
    run_free(&run);
    watchdog_end(watchdog);
    return ranks_end(&run.mesh, status);
}

int cmd_train(int argc, char **argv) {
    struct options options;
    struct arguments given = {0};
    int status = options_parse(&line, argc, argv, &options, &given);
    if (!status && !options.done) status = train_on_ranks(&options, &given);
    options_free(&options);
    return status;
}
