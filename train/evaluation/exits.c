#include "train/evaluation/exits.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/base/status.h"

/* What a head says of a token; where its logits are no numbers, nothing. */
struct said {
    int32_t token;  /* −1: nothing */
    int confidence; /* in thousandths */
};

/* Of the micro-batch in progress what the exits have said, until the last layer speaks. */
struct listening {
    struct exits_found *found;
    struct said *said; /* [exits, tokens] */
    long tokens;       /* that a micro-batch has at most */
};

/* The likeliest token of logits [vocab], and where `target` is one, *nats of that. */
static struct said hear_one(const real *logits, long vocab, int32_t target, double *nats) {
    long best = 0;
    double sum = 0;
    for (long v = 1; v < vocab; v++)
        if (logits[v] > logits[best]) best = v;
    for (long v = 0; v < vocab; v++) sum += exp((double)logits[v] - (double)logits[best]);
    *nats = target < 0 ? 0 : log(sum) + (double)logits[best] - (double)logits[target];
    if (!(sum >= 1)) return (struct said){-1, 0};
    return (struct said){(int32_t)best, (int)floor(CONFIDENCES / sum)};
}

static void see(void *context, const struct head_view *view) {
    struct listening *l = context;
    for (long r = 0; r < view->rows; r++) {
        double nats;
        if (view->target[r] < 0) continue;
        struct said said = hear_one(view->logits + r * view->vocab, view->vocab, view->target[r], &nats);
        if (view->exit >= 0) {
            l->found->exit[view->exit].nats += nats;
            l->said[view->exit * l->tokens + view->at + r] = said;
            continue;
        }
        for (int e = 0; e < l->found->count; e++) {
            const struct said *exit = &l->said[e * l->tokens + view->at + r];
            l->found->exit[e].tokens[exit->confidence]++;
            l->found->exit[e].same[exit->confidence] += exit->token == said.token;
        }
    }
}

int exits_measure(struct evaluation *evaluation, const struct model_config *config,
                  const struct edge_set *active, struct exits_found *out) {
    const int count = config->exit.num_layers;
    const long tokens = evaluation->group * evaluation->length;
    *out = (struct exits_found){.count = count, .exit = calloc((size_t)count, sizeof *out->exit)};
    struct listening listening = {out, calloc((size_t)(count * tokens), sizeof *listening.said), tokens};
    int status = out->exit && listening.said ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for %d exits", count);
    status = mesh_agree(evaluation->mesh, status);
    if (!status)
        status = evaluation_watch(evaluation, active, &(struct head_watch){see, &listening}, &out->loss);
    if (!status) status = evaluation_tells(out->loss); /* the same on all ranks */
    free(listening.said);
    if (!status)
        status = mesh_sum(evaluation->mesh, (double *)out->exit, (int)(count * sizeof *out->exit / sizeof(double)));
    return status;
}

void exits_found_free(struct exits_found *found) {
    free(found->exit);
    found->exit = NULL;
}

static double sum_from(const double *values, int from) {
    double sum = 0;
    for (int i = from; i <= CONFIDENCES; i++) sum += values[i];
    return sum;
}

double exit_tokens(const struct exit_tally *tally) {
    return sum_from(tally->tokens, 0);
}

double exit_loss_of(const struct exit_tally *tally) {
    return tally->nats / exit_tokens(tally);
}

double exit_agreement(const struct exit_tally *tally) {
    return sum_from(tally->same, 0) / exit_tokens(tally);
}

int exit_threshold(const struct exit_tally *tally, double agreement, double *leave) {
    const double all = exit_tokens(tally);
    for (int from = 0; from <= CONFIDENCES; from++) {
        const double tokens = sum_from(tally->tokens, from);
        *leave = tokens / all;
        if (tokens > 0 && sum_from(tally->same, from) >= agreement * tokens) return from;
    }
    *leave = 0;
    return CONFIDENCES + 1;
}
