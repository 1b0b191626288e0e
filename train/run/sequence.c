/* The phases in which a run is made, in their order, and the check that they are called in it. What a phase
 * does lies with whoever owns what it makes. */
#include "train/run/run.h"

#include "train/run/backend.h"
#include "train/run/config.h"
#include "train/run/ranks.h"
#include "train/run/start.h"

#include <math.h>

static const struct {
    const char *name;
    bool optional; /* may be left out */
} phases[RUN_PHASES] = {
    [RUN_EMPTY] = {"run_init", false},
    [RUN_CONFIGURED] = {"run_configure", false},
    [RUN_START_FOUND] = {"run_find_start", true}, /* then it starts afresh */
    [RUN_ADOPTED] = {"run_adopt", true},
    [RUN_PREPARED] = {"run_prepare", false},
    [RUN_POSITIONED] = {"run_take_position", true},
    [RUN_DATA_OPEN] = {"run_open_data", true}, /* then steps are of rows that the caller has, and there are no
                                                  evaluations */
    [RUN_DATA_MATCHED] = {"run_match_data", true},
    [RUN_PLANNED] = {"run_plan", false},
    [RUN_RESERVED] = {"run_reserve", false},
    [RUN_LOADED] = {"run_load", false},
    [RUN_CREATED] = {"run_create", false},
};

/* Before a phase: none behind it is done, nor itself, and all before it are. */
static int enter(const struct run *run, enum run_sequence phase) {
    const char *last = phases[run->phase].name, *now = phases[phase].name;
    if (phase <= run->phase)
        return gdn_fail(GDN_INTERNAL, "%s was called after %s: a run goes through its phases in order", now,
                        last);
    for (enum run_sequence p = run->phase + 1; p < phase; p++)
        if (!phases[p].optional)
            return gdn_fail(GDN_INTERNAL, "%s was called after %s: %s comes between them", now, last,
                            phases[p].name);
    return 0;
}

/* After it. */
static int leave(struct run *run, enum run_sequence phase, int status) {
    if (!status) run->phase = phase;
    return status;
}

void run_init(struct run *run) {
    *run = (struct run){.position.best_loss = NAN, .origin.start_loss = NAN};
    run->mesh = mesh_alone();
}

int run_configure(struct run *run, const char *path, char *const *set, int count) {
    TRY(enter(run, RUN_CONFIGURED));
    int status = run_config_read(&run->mesh, path, set, count, &run->config, &run->config_text);
    return leave(run, RUN_CONFIGURED, status);
}

int run_configure_as(struct run *run, const struct config *config) {
    TRY(enter(run, RUN_CONFIGURED));
    run->config = *config;
    return leave(run, RUN_CONFIGURED, run_config_resolve(&run->config, &run->config_text));
}

int run_find_start(struct run *run, const char *directory, const char *resume, FILE *log) {
    TRY(enter(run, RUN_START_FOUND));
    return leave(run, RUN_START_FOUND, start_find(run, directory, resume, log));
}

int run_adopt(struct run *run, char *const *changes, int count, FILE *log) {
    TRY(enter(run, RUN_ADOPTED));
    return leave(run, RUN_ADOPTED, start_adopt(run, changes, count, log));
}

/* What other ranks are not needed for. */
static int divide(struct run *run) {
    const struct partition_place place = partition_place_of(run->mesh.sizes.size, run->mesh.rank);
    TRY(run_config_resolve(&run->config, &run->config_text)); /* with the device that was found */
    TRY(scales_create(run->ops, &run->config.model, &run->scales));
    TRY(spikes_create(&run->config.spikes, &run->spikes));
    TRY(partition_create(&run->config, &place, &run->part));
    return pruning_create(&run->config.train.prune, &run->part.pipeline.edges, &run->pruning);
}

/* A device that was found, not asked for. */
static int can_prune(const struct run *run) {
    if (!run->config.train.prune.by || run->ops->device->host) return 0;
    return gdn_fail(GDN_INPUT,
                    "train.prune.by: connections are pruned in training on the cpu alone, and this machine has a "
                    "device: %s; give device: cpu",
                    run->ops->device->describe());
}

/* Do a device's buffers go through host memory, for which the host waits? */
static bool is_staged(const struct axis *axis) {
    return axis->size > 1 && axis->staging && !axis->device_comm;
}

