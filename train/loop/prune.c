/* Connections that go in training, and may come back: measured by steps, decided upon and changed between two. */
#include "train/loop/loop.h"

#include "model/params/find.h"

#include <math.h>
#include <stdio.h>

/* ------------------------------------------------------------------------------------------- measures */

int loop_prune_measure(struct run *run, const struct loss_options *options) {
    struct pruning *pruning = &run->pruning;
    const int edges = run->part.pipeline.edges.count;
    if (!pruning_measures(pruning->config, run->position.step)) return 0;
    const struct connection_sums *found = executor_connections(run->trainer.executor);
    const double tokens = (double)run_unpadded(run), gates = (double)model_gates(&run->config.model);
    for (int e = 0; e < edges; e++)
        pruning->sums[e] = (struct pruning_sums){
            .gate = options->each ? found[e].gate / (tokens * gates) : 0,
            .contribution = options->each ? found[e].contribution / tokens : 0,
            .effect = options->effects ? found[e].effect / run->loss_scale.scale : 0,
        };
    TRY(mesh_sum(&run->mesh, (double *)pruning->sums, 3 * edges));
    pruning_add(pruning);
    return 0;
}

/* |mix| of each connection, 1 where it has none, in pruning->sums, as numbers [edges]. Several ranks may have a copy. */
static int sum_mixes(struct run *run) {
    const struct edges *edges = &run->part.pipeline.edges;
    double *mix = (double *)run->pruning.sums, *copies = mix + edges->count;
    for (int e = 0; e < edges->count; e++) {
        char name[64];
        snprintf(name, sizeof name, "layers.%d.delta.%d.mix", edges->edge[e].target, edges->edge[e].distance);
        const struct row *row = params_find(run->part.table, name);
        mix[e] = row ? fabs((double)run->training.state.weight[row->offset]) : 0;
        copies[e] = row != NULL;
    }
    TRY(mesh_sum(&run->mesh, mix, 2 * edges->count));
    for (int e = 0; e < edges->count; e++) mix[e] = copies[e] > 0 ? mix[e] / copies[e] : 1;
    return 0;
}

/* ------------------------------------------------------------------------------------------- changes */

/* Connections in one event, so that a line stays within what metrics_end takes. */
enum { PRUNED_IN_LINE = 500 };

/* An event of `all` connections of the last decision. */
static void record_list(struct loop *loop, const char *event, const struct pruning_place *places, int all) {
    const struct pruning *p = &loop->run->pruning;
    struct metrics *metrics = &loop->rundir->metrics;
    for (int at = 0; at < all; at += PRUNED_IN_LINE) {
        const int count = all - at < PRUNED_IN_LINE ? all - at : PRUNED_IN_LINE;
        int layer[PRUNED_IN_LINE], distance[PRUNED_IN_LINE];
        double importance[PRUNED_IN_LINE];
        for (int i = 0; i < count; i++) {
            const struct pruning_place *place = &places[at + i];
            layer[i] = p->edges->edge[place->edge].target;
            distance[i] = p->edges->edge[place->edge].distance;
            importance[i] = place->importance;
        }
        metrics_begin(metrics, event);
        metrics_integer(metrics, "step", loop->run->position.step);
        metrics_integer(metrics, "active_edges", p->kept + p->back);
        metrics_integers(metrics, "layer", layer, count);
        metrics_integers(metrics, "distance", distance, count);
        metrics_numbers(metrics, "importance", importance, count);
        metrics_number(metrics, "margin", p->margin);
        metrics_end(metrics);
    }
}

static void record(struct loop *loop) {
    const struct pruning *p = &loop->run->pruning;
    char back[64] = "";
    if (p->back) snprintf(back, sizeof back, ", and %d that had gone come%s back", p->back, p->back == 1 ? "s" : "");
    record_list(loop, "prune", p->order + p->kept, p->gone);
    record_list(loop, "regrow", p->order + p->kept + p->gone, p->back);
    progress_note(&loop->progress, "step %lld: %d of %d connections go, the least important%s; %d are left",
                  (long long)loop->run->position.step, p->gone, p->kept + p->gone, back, p->kept + p->back);
}

int loop_prune(struct loop *loop) {
    struct run *run = loop->run;
    if (!pruning_due(&run->pruning, run->position.step)) return 0;
    TRY(sum_mixes(run));
    if (!pruning_decide(&run->pruning, run->position.step, (const double *)run->pruning.sums)) return 0;
    TRY(run_choose(run));
    record(loop);
    return 0;
}
