#include "dist/mpi/activity.h"
#include "model/params/edges.h"
#include "train/optimizer/update.h"
#include "train/step/private.h"

const struct connection_sums *executor_connections(const struct executor *executor) {
    return executor->found_connections;
}

bool executor_failed(const struct executor *executor) {
    return executor && executor->failed;
}

/* ------------------------------------------------------------------------------------------- sums */

static void clear_sums(struct executor *x) {
    const struct device *device = x->e.ops->device;
    device->clear(x->sums, (size_t)x->micro_batches * sizeof *x->sums);
    if (x->step->options->each || x->step->options->effects)
        device->clear(x->connections, (size_t)x->edges->count * sizeof *x->connections);
    if (x->e.state) x->e.ops->zero(x->table->total, x->e.state->gradient);
    if (x->e.state) executor_begin_absolute(x);
    executor_look_begin(x);
}

/* The one place where a step waits for the device. */
static void add_up(struct executor *x) {
    struct step *step = x->step;
    struct loss_sums all = {0};
    const struct device *device = x->e.ops->device;
    const struct mesh *mesh = x->e.mesh;
    bool by_device = false;
    for (int a = 0; a < axes_count(); a++) by_device |= mesh->axis[a].device_comm != NULL;
    if (by_device) activity_enter("device", "exchanges", -1, -1); /* in which it may wait for other ranks */
    device->download(x->found, x->sums, (size_t)x->micro_batches * sizeof *x->sums);
    if (by_device) activity_leave();
    if (step->options->each || step->options->effects)
        device->download(x->found_connections, x->connections,
                         (size_t)x->edges->count * sizeof *x->connections);
    step->first_bad = executor_first_bad(x);
    step->connections = edge_set_measured(step->options->active, x->edges);
    for (int i = 0; i < x->in_step; i++) {
        all.ce += x->found[i].ce;
        all.sparsity += x->found[i].sparsity;
        all.entropy += x->found[i].entropy;
        all.z += x->found[i].z;
        for (int e = 0; e < x->e.config->exit.num_layers; e++) all.exits[e] += x->found[i].exits[e];
    }
    step->sums = all;
    step->absolute = executor_absolute(x);
}

/* ------------------------------------------------------------------------------------------- the walk */

action_handler *const executor_handlers[ACTS] = {
    [ACT_RECEIVE] = execute_receive,
    [ACT_POST] = execute_post,
    [ACT_TAKE] = execute_take,
    [ACT_FORWARD] = execute_forward,
    [ACT_PROJECT] = execute_project,
    [ACT_BACKWARD] = execute_backward,
    [ACT_WEIGHTS] = execute_weights,
    [ACT_UNPROJECT] = execute_unproject,
    [ACT_SEND] = execute_send,
    [ACT_FREE] = execute_free,
    [ACT_SHARE] = execute_share,
    [ACT_REDUCE] = execute_reduce,
    [ACT_FINISH] = execute_finish,
    [ACT_NORM] = NULL, /* where the walk stops and the caller decides (update) */
    [ACT_UPDATE] = execute_update,
    [ACT_GATHER] = execute_gather,
    [ACT_GATHERED] = execute_gathered,
};

/* Calls on an axis and passes do not return their failures. */
static int status_of(const struct execution *e) {
    int status = model_status(e->model);
    for (int i = 0; i < axes_count() && !status; i++) status = e->mesh->axis[axis_sum_order[i]].status;
    return status;
}

static void describe_action(const void *action, char text[ACTIVITY_TEXT]) {
    action_text(action, text);
}

/* Does the list's actions from *at on, up to its norm, its end or the first failure. */
static int walk(struct executor *x, int *at) {
    const struct walk with = {.by_kind = executor_handlers, .walker = x, .locations = &x->locations};
    for (; *at < x->list->count && x->list->action[*at].act != ACT_NORM; ++*at) {
        const struct action *a = &x->list->action[*at];
        activity_action(a, describe_action);
        TRY(walk_action(&with, a));
        TRY(status_of(&x->e));
    }
    return 0;
}

/* Everything before the norm, in which nobody writes weights. Evaluations hold them for longer. */
static int passes(struct executor *x) {
    int at = 0;
    clear_sums(x);
    if (x->e.state) model_hold(x->e.model);
    int status = walk(x, &at);
    if (x->e.state) model_release(x->e.model);
    return status;
}

/* The same, or as it was recorded. */
static int passes_or_recording(struct executor *x) {
    const struct step *step = x->step;
    if (step->watch || step->nan_trace) return passes(x); /* they wait */
    switch (recording_way(&x->recording, step->options, step->sequences)) {
    case RECORDING_EXECUTE:
        return passes(x);
    case RECORDING_RECORD:
        recording_begin(&x->recording, x->e.mesh);
        return recording_end(&x->recording, x->e.mesh, passes(x));
    case RECORDING_REPEAT:
        recording_repeat(&x->recording, x->e.mesh);
        return status_of(&x->e);
    }
    return 0;
}

/* The norm, and everything after it. */
static int update(struct executor *x) {
    int at = 0;
    while (at < x->list->count && x->list->action[at].act != ACT_NORM) at++;
    if (at == x->list->count || !x->step->decide) return 0;
    activity_action(&x->list->action[at++], describe_action);
    add_up(x);
    x->step->update = false;
    TRY(x->step->decide(x->step));
    if (!x->step->update) return status_of(&x->e);
    TRY(optimizer_begin(x->e.optimizer, x->step->options->active, x->step->rates.gscale));
    return walk(x, &at);
}

/* Where the step's list is, and where its tokens are. */
static int begin(struct executor *x, struct step *step) {
    x->step = step;
    x->in_step = step->micro_batches ? step->micro_batches : x->micro_batches;
    const struct schedule *schedule = pipeline_schedule(x->e.pipeline, x->in_step, step->options->active);
    if (!schedule) return gdn_fail(GDN_INTERNAL, "no schedule has %d micro-batches", x->in_step);
    const struct actions *list = &schedule->rank[x->layout->index[AXIS_PIPELINE]];
    bool other = x->list != list;
    x->list = list;
    if (other) executor_expect(x);
    locations_forget(&x->locations);
    boundary_begin(&x->boundary, (uint64_t)step->number, x->in_step);
    if (x->rows)
        x->e.ops->device->upload(x->rows, step->rows,
                                 (size_t)(step->sequences * (x->e.length + 1)) * sizeof *x->rows);
    if (x->whole)
        x->e.ops->device->upload(x->whole, step->whole, (size_t)executor_whole(x, step->sequences) * sizeof *x->whole);
    return 0;
}

int execute(struct executor *executor, struct step *step) {
    struct executor *x = executor;
    TRY(begin(x, step));
    int status = passes_or_recording(x);
    if (!status) status = update(x);
    if (!status) transport_finish(x->transport); /* else others may never send what this rank waits for */
    activity_action(NULL, NULL); /* the list may be freed before another one is executed */
    if (!step->decide || status) add_up(x);
    if (!status) status = status_of(&x->e);
    x->failed = x->failed || status;
    x->step = NULL;
    return status;
}
