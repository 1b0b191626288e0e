/* One optimiser step (model.md, 5 and 6). */
#include "train/loop/loop.h"

#include "model/params/edges.h"
#include "model/params/exits.h"
#include "train/config/batch.h"
#include "train/config/rows.h"
#include "train/optimizer/lr_schedule.h"

#include <math.h>

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

/* What a step computes, on every rank alike: active distances and the regularisers' weights (model.md, 5 and
 * 6). Gradients, all of which have the factor target_weight or token_weight, are those of scale · loss
 * (train/optimizer/loss_scale.h). */
struct loss_options loop_options(const struct run *run) {
    const struct config *config = &run->config;
    const int64_t step = run->position.step;
    const struct train_config *train = &config->train;
    struct loss_options options = {
        .active = pipeline_active(&run->part.pipeline, active_distances(&config->model.delta, step)),
        .target_weight = run->loss_scale.scale / (double)(run_counted(run) ? run_counted(run) : 1),
        .token_weight = run->loss_scale.scale / (double)run_unpadded(run),
    };
    regularizer_weights(config, step, &options);
    options.z_weight = train->z_loss;
    options.l1_weight = config->model.delta.l1_weight * run->loss_scale.scale;
    exit_weights(&config->model.exit, step, train->steps, options.exit_weight);
    if (dropout_on(&config->model.dropout)) options.masks = dropout_key(train->seed, step);
    options.each = train->gate_interval > 0 && step % train->gate_interval == 0;
    if (pruning_measures(&train->prune, step)) {
        options.effects = pruning_importance(&train->prune)->effects;
        options.each |= pruning_importance(&train->prune)->each;
    }
    options.measure = config->model.delta.regularizer != REGULARIZER_NONE || options.each;
    return options;
}

/* The loss and its terms, not scaled, from the sums over all ranks. */
static void fill_losses(const struct loss_options *options, double scale, const double sums[STEP_SUMS],
                        long connections, struct step_report *report) {
    const double places = connections ? (double)connections : 1, weight = options->target_weight / scale,
                 every = options->token_weight / scale;
    double sparsity = sums[SUM_SPARSITY] * every / places, entropy = sums[SUM_ENTROPY] * every / places;
    report->ce = report->counted ? sums[SUM_CE] * weight : NAN;
    report->loss = report->ce + options->sparsity_weight * sparsity - options->entropy_weight * entropy;
    report->z_loss = report->l1 = 0;
    if (options->z_weight > 0) {
        report->z_loss = sums[SUM_Z] * weight;
        report->loss += options->z_weight * report->z_loss;
    }
    if (options->l1_weight > 0) {
        report->l1 = sums[SUM_ABSOLUTE];
        report->loss += options->l1_weight / scale * report->l1;
    }
    for (int e = 0; e < report->num_exits; e++) {
        const bool there = options->exit_weight[e] > 0;
        report->exits[e] = there && report->counted ? sums[SUM_EXITS + e] * weight : NAN;
        if (there) report->loss += options->exit_weight[e] * report->exits[e];
    }
    report->sparsity = options->measure ? sparsity : NAN;
    report->entropy = options->measure ? entropy : NAN;
}

/* What becomes of a step. All but the first leave it out: nothing is updated. */
enum outcome {
    OUTCOME_UPDATE,
    OUTCOME_SKIP,       /* the run goes on with a smaller loss scale */
    OUTCOME_UNCOUNTED,  /* it goes on: no target of the batch counts */
    OUTCOME_SPIKE,      /* it goes on as spikes.action says */
    OUTCOME_NOT_FINITE, /* a NaN trace follows; then the run ends, or goes on as after a spike */
};

/* What `decide` works on. */
struct decision {
    struct run *run;
    struct step_report *report;
    enum outcome outcome; /* out */
};

/* Whether loss and gradient norm are fit for an update. They have the same bits on every rank, so all come to
 * the same outcome. */
