#include "train/optimizer/update.h"
#include "train/step/private.h"

int execute_share(void *executor, const struct action *a) {
    struct executor *x = executor;
    (void)a;
    executor_look_at_shared(x);
    return sync_share(x->e.sync, x->e.state->gradient);
}

int execute_reduce(void *executor, const struct action *a) {
    struct executor *x = executor;
    executor_look_at_bucket(x, a->index);
    return sync_reduce(x->e.sync, a->index, x->e.state->gradient);
}

int execute_finish(void *executor, const struct action *a) {
    const struct execution *e = &((struct executor *)executor)->e;
    return sync_finish(e->sync, a->index, e->state->gradient);
}

int execute_update(void *executor, const struct action *a) {
    struct executor *x = executor;
    const struct step *step = x->step;
    optimizer_update(x->e.optimizer, a->index, step->options->active, &step->rates);
    return 0;
}

int execute_gather(void *executor, const struct action *a) {
    const struct execution *e = &((struct executor *)executor)->e;
    return sync_gather(e->sync, a->index, e->state->weight);
}

int execute_gathered(void *executor, const struct action *a) {
    const struct execution *e = &((struct executor *)executor)->e;
    return sync_gathered(e->sync, a->index);
}
