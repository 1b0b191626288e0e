/* Evaluations in the training loop. A stop request abandons an evaluation without a result; the checkpoint
 * then records that an evaluation is due, and the next start begins with it. */
#include "train/loop/loop.h"

#include "dist/mpi/activity.h"
#include "kernels/base/append.h"

#include <math.h>
#include <stdio.h>

/* `loss` and what follows from it are the first set's; `losses` has all of them by name. */
static void record_event(struct loop *loop, double seconds) {
    struct metrics *metrics = &loop->rundir->metrics;
    const struct validation *validation = &loop->run->data.validation;
    const struct evaluation_result *result = loop->run->evaluation.result;
    metrics_begin(metrics, "eval");
    metrics_integer(metrics, "step", loop->run->position.step);
    metrics_number(metrics, "loss", result[0].loss);
    metrics_number(metrics, "perplexity", evaluation_perplexity(&result[0]));
    metrics_number(metrics, "bits_per_byte", result[0].bits_per_byte);
    metrics_object(metrics, "losses");
    for (int i = 0; i < validation->sets; i++)
        metrics_number(metrics, validation->set[i].name, result[i].loss);
    metrics_object_end(metrics);
    metrics_integer(metrics, "sequences", validation_sequences(validation, 0));
    metrics_number(metrics, "seconds", seconds);
    metrics_end(metrics);
}

/* Of several sets each has a curve under its name. */
static void record_curves(struct loop *loop) {
    struct tensorboard *board = &loop->rundir->board;
    const int64_t step = loop->run->position.step;
    const struct validation *validation = &loop->run->data.validation;
    const struct evaluation_result *result = loop->run->evaluation.result;
    const struct scalar scalars[] = {
        {"validation/loss", result[0].loss},
        {"validation/perplexity", evaluation_perplexity(&result[0])},
        {"validation/bits_per_byte", result[0].bits_per_byte}, /* the last: it may not be known */
    };
    tensorboard_write(board, step, scalars, isnan(result[0].bits_per_byte) ? 2 : 3);
    for (int i = 0; i < validation->sets && validation->sets > 1; i++) {
        char tag[128];
        snprintf(tag, sizeof tag, "validation/loss/%s", validation->set[i].name);
        if (!isnan(result[i].loss)) tensorboard_write(board, step, &(struct scalar){tag, result[i].loss}, 1);
    }
}

/* "after step 20: validation loss 4.9984, perplexity 148.2, 7.211 bits a byte; books 4.9, letters 5.1" */
static void tell(struct loop *loop) {
    const struct validation *validation = &loop->run->data.validation;
    const struct evaluation_result *result = loop->run->evaluation.result;
    enum { SET = 96 };
    char bits[32] = "", others[SET * (2 * VALIDATION_SOURCES + 1)] = "";
    size_t used = 0;
    if (!isnan(result[0].bits_per_byte))
        snprintf(bits, sizeof bits, ", %.4f bits a byte", result[0].bits_per_byte);
    for (int i = 1; i < validation->sets; i++)
        used = text_append(others, sizeof others, used, "%s %s %.4f", i == 1 ? ";" : ",",
                           validation->set[i].name, result[i].loss);
    progress_note(&loop->progress, "after step %lld: %s loss %.4f, perplexity %.4g%s%s",
                  (long long)loop->run->position.step, validation->set[0].name, result[0].loss,
                  evaluation_perplexity(&result[0]), bits, others);
}

static void record(struct loop *loop, double seconds) {
    record_event(loop, seconds);
    record_curves(loop);
    monitor_evaluation(loop->monitor);
    tell(loop);
}

bool loop_ask(void *context) {
    struct loop_rounds *rounds = context;
    struct loop *loop = rounds->loop;
    double now = MPI_Wtime();
    if (rounds->began > 0) stop_took(loop->stop, STOP_ROUND, now - rounds->began);
    enum stop_work next = rounds->began > 0 ? STOP_ROUND : STOP_EVALUATION;
    rounds->began = now;
    return loop_asked(loop, next) != STOP_NONE;
}

int loop_evaluate(struct loop *loop) {
    struct run *run = loop->run;
    struct loop_rounds rounds = {.loop = loop};
    double before = MPI_Wtime(), loss = NAN;
    const struct edge_set *active = loop_active(&run->config, &run->evaluation.pipeline, run->position.step);
    activity_phase(PHASE_EVALUATION, run->position.step);
    int status =
        evaluation_loss(&run->evaluation, active, loop_ask, &rounds, &loss);
    scales_restore(&run->scales); /* as if there had been no evaluation */
    if (status == GDN_STOPPED) run->position.evaluation_due = true;
    TRY(status);
    stop_took(loop->stop, STOP_EVALUATION, MPI_Wtime() - before);
    record(loop, MPI_Wtime() - before);
    if (!isfinite(loss))
        return gdn_fail(GDN_DIVERGED,
                        "training diverged: the %s loss after %lld steps is %g; go on from an older "
                        "checkpoint with a lower train.lr",
                        run->data.validation.set[0].name, (long long)run->position.step, loss);
    loop->evaluated = run->position.step;
    loop->eval_loss = loss;
    if (run->position.evaluation_due) run->position.on_disk = false; /* the checkpoint lacks the loss */
    run->position.evaluation_due = false;
    return 0;
}