static enum outcome judge(struct run *run, const struct step_report *report, bool any_bad) {
    const bool good = !any_bad && isfinite(report->grad_norm), scaled = run->loss_scale.scale > 1;
    if (!report->counted && (good || scaled))
        return OUTCOME_UNCOUNTED; /* a scale too high shows in others too */
    if (any_bad || !isfinite(report->loss) || !isfinite(report->grad_norm)) {
        bool lower = isfinite(report->loss) && loss_scale_lower(&run->loss_scale);
        return lower ? OUTCOME_SKIP : OUTCOME_NOT_FINITE;
    }
    bool spike = spikes_judge(&run->spikes, report->loss, report->grad_norm);
    if (spike && run->config.spikes.action != SPIKE_REPORT) return OUTCOME_SPIKE;
    if (!spike) spikes_accept(&run->spikes, report->loss, report->grad_norm);
    loss_scale_good(&run->loss_scale);
    return OUTCOME_UPDATE;
}

/* Fills in losses and norm from the sums over all ranks, and whether anybody was about to hand over what was
 * not finite. */
static int measure(struct step *step, bool *any_bad) {
    struct run *run = ((struct decision *)step->context)->run;
    struct step_report *report = ((struct decision *)step->context)->report;
    const double scale = run->loss_scale.scale;
    double norm, sums[STEP_SUMS] = {
                     [SUM_CE] = step->sums.ce,
                     [SUM_SPARSITY] = step->sums.sparsity,
                     [SUM_ENTROPY] = step->sums.entropy,
                     [SUM_BAD] = step->first_bad >= 0,
                     [SUM_Z] = step->sums.z,
                     [SUM_ABSOLUTE] = step->absolute,
                 };
    report->num_exits = run->config.model.exit.num_layers;
    for (int e = 0; e < report->num_exits; e++) sums[SUM_EXITS + e] = step->sums.exits[e];
    TRY(mesh_sum(&run->mesh, sums, step_sums(step->options, report->num_exits)));
    TRY(optimizer_norm(&run->trainer.optimizer, step->options->active, &norm));
    fill_losses(step->options, scale, sums, step->connections, report);
    report->grad_norm = norm / scale;
    *any_bad = sums[SUM_BAD] > 0;
    return 0;
}

/* Once all gradients are summed (train/step/execute.h). */
static int decide(struct step *step) {
    struct decision *decision = step->context;
    struct run *run = decision->run;
    struct step_report *report = decision->report;
    const double scale = run->loss_scale.scale;
    bool any_bad;
    TRY(measure(step, &any_bad));
    report->lr = learning_rate(&run->config.train, run->position.step, report->tokens);
    step->rates = (struct rates){
        .lr = report->lr,
        .decay = decay_left(&run->config.train, run->position.step),
        .gscale = optimizer_clip(&run->trainer.optimizer, report->grad_norm) / scale,
    };
    decision->outcome = judge(run, report, any_bad);
    step->update = decision->outcome == OUTCOME_UPDATE;
    return step->update ? loop_prune_measure(run, step->options) : 0;
}

/* The same in a NaN trace, which updates nothing in any case. */
static int hear(struct step *step) {
    struct decision *decision = step->context;
    bool any_bad;
    TRY(measure(step, &any_bad));
    decision->run->trainer.verdict.recurred =
        any_bad || !isfinite(decision->report->loss) || !isfinite(decision->report->grad_norm);
    return 0;
}

/* Computes the step again, to find out where it went wrong (train/step/nan_trace.h). Collective.
 * GDN_INTERNAL. */
static int trace_nan(struct run *run, const struct step *step) {
    struct step_report report = {.counted = run_counted(run)};
    struct step traced = *step;
    traced.watch = NULL;
    traced.nan_trace = &run->trainer.nan_trace;
    traced.decide = hear;
    traced.context = &(struct decision){.run = run, .report = &report};
    scales_restore(&run->scales);
    nan_trace_begin(&run->trainer.nan_trace, step->options->active);
    TRY(execute(run->trainer.executor, &traced));
    bool recurred = run->trainer.verdict.recurred;
    TRY(nan_trace_end(&run->trainer.nan_trace, step->first_bad, &run->trainer.verdict));
    run->trainer.verdict.recurred = recurred;
    return 0;
}

