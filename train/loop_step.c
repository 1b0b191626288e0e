/* One optimiser step (model.md, 5 and 6). */
#include "train/loop.h"

#include "model/edges.h"
#include "train/schedule.h"

#include <math.h>
#include <string.h>

/* The regularisers' weights at a step (model.md, 5): w_s and w_e. */
static void regularizer_weights(const struct config *config, int64_t step, struct loss_options *options) {
    const struct delta_config *delta = &config->model.delta;
    switch ((enum delta_regularizer)delta->regularizer) {
    case REGULARIZER_FIXED:
        options->sparsity_weight = delta->sparsity_weight;
        options->entropy_weight = delta->entropy_weight;
        return;
    case REGULARIZER_ADAPTIVE: {
        long steps = config->train.steps;
        double p = (double)step / (double)(steps > 1 ? steps : 1);
        options->sparsity_weight = 0.1 * p;
        options->entropy_weight = 0.01 * (1 - p);
        return;
    }
    case REGULARIZER_NONE:
        return;
    }
}

/* What this step computes, on every rank alike. */
static struct loss_options options_of(const struct config *config, int64_t step) {
    const struct train_config *train = &config->train;
    struct loss_options options = {
        .active = active_distances(&config->model.delta, step),
        .token_weight = 1 / ((double)train->batch_size * (double)train->sequence_length),
    };
    regularizer_weights(config, step, &options);
    options.measure = config->model.delta.regularizer != REGULARIZER_NONE ||
                      (train->gate_interval > 0 && step % train->gate_interval == 0);
    return options;
}

/* Gradients and sums of this rank's micro-batches, in index order. */
static struct loss_sums train_micro_batches(struct run *run, const struct loss_options *options) {
    long length = run->config.train.sequence_length;
    struct loss_sums all = {0};
    memset(run->state.gradient, 0, (size_t)run->table.total * sizeof(real));
    for (long at = 0; at < run->share; at += run->micro) {
        struct loss_sums sums = {0};
        model_train(run->model, run->rows + at * (length + 1), run->micro, length, options, &sums);
        all.ce += sums.ce;
        all.sparsity += sums.sparsity;
        all.entropy += sums.entropy;
        all.connections = sums.connections;
    }
    return all;
}

/* The loss and its terms from the sums over all ranks. */
static void fill_losses(const struct loss_options *options, const double sums[3], long connections,
                        struct step_report *report) {
    double places = connections ? (double)connections : 1;
    double sparsity = sums[1] * options->token_weight / places,
           entropy = sums[2] * options->token_weight / places;
    report->ce = sums[0] * options->token_weight;
    report->loss = report->ce + options->sparsity_weight * sparsity - options->entropy_weight * entropy;
    report->sparsity = options->measure ? sparsity : NAN;
    report->entropy = options->measure ? entropy : NAN;
}

int loop_step(struct loop *loop, struct step_report *report) {
    struct run *run = loop->run;
    const struct train_config *train = &run->config.train;
    struct loss_options options = options_of(&run->config, run->step);

    struct loss_sums mine = train_micro_batches(run, &options);
    double sums[3] = {mine.ce, mine.sparsity, mine.entropy};
    TRY(mesh_sum(&run->mesh, sums, 3));
    TRY(mesh_sum_gradients(&run->mesh, run->state.gradient, run->table.total));

    *report = (struct step_report){
        .step = run->step,
        .grad_norm = optimizer_norm(&loop->optimizer, options.active),
        .lr = learning_rate(train, run->step),
        .active_distances = options.active,
        .tokens = (run->samples + train->batch_size) * (int64_t)train->sequence_length,
    };
    fill_losses(&options, sums, mine.connections, report);

    /* Sums and gradients have the same bits on every rank, so all come to the same verdict. */
    if (!isfinite(report->loss) || !isfinite(report->grad_norm))
        return gdn_fail(
            GDN_DIVERGED,
            "training diverged at step %lld: the %s is not finite; nothing was updated. Go on from an older "
            "checkpoint with a lower train.lr, more train.warmup_steps or a train.grad_clip",
            (long long)run->step, isfinite(report->loss) ? "gradient norm" : "loss");
    optimizer_step(&loop->optimizer, options.active, report->lr, report->grad_norm);
    run->step++;
    run->samples += train->batch_size;
    return 0;
}

int loop_active(const struct config *config, int64_t steps) {
    return active_distances(&config->model.delta, steps > 0 ? (long)steps - 1 : 0);
}
