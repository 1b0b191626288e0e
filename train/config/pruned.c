/* The model that a run which prunes has come to, for whoever uses its checkpoint. */
#include <stdio.h>
#include <string.h>

#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "train/config/config.h"

/* A line, or the beginning of a long one, tells which. */
static int not_understood(const char *text) {
    const int length = (int)strcspn(text, "\n");
    return gdn_fail(GDN_INPUT, "/pruning of the checkpoint is not understood: '%.*s'",
                    length < 40 ? length : 40, text);
}

/* Reads a line behind the first (train/prune/pruning.c) and returns its length, 0 where it is none. */
static int read_line(const char *text, int num_layers, struct delta_edge *edge, int *left) {
    int used = 0;
    if (sscanf(text, "%d %d %d %*f\n%n", &edge->target, &edge->source, left, &used) != 3) return 0;
    bool right = edge->source >= -1 && edge->source < edge->target && edge->target < num_layers &&
                 (*left == 0 || *left == 1);
    return right ? used : 0;
}

static int list_left(const char *text, int num_layers, struct delta_config *delta) {
    struct delta_edge edge;
    for (int used, left; *text; text += used) {
        if (!(used = read_line(text, num_layers, &edge, &left))) return not_understood(text);
        if (!left) continue;
        if (delta->num_edges == MAX_EDGES)
            return gdn_fail(GDN_INPUT,
                            "more than %d connections are left: a model that was pruned in training can be used "
                            "where model.delta.edges can list them",
                            MAX_EDGES);
        delta->edges[delta->num_edges++] = edge;
    }
    return 0;
}

static int verify_left(const struct delta_config *delta) {
    const struct delta_edge *edge = delta->edges;
    for (int e = 1; e < delta->num_edges; e++)
        if (edge[e].target == edge[e - 1].target && edge[e].source == edge[e - 1].source)
            return gdn_fail(GDN_INPUT,
                            "/pruning of the checkpoint has the connection from %d into layer %d twice",
                            edge[e].source, edge[e].target);
    if (delta_most_into(delta) <= MAX_DISTANCES) return 0;
    return gdn_fail(GDN_INPUT, "/pruning of the checkpoint has more than %d connections into a layer",
                    MAX_DISTANCES);
}

int config_keep_left(struct config *config, const char *text) {
    struct delta_config *delta = &config->model.delta;
    int used = 0;
    if (!text) return 0;
    if (sscanf(text, "measured %*d\n%n", &used) < 0 || !used) return not_understood(text);
    delta->num_distances = delta->num_edges = delta->stage_steps = 0;
    delta->embedding_source = false;
    config->train.prune.by = PRUNING_NONE;
    TRY(list_left(text + used, config->model.num_layers, delta));
    delta_edges_sort(delta);
    return verify_left(delta);
}
