/* What does not go together with train.prune. */
#include "train/config/private.h"

#define PRUNE(name) KEY_PATH(train.prune.name)
#define REFUSE(why, ...)                                                                                     \
    do {                                                                                                     \
        static const struct conflict conflict = {why, {__VA_ARGS__}};                                        \
        return &conflict;                                                                                    \
    } while (0)

/* What changes with a set of connections on a device or a factor of sources is not made anew in training. */
static const struct conflict *others(const struct config *config) {
    if (config->device != DEVICE_CPU && config->device != DEVICE_AUTO)
        REFUSE("connections are pruned in training on the cpu alone; device cpu is expected", PRUNE(by),
               KEY_PATH(device));
    if (config->train.graphs)
        REFUSE("recorded passes have the connections that they had; graphs false is expected", PRUNE(by),
               KEY_PATH(train.graphs));
    if (config->train.compress_sources > 0)
        REFUSE("sources that are kept as factors are not pruned; compress_sources 0 is expected", PRUNE(by),
               KEY_PATH(train.compress_sources));
    if (config->mesh.compress_boundary > 0)
        REFUSE("what compressed boundaries carry over belongs to the connections that there are; compress_boundary "
               "0 is expected",
               PRUNE(by), KEY_PATH(mesh.compress_boundary));
    if (config->mesh.schedule != SCHEDULE_1F1B)
        REFUSE("room for gradients that wait is planned for all connections together; schedule 1f1b is expected",
               PRUNE(by), KEY_PATH(mesh.schedule));
    if (config->delta_store.interval > 0)
        REFUSE("differences are stored of connections that stay; interval 0 is expected", PRUNE(by),
               KEY_PATH(delta_store.interval));
    return NULL;
}

const struct conflict *pruning_conflict(const struct config *config) {
    const struct prune_config *prune = &config->train.prune;
    if (!prune->by) return NULL;
    if (!delta_connects(&config->model.delta))
        REFUSE("a model without delta connections has none to be pruned", PRUNE(by), KEY_PATH(model.delta.distances),
               KEY_PATH(model.delta.edges));
    if (config->model.delta.stage_steps)
        REFUSE("connections that are introduced one distance after the other have not been measured alike; "
               "stage_steps 0 is expected",
               PRUNE(by), KEY_PATH(model.delta.stage_steps));
    if (prune->end <= prune->begin)
        REFUSE("an end above begin is expected", PRUNE(by), PRUNE(begin), PRUNE(end));
    if (prune->rule != PRUNING_BUDGET && prune->threshold == 0)
        REFUSE("no importance lies below a threshold of 0; one above 0 is expected", PRUNE(rule), PRUNE(threshold));
    if (prune->rule == PRUNING_BUDGET && prune->threshold > 0)
        REFUSE("a budget has no threshold; 0 is expected, or another rule", PRUNE(rule), PRUNE(threshold));
    return others(config);
}
