/* Evaluations in the training loop. One that somebody asks to stop in is given up: what part of the data says
 * is no result. The checkpoint then says that an evaluation is due, and the next start begins with it. */
#include "train/loop.h"

#include "kernels/base/position.h"

#include <math.h>

static void record(struct loop *loop, double loss, double seconds) {
    struct metrics *metrics = &loop->rundir->metrics;
    metrics_begin(metrics, "eval");
    metrics_integer(metrics, "step", loop->run->step);
    metrics_number(metrics, "loss", loss);
    metrics_integer(metrics, "sequences", loop->run->evaluation.sequences);
    metrics_number(metrics, "seconds", seconds);
    metrics_end(metrics);
    tensorboard_write(&loop->rundir->board, loop->run->step, &(struct scalar){"validation/loss", loss}, 1);
    monitor_evaluation(loop->monitor, loss);
    progress_note(&loop->progress, "after step %lld: validation loss %.4f", (long long)loop->run->step, loss);
}

/* What lies between two rounds. */
struct rounds {
    struct loop *loop;
    double began; /* seconds at which the last round began; 0: there was none */
};

/* Before a round: whether this rank knows of a request to stop. Before the first one the whole evaluation has
 * to fit into the time that is left, as far as its length is known; then the next round has. */
static bool ask(void *context) {
    struct rounds *rounds = context;
    struct loop *loop = rounds->loop;
    double now = MPI_Wtime();
    if (rounds->began > 0) stop_took(loop->stop, STOP_ROUND, now - rounds->began);
    enum stop_work next = rounds->began > 0 ? STOP_ROUND : STOP_EVALUATION;
    rounds->began = now;
    return loop_asked(loop, next) != STOP_NONE;
}

int loop_evaluate(struct loop *loop) {
    struct run *run = loop->run;
    struct rounds rounds = {.loop = loop};
    double before = MPI_Wtime(), loss = NAN;
    position_phase(PHASE_EVALUATION, run->step);
    int status = evaluation_loss(&run->evaluation, loop_active(&run->config, run->step), ask, &rounds, &loss);
    scales_restore(&run->scales); /* as if there had been no evaluation */
    if (status == GDN_STOPPED) run->evaluation_due = true;
    TRY(status);
    stop_took(loop->stop, STOP_EVALUATION, MPI_Wtime() - before);
    record(loop, loss, MPI_Wtime() - before);
    if (!isfinite(loss))
        return gdn_fail(GDN_DIVERGED,
                        "training diverged: the validation loss after %lld steps is %g; go on from an older "
                        "checkpoint with a lower train.lr",
                        (long long)run->step, loss);
    loop->evaluated = run->step;
    loop->eval_loss = loss;
    if (run->evaluation_due) run->on_disk = false; /* the checkpoint lacks the loss */
    run->evaluation_due = false;
    return 0;
}
