/* The model that a run which prunes has come to, for whoever uses its checkpoint. */
#include <stdio.h>

#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "train/config/config.h"

/* Reads the lines behind the first (train/prune/pruning.c). */
static int list_left(const char *text, struct delta_config *delta) {
    int target, source, left, used;
    while (sscanf(text, "%d %d %d %*f\n%n", &target, &source, &left, &used) == 3) {
        text += used;
        if (!left) continue;
        if (delta->num_edges == MAX_EDGES)
            return gdn_fail(GDN_INPUT,
                            "more than %d connections are left: a model that was pruned in training can be used "
                            "where model.delta.edges can list them",
                            MAX_EDGES);
        delta->edges[delta->num_edges++] = (struct delta_edge){target, source};
    }
    return *text ? gdn_fail(GDN_INPUT, "/pruning of the checkpoint is not understood: '%.40s'", text) : 0;
}

int config_keep_left(struct config *config, const char *text) {
    struct delta_config *delta = &config->model.delta;
    int used = 0;
    if (!text) return 0;
    if (sscanf(text, "measured %*d\n%n", &used) < 0 || !used)
        return gdn_fail(GDN_INPUT, "/pruning of the checkpoint is not understood: '%.40s'", text);
    delta->num_distances = delta->num_edges = delta->stage_steps = 0;
    delta->embedding_source = false;
    config->train.prune.by = PRUNING_NONE;
    TRY(list_left(text + used, delta));
    delta_edges_sort(delta);
    return 0;
}
