#include "train/step/dry_run.h"

#include "train/step/private.h"

static int status_of(const struct executor *x) {
    int status = model_status(x->e.model);
    return status ? status : x->e.mesh->axis[AXIS_PIPELINE].status;
}

static int walk(struct executor *x) {
    const struct walk with = {.by_kind = executor_handlers, .walker = x, .locations = &x->locations};
    for (int i = 0; i < x->list->count; i++) {
        enum act act = x->list->action[i].act;
        if (act_is_of_update(act)) continue;
        TRY(walk_action(&with, &x->list->action[i]));
        if (!act_only_waits(act)) x->dry->action(x->dry->context, i);
    }
    return status_of(x);
}

int execute_dry(const struct dry_run *run) {
    static const int32_t no_tokens[1]; /* nobody reads them */
    struct executor *x;
    TRY(executor_create_dry(run, &x));
    struct step step = {.rows = no_tokens,
                        .sequences = x->micro_batches * x->e.batch,
                        .options = run->options,
                        .micro_batches = x->micro_batches};
    x->step = &step;
    x->in_step = step.micro_batches;
    x->list = run->list;
    int status = walk(x);
    executor_free(x);
    return status;
}
