/* What the loss of some validation data gains without each connection, found out before a change (train.prune by
 * leave_one_out). A stop request abandons it like an evaluation; the next start begins with it. */
#include "train/loop/loop.h"

#include "dist/mpi/activity.h"
#include "train/prune/leave_out.h"

#include <math.h>

/* Before a round: a step follows the last one, and has to fit into the time that is left too. */
static bool ask(void *context) {
    const struct loop_rounds *rounds = context;
    return loop_ask(context) || loop_asked(rounds->loop, STOP_STEP) != STOP_NONE;
}

static void found(void *context, int edge, double increase) {
    struct pruning *pruning = context;
    pruning->sums[edge] = (struct pruning_sums){.effect = increase};
}

static void record_left_out(struct loop *loop, double loss, double seconds) {
    const struct run *run = loop->run;
    struct metrics *metrics = &loop->rundir->metrics;
    const long sequences = validation_sequences(&run->data.few, 0);
    const struct edge_set *active = pipeline_active(&run->part.pipeline, run->part.pipeline.distances);
    const int count = edge_set_measured(active, &run->part.pipeline.edges);
    metrics_begin(metrics, "leave_one_out");
    metrics_integer(metrics, "step", run->position.step);
    metrics_integer(metrics, "active_edges", count);
    metrics_number(metrics, "loss", loss);
    metrics_integer(metrics, "sequences", sequences);
    metrics_number(metrics, "seconds", seconds);
    metrics_end(metrics);
    progress_note(&loop->progress, "step %lld: the loss of %ld sequences without each of %d connections, in %.1f s",
                  (long long)run->position.step, sequences, count, seconds);
}

int loop_leave_out(struct loop *loop, double *began) {
    struct run *run = loop->run;
    struct pruning *pruning = &run->pruning;
    if (!pruning_importance(pruning->config)->left_out || !pruning_due(pruning, run->position.step)) return 0;
    struct loop_rounds rounds = {.loop = loop, .began = MPI_Wtime()}; /* no evaluation, which is one of all data */
    const struct leave_out job = {&run->evaluation, &run->data.few, ask, &rounds};
    const double before = rounds.began;
    double loss;
    activity_phase(PHASE_EVALUATION, run->position.step);
    int status = leave_out_loss(&job, pruning->has, &loss);
    if (!status && !isfinite(loss))
        status = gdn_fail(GDN_DIVERGED,
                          "training diverged: the %s loss after %lld steps is %g, by which train.prune cannot judge "
                          "connections; go on from an older checkpoint with a lower train.lr",
                          run->data.few.set[0].name, (long long)run->position.step, loss);
    if (!status) status = leave_out_each(&job, pruning->has, loss, found, pruning);
    scales_restore(&run->scales); /* as if there had been no evaluation */
    TRY(status);
    TRY(evaluation_choose(&run->evaluation, pruning_chosen(pruning)));
    pruning_add(pruning);
    const double seconds = MPI_Wtime() - before;
    record_left_out(loop, loss, seconds);
    *began += seconds;
    activity_phase(PHASE_STEP, run->position.step);
    return 0;
}
