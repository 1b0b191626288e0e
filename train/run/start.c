/* Where a run starts from: a checkpoint, other weights, or drawn ones. */
#include "train/run/run.h"

#include "model/table/params.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    if (log) fputs(resumed.text, log);
    run->position.samples = position(info->samples, resumed.length, run->config.train.sequence_length);
    run->position.tokens = info->tokens >= 0 ? info->tokens : info->samples * resumed.length;
    run->origin.configured = resumed.configured;
    if (resumed.changed) run->position.on_disk = false; /* not of this configuration */
    resumed.configured = NULL;
    resumed_free(&resumed);
    return run_resolve_text(run);
}

int run_adopt(struct run *run, const struct checkpoint *start, char *const *changes, int count, FILE *log) {
    if (start->path) return mesh_agree(&run->mesh, adopt(run, &start->info, changes, count, log));
    int status = count ? gdn_fail(GDN_INPUT,
                                  "--resume-with %s: there is no checkpoint to go on from; a run that begins "
                                  "takes this from its configuration, or --set",
                                  changes[0])
                       : 0;
    return mesh_agree(&run->mesh, status);
}

int run_take_position(struct run *run, const struct checkpoint_info *info) {
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

int run_find_start(struct run *run, const char *directory, const char *resume, FILE *log,
                   struct checkpoint *start) {
    *start = (struct checkpoint){0};
    if (resume && !strcmp(resume, "none")) {
        int status = 0;
        if (run->mesh.rank == 0 && checkpoint_any(directory))
            status =
                gdn_fail(GDN_INPUT,
                         "--resume none: run directory %s has checkpoints already; give another --run-dir, "
                         "or --resume auto to go on from them",
                         directory);
        return mesh_agree(&run->mesh, status);
    }
    if (!resume || !strcmp(resume, "auto")) {
        TRY(checkpoint_find(&run->mesh, directory, log, start));
        run->position.on_disk = start->path != NULL;
        run->origin.skipped = start->skipped;
    } else {
        TRY(open_given(run, resume, start));
        run->origin.elsewhere = true;
    }
    return 0;
}

/* A weight depends on its place alone, so threads may draw in any order. */
static void draw(struct run *run) {
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < run->part.table->rows; i++) {
        const struct row *row = &run->part.table->row[i];
        params_init(row, run->config.train.seed, run->training.saved.weight + row->offset);
    }
}

static int load(struct run *run, const struct checkpoint *start, FILE *log) {
    struct checkpoint_content content = run_content(run);
    if (start->path) {
        spikes_before_load(&run->spikes);
        TRY(checkpoint_load(&run->mesh, start, &content));
        if (!spikes_loaded(&run->spikes) && log)
            fprintf(log,
                    "gdn: note: %s has no values of a spikes.window of %ld steps: the window starts empty\n",
                    start->path, run->config.spikes.window);
        return 0;
    }
    draw(run);
    const char *from = run->config.checkpoint.init_from;
    if (!from[0]) return 0;
    int missing = 0;
    TRY(gdn_fail_in(checkpoint_load_initial(&run->mesh, from, &content, &missing), "checkpoint.init_from"));
    if (log && missing)
        fprintf(log,
                "gdn: note: %s has no weights for %d tensors of delta connections: they start fresh, as no "
                "change to the "
                "function\n",
                from, missing);
    return 0;
}

int run_load(struct run *run, const struct checkpoint *start, FILE *log) {
    TRY(load(run, start, log));
    scales_restore(&run->scales);
    return run->ops->device->host
               ? 0
               : mesh_agree(&run->mesh, state_copy(&run->training.memory, &run->training.mirror));
}
