/* What does not go together with train.prune. */
#include "kernels/base/status.h"
#include "train/config/private.h"

#define PRUNE(name) TRAIN(prune.name)

/* What changes with a set of connections on a device or a factor of sources is not made anew in training. */
static int validate_others(const struct reading *reading) {
    const struct config *config = reading->config;
    if (!config_on_host(config))
        return impossible(reading,
                          "connections are pruned in training on the cpu alone; device cpu is expected",
                          PRUNE(by), KEY_PATH(device));
    if (config->train.graphs)
        return impossible(reading,
                          "recorded passes have the connections that they had; graphs false is expected",
                          PRUNE(by), KEY_PATH(train.graphs));
    if (config->train.compress_sources > 0)
        return impossible(reading,
                          "sources that are kept as factors are not pruned; compress_sources 0 is expected",
                          PRUNE(by), KEY_PATH(train.compress_sources));
    if (config->mesh.compress_boundary > 0)
        return impossible(reading,
                          "what compressed boundaries carry over belongs to the connections that there are; "
                          "compress_boundary "
                          "0 is expected",
                          PRUNE(by), KEY_PATH(mesh.compress_boundary));
    if (config->mesh.schedule != SCHEDULE_1F1B)
        return impossible(
            reading,
            "room for gradients that wait is planned for all connections together; schedule 1f1b is expected",
            PRUNE(by), KEY_PATH(mesh.schedule));
    if (config->delta_store.interval > 0)
        return impossible(reading, "differences are stored of connections that stay; interval 0 is expected",
                          PRUNE(by), KEY_PATH(delta_store.interval));
    return GDN_OK;
}

int validate_prune(const struct reading *reading) {
    const struct config *config = reading->config;
    const struct prune_config *prune = &config->train.prune;
    if (!prune->by || reading->trained) return GDN_OK; /* a trained model is not pruned any more */
    if (!delta_connects(&config->model.delta))
        return impossible(reading, "a model without delta connections has none to be pruned", PRUNE(by),
                          KEY_PATH(model.delta.distances), KEY_PATH(model.delta.edges));
    if (config->model.delta.stage_steps)
        return impossible(
            reading,
            "connections that are introduced one distance after the other have not been measured alike; "
            "stage_steps 0 is expected",
            PRUNE(by), KEY_PATH(model.delta.stage_steps));
    if (prune->end <= prune->begin)
        return impossible(reading, "an end above begin is expected", PRUNE(by), PRUNE(begin), PRUNE(end));
    if (prune->rule != PRUNING_BUDGET && prune->threshold == 0)
        return impossible(reading, "no importance lies below a threshold of 0; one above 0 is expected",
                          PRUNE(rule), PRUNE(threshold));
    if (prune->rule == PRUNING_BUDGET && prune->threshold > 0)
        return impossible(reading, "a budget has no threshold; 0 is expected, or another rule", PRUNE(rule),
                          PRUNE(threshold));
    if (prune->by == PRUNING_LEAVE_ONE_OUT && config->train.eval_batches > 0 &&
        prune->batches > config->train.eval_batches)
        return impossible(reading, "what is measured on is a part of what evaluations read; at most eval_batches is expected",
                          PRUNE(batches), TRAIN(eval_batches));
    return validate_others(reading);
}