static int check_staged(const struct run *run) {
    bool staged[AXES] = {false};
    for (int a = 0; a < axes_count(); a++) staged[a] = is_staged(&run->mesh.axis[a]);
    return config_validate_staged(&run->config, staged);
}

static int prepare(struct run *run, FILE *log) {
    TRY(ranks_arrange(&run->mesh, run->config.mesh.size));
    TRY(ranks_share_cores(&run->mesh, log));
    TRY(backend_choose(&run->config, &run->mesh, &run->ops));
    TRY(mesh_agree(&run->mesh, can_prune(run)));
    TRY(mesh_use(&run->mesh, run->ops, (enum mesh_transport)run->config.mesh.transport,
                 run->config.watchdog.step));
    TRY(check_staged(run));
    run->loss_scale = loss_scale_start(run->ops->precision);
    return mesh_agree(&run->mesh, divide(run));
}

int run_prepare(struct run *run, FILE *log) {
    TRY(enter(run, RUN_PREPARED));
    return leave(run, RUN_PREPARED, prepare(run, log));
}

int run_take_position(struct run *run) {
    TRY(enter(run, RUN_POSITIONED));
    const struct checkpoint *from = &run->origin.checkpoint;
    int status = from->path ? start_take_position(run, &from->info) : 0;
    return leave(run, RUN_POSITIONED, mesh_agree(&run->mesh, status));
}

/* Rank 0 alone. */
static int find_tokenizer(const struct run *run, struct run_data_origin *out) {
    const struct checkpoint *from = &run->origin.checkpoint;
    const char *weights = run->config.checkpoint.init_from;
    out->owner = from->path ? from->path : weights;
    if (from->path) return run_tokenizer_of_checkpoint(&from->info, from->path, &out->tokenizer);
    return weights[0]
               ? gdn_fail_in(run_tokenizer_of_weights(weights, &out->tokenizer), "checkpoint.init_from")
               : 0;
}

int run_open_data(struct run *run, FILE *log) {
    TRY(enter(run, RUN_DATA_OPEN));
    struct run_data_origin origin = {.owner = NULL};
    int status = mesh_agree(&run->mesh, run->mesh.rank ? 0 : find_tokenizer(run, &origin));
    if (!status)
        status = run_data_open(&run->config, &run->mesh, &run->position, run->part.share, &origin, log,
                               &run->data);
    carried_free(&origin.tokenizer);
    return leave(run, RUN_DATA_OPEN, status);
}

int run_match_data(struct run *run, bool accept, FILE *log) {
    TRY(enter(run, RUN_DATA_MATCHED));
    const char *before = run->origin.checkpoint.info.data;
    int status = run_data_match(&run->data, &run->config, &run->mesh, before, accept, log);
    if (run->data.changed && run->config.data.validation_fraction > 0)
        run->position.best_loss = run->origin.start_loss = NAN; /* of data that are not these */
    return leave(run, RUN_DATA_MATCHED, status);
}

int run_plan(struct run *run) {
    TRY(enter(run, RUN_PLANNED));
    const struct memory_planning planning = {&run->config, &run->mesh, run->ops->device, &run->part,
                                             &run->data.validation};
    return leave(run, RUN_PLANNED, memory_plan_create(&planning, &run->plan));
}

int run_reserve(struct run *run) {
    TRY(enter(run, RUN_RESERVED));
    int status = training_state_reserve(&run->training, run->ops->device, ops_weight_copy(run->ops),
                                        run->part.table, run->part.shards);
    return leave(run, RUN_RESERVED, mesh_agree(&run->mesh, status));
}

int run_load(struct run *run, FILE *log) {
    TRY(enter(run, RUN_LOADED));
    return leave(run, RUN_LOADED, start_load(run, &run->origin.checkpoint, log));
}

static int create(struct run *run) {
    const struct trainer_setup setup = {
        .config = &run->config,
        .mesh = &run->mesh,
        .ops = run->ops,
        .part = &run->part,
        .policy = run->plan.policy,
        .state = &run->training.state,
    };
    TRY(trainer_create(&setup, &run->trainer));
    if (run->data.validation.sets)
        TRY(evaluation_create(&run->mesh, &run->config, run->part.table, &run->training.state, run->ops,
                              &run->data.validation, &run->evaluation));
    return run_choose(run);
}

int run_create(struct run *run) {
    TRY(enter(run, RUN_CREATED));
    return leave(run, RUN_CREATED, create(run));
}
