/* The gradient noise scale (McCandlish et al. 2018, appendix A): tr Σ / |G|², in sequences, where Σ is the
 * covariance of the gradients of single sequences and G the true gradient. A batch much smaller than this is
 * mostly noise, one much larger mostly repetition.
 *
 * With D half the difference of the mean gradients of the batch's two halves, and B its sequences, E|D|² is
 * tr Σ / B, and the batch's own gradient has E|g|² = |G|² + tr Σ / B. D is what the step's passes give where
 * the second half of the batch has a negative weight: so it is measured by a step that updates nothing, which
 * needs no memory, is the same on every mesh, and costs a step every train.noise_interval steps. */
#include "train/loop/loop.h"

#include "train/config/batch.h"

#include <math.h>

/* Keeps |D|²; nothing is updated. NAN where it is not finite, as the step itself will tell. */
static int keep_norm(struct step *step) {
    struct loop *loop = step->context;
    double norm;
    TRY(optimizer_norm(&loop->run->trainer.optimizer, step->options->active, &norm));
    norm /= loop->run->loss_scale.scale;
    loop->half_difference = isfinite(norm) ? norm * norm : NAN;
    return 0;
}

/* Sets the weights of the halves' means: 1/n of either, the second's negative. Where the n that these are
 * over are unlike, n₁ and n₂, D is the difference of the halves' mean gradients times √(n₁n₂)/n, with which
 * E|D|² is again what the batch's mean gradient varies by. */
static void weigh(const int64_t n[2], double *first, double *second) {
    *second = -*first * sqrt((double)n[0] / (double)n[1]);
    *first *= sqrt((double)n[1] / (double)n[0]);
}

static void weigh_halves(const struct run *run, struct loss_options *first, struct loss_options *second) {
    const struct batch_counts *n = &run->data.counted;
    *second = *first;
    weigh(n->targets, &first->target_weight, &second->target_weight);
    weigh(n->tokens, &first->token_weight, &second->token_weight);
}

/* The first of this rank's micro-batches that is in the second half of the batch: data ranks have consecutive
 * parts of it, and halves end where micro-batches do (batch_divide). */
static int second_half(const struct run *run, const struct step *step) {
    long half = batch_at(&run->config.train, run->position.step) / 2;
    return step->first >= half ? 0 : (int)((half - step->first) / run->part.micro_batch);
}

int loop_noise(struct loop *loop) {
    struct run *run = loop->run;
    long interval = run->config.train.noise_interval;
    loop->half_difference = NAN;
    if (interval <= 0 || run->position.step % interval) return 0;
    if (!run->data.counted.targets[0] || !run->data.counted.targets[1]) return 0; /* a half has no mean */
    struct loss_options first = loop_options(run), second;
    first.each = first.effects = false;
    first.l1_weight = 0; /* of weights: the same in both halves */
    weigh_halves(run, &first, &second);
    struct step step = loop_batch(run, &first);
    step.second = &second;
    step.second_from = second_half(run, &step);
    step.decide = keep_norm;
    step.context = loop;
    TRY(execute(run->trainer.executor, &step));
    scales_restore(&run->scales); /* as if the step had not been */
    monitor_no_step(loop->monitor);
    return 0;
}

void loop_record_noise(struct loop *loop, const struct step_report *report) {
    double batch = (double)report->sequences, variance = batch * loop->half_difference,
           gradient = report->grad_norm * report->grad_norm - loop->half_difference;
    if (!isfinite(variance) || !isfinite(gradient)) return;
    struct metrics *metrics = &loop->rundir->metrics;
    metrics_begin(metrics, "noise");
    metrics_integer(metrics, "step", report->step);
    metrics_integer(metrics, "sequences", report->sequences);
    metrics_number(metrics, "variance", variance);
    metrics_number(metrics, "gradient_squared", gradient);
    metrics_number(metrics, "noise_scale", gradient > 0 ? variance / gradient : NAN);
    metrics_end(metrics);
}
