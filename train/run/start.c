#include "train/run/start.h"

#include "model/table/params.h"
#include "train/huggingface/huggingface.h"
#include "train/run/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Sequences of another length are cut elsewhere: the data go on at the first one that begins no earlier than
 * where those consumed have ended. */
static int64_t position(int64_t samples, long before, long now) {
    return before == now ? samples : (samples * before + now - 1) / now;
}

static int adopt(struct run *run, const struct checkpoint_info *info, char *const *changes, int count,
                 FILE *log) {
    const struct resume resume = {info->config, info->configured, info->step, changes, count};
    struct resumed resumed;
    TRY(config_resume(&run->config, &resume, &resumed));
    if (info->samples > INT64_MAX / 4 / resumed.length) {
        resumed_free(&resumed);
        return gdn_fail(GDN_INPUT, "%s is damaged: attribute samples is %lld", run->origin.checkpoint.path,
                        (long long)info->samples);
    }
    if (log) fputs(resumed.text, log);
    run->position.samples = position(info->samples, resumed.length, run->config.train.sequence_length);
    run->position.tokens = info->tokens >= 0 ? info->tokens : info->samples * resumed.length;
    run->origin.configured = resumed.configured;
    if (resumed.changed) run->position.on_disk = false; /* not of this configuration */
    resumed.configured = NULL;
    resumed_free(&resumed);
    return run_config_resolve(&run->config, &run->config_text);
}

int start_adopt(struct run *run, char *const *changes, int count, FILE *log) {
    const struct checkpoint *from = &run->origin.checkpoint;
    if (from->path) return mesh_agree(&run->mesh, adopt(run, &from->info, changes, count, log));
    int status = count ? gdn_fail(GDN_INPUT,
                                  "--resume-with %s: there is no checkpoint to go on from; a run that begins "
                                  "takes this from its configuration, or --set",
                                  changes[0])
                       : 0;
    return mesh_agree(&run->mesh, status);
}

int start_take_position(struct run *run, const struct checkpoint_info *info) {
    TRY(config_match_resume(&run->config, info->config));
    run->position.step = info->step;
    bool comparable;
    TRY(config_measured_as(&run->config, info->config, &comparable));
    run->position.best_loss = comparable ? info->best_loss : NAN;
    run->origin.start_loss = comparable ? info->loss : NAN;
    run->position.evaluation_due = info->evaluation_due;
    loss_scale_resume(&run->loss_scale, info->loss_scale, info->loss_scale_good);
    run->origin.resumed = true;
    return 0;
}

/* Opens the checkpoint that --resume names. */
static int open_given(struct run *run, const char *resume, struct checkpoint *start) {
    char *path = NULL;
    TRY(mesh_agree(&run->mesh, gdn_fail_in(checkpoint_resolve(resume, &path), "--resume '%s'", resume)));
    int status = gdn_fail_in(checkpoint_open(&run->mesh, path, start), "--resume '%s'", resume);
    free(path);
    return status;
}

/* Where --resume names the very checkpoint that the run directory has as its newest, the run has it. */
static int take_own(struct run *run, const char *directory) {
    struct stat given, newest;
    char *path = NULL;
    bool own = run->mesh.rank == 0 && !checkpoint_resolve(directory, &path) &&
               !stat(run->origin.checkpoint.path, &given) && !stat(path, &newest) &&
               given.st_dev == newest.st_dev && given.st_ino == newest.st_ino;
    free(path);
    gdn_failure_clear(); /* there may be none */
    int any = mesh_any(&run->mesh, own);
    if (any < 0) return GDN_INTERNAL;
    run->origin.elsewhere = !any;
    run->position.on_disk = any;
    return 0;
}

/* A new run must not mix with another one's checkpoints. */
static int refuse_others(const struct run *run, const char *directory) {
    if (run->mesh.rank || !checkpoint_any(directory)) return 0;
    return gdn_fail(GDN_INPUT,
                    "--resume none: run directory %s has checkpoints already; give another --run-dir, or "
                    "--resume auto to go on from them",
                    directory);
}