/* After a step that was not finite: 0 where such a step may be left out, like a spike. */
static int not_finite(struct run *run, const struct step *step, const struct step_report *report) {
    TRY(trace_nan(run, step));
    if (run->config.spikes.window > 0 && run->config.spikes.action != SPIKE_REPORT) {
        spikes_judge(&run->spikes, NAN, NAN);
        return 0;
    }
    char text[512];
    nan_trace_text(&run->trainer.verdict, text);
    return gdn_fail(GDN_DIVERGED,
                    "training diverged at step %lld: %s not finite; %s. Nothing was updated. Go on "
                    "from an older checkpoint with a lower train.lr, more train.warmup_steps or a "
                    "train.grad_clip, or let spikes.window leave such steps out",
                    (long long)run->position.step,
                    !isfinite(report->loss)        ? "the loss is"
                    : !isfinite(report->grad_norm) ? "the gradient norm is"
                                                   : "numbers between ranks are",
                    text);
}

struct step loop_batch(const struct run *run, const struct loss_options *options) {
    const long share = run_share(run);
    return (struct step){
        .number = run->position.step,
        .rows = run->data.pieces ? run->data.pieces : run->data.rows,
        .whole = run->data.pieces ? run->data.rows : NULL,
        .first = run->mesh.batch.index * share,
        .sequences = config_rows(&run->config, share),
        .micro_batches = (int)(share / run->part.micro_batch),
        .options = options,
    };
}

int loop_step(struct run *run, const struct delta_watch *watch, struct step_report *report) {
    const struct train_config *train = &run->config.train;
    const struct axis *axis = run->mesh.axis;
    const int active = active_distances(&run->config.model.delta, run->position.step);
    struct loss_options options = loop_options(run);
    const long batch = batch_at(train, run->position.step);
    *report = (struct step_report){
        .step = run->position.step,
        .sequences = batch,
        .active_distances = active,
        .active_edges = edge_set_measured(options.active, &run->part.pipeline.edges),
        .active = options.active,
        .tokens = run->position.tokens + batch * (int64_t)train->sequence_length,
        .counted = run_counted(run),
        .unpadded = run_unpadded(run),
        .masked = run->data.masked,
    };
    for (int i = 0; i < axes_count(); i++) {
        report->communication_bytes[i] = -axis[i].bytes;
        report->communication_seconds[i] = -axis[i].seconds;
    }
    struct decision decision = {.run = run, .report = report};
    struct step step = loop_batch(run, &options);
    step.watch = watch;
    step.decide = decide;
    step.context = &decision;
    run->trainer.verdict.asked = false;
    run->spikes.last.kind = SPIKE_NONE;
    TRY(execute(run->trainer.executor, &step));
    if (decision.outcome == OUTCOME_NOT_FINITE) TRY(not_finite(run, &step, report));
    if (decision.outcome != OUTCOME_UPDATE && decision.outcome != OUTCOME_SKIP)
        scales_restore(&run->scales); /* as if the step had not been */
    else
        TRY(scales_agree(&run->scales, &run->mesh));
    for (int i = 0; i < axes_count(); i++) {
        report->communication_bytes[i] += axis[i].bytes;
        report->communication_seconds[i] += axis[i].seconds;
    }
    run->position.step++;
    run->position.samples += batch;
    run->position.tokens = report->tokens;
    return 0;
}

const struct edge_set *loop_active(const struct config *config, const struct pipeline *pipeline,
                                   int64_t steps) {
    return pipeline_active(pipeline, active_distances(&config->model.delta, steps > 0 ? (long)steps - 1 : 0));
}