int start_find(struct run *run, const char *directory, const char *resume, FILE *log) {
    struct run_origin *origin = &run->origin;
    if (resume && !strcmp(resume, "none")) return mesh_agree(&run->mesh, refuse_others(run, directory));
    origin->elsewhere = resume && strcmp(resume, "auto") != 0;
    if (origin->elsewhere) {
        TRY(open_given(run, resume, &origin->checkpoint));
        return take_own(run, directory);
    }
    TRY(checkpoint_find(&run->mesh, directory, log, &origin->checkpoint));
    run->position.on_disk = origin->checkpoint.path != NULL;
    return 0;
}

static int load(struct run *run, const struct checkpoint *start, FILE *log) {
    struct checkpoint_content content = run_content(run);
    if (start->path) {
        spikes_before_load(&run->spikes);
        TRY(mesh_agree(&run->mesh, config_other_optimizer(&run->config, start->info.config, &content.fresh)));
        if (content.fresh && log)
            fprintf(log,
                    "gdn: note: what this optimiser keeps of a tensor and %s does not have starts at zero\n",
                    start->path);
        TRY(checkpoint_load(&run->mesh, start, &content));
        if (run->config.train.prune.by)
            TRY(mesh_agree(&run->mesh, gdn_fail_in(pruning_read(&run->pruning, start->info.pruning), "%s", start->path)));
        if (!spikes_loaded(&run->spikes) && log)
            fprintf(log,
                    "gdn: note: %s has no values of a spikes.window of %ld steps: the window starts empty\n",
                    start->path, run->config.spikes.window);
        return 0;
    }
    params_init_all(run->part.table, run->config.train.seed, run->training.saved.weight);
    const char *from = run->config.checkpoint.init_from;
    if (!from[0]) return 0;
    int missing = 0;
    int status = huggingface_is(from) ? huggingface_load(&run->mesh, from, &run->config, &content, &missing)
                                      : checkpoint_load_initial(&run->mesh, from, &content, &missing);
    TRY(gdn_fail_in(status, "checkpoint.init_from"));
    if (log && missing)
        fprintf(log,
                "gdn: note: %s has no weights for %d tensors of connections and rules between layers: they "
                "start fresh\n",
                from, missing);
    return 0;
}

int start_load(struct run *run, const struct checkpoint *checkpoint, FILE *log) {
    TRY(load(run, checkpoint, log));
    scales_restore(&run->scales);
    return mesh_agree(&run->mesh, training_state_upload(&run->training));
}

/* --------------------------------------------------------------------------------------- the way back */

/* Takes the position of the newest whole checkpoint, where that lies behind; else `reason` says why not, and
 * the position is as it was. Collective. */
static bool step_back(struct run *run, const char *directory, struct checkpoint *to, const char **reason) {
    const struct run_position position = run->position;
    const struct loss_scale scale = run->loss_scale;
    const struct run_origin origin = run->origin;
    FILE *log = run->mesh.rank == 0 ? stderr : NULL;
    int status = checkpoint_find(&run->mesh, directory, log, to);
    if (!status && to->path) status = mesh_agree(&run->mesh, start_take_position(run, &to->info));
    const bool back = !status && to->path && run->position.step < position.step;
    *reason = status      ? "there are checkpoints, but none that training could go back to"
              : !to->path ? "there is no checkpoint yet to go back to"
                          : "the newest checkpoint is of a later step";
    if (status) gdn_failure_clear();
    run->origin = origin;
    run->position.best_loss = position.best_loss;
    if (back) return true;
    run->position.step = position.step;
    run->loss_scale = scale;
    return false;
}

int run_rewind(struct run *run, const char *directory, bool *back, const char **reason) {
    struct checkpoint to = {0};
    const int64_t so_far = spikes_so_far(&run->spikes);
    const struct spike spike = run->spikes.last;
    *back = false;
    if (run->origin.elsewhere) {
        *reason = "this start has no checkpoint of its own yet to go back to";
        return 0;
    }
    *back = step_back(run, directory, &to, reason);
    run->position.on_disk = false;        /* its data position is another one */
    run->position.evaluation_due = false; /* that was made up for */
    int status = 0;
    if (*back) {
        *reason = "";
        if (run->scales.word)
            memset(run->scales.word, 0, (size_t)run->scales.count * sizeof *run->scales.word);
        status = start_load(run, &to, NULL);
        if (!status) status = run_choose(run);
        spikes_set_so_far(&run->spikes, so_far);
        run->spikes.last = spike;
    }
    checkpoint_close(&to);
    return status;
}
