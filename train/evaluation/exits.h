/* What a model's exits are worth (model.md, 13): their losses, how often they say what the last layer says, and
 * from which confidence on they do so as often as is wished. */
#ifndef GDN_EVALUATION_EXITS_H
#define GDN_EVALUATION_EXITS_H

#include "train/evaluation/evaluation.h"

/* Confidences are told apart by thousandths. */
enum { CONFIDENCES = 1000 };

/* Of one exit, over targets that count. All members are doubles, which ranks sum. */
struct exit_tally {
    double nats; /* Σ of its cross entropy */
    double tokens[CONFIDENCES + 1], same[CONFIDENCES + 1]; /* by confidence, the likeliest token's probability,
        in thousandths, rounded down: how many; for how many of them that token is the last layer's */
};

struct exits_found {
    int count;                 /* of exits */
    struct exit_tally *exit;   /* [count] */
    double loss;               /* the last layer's, nats a token */
};

/* Measures the exits on all sets of an evaluation on the cpu. Collective. Fails as evaluation_loss, with
 * GDN_INPUT where the last layer's loss is no number, and with GDN_INTERNAL without memory. Free with
 * exits_found_free, whatever this returns. */
int exits_measure(struct evaluation *evaluation, const struct model_config *config,
                  const struct edge_set *active, struct exits_found *out);
void exits_found_free(struct exits_found *found);

/* Over all tokens: how many, the loss in nats a token, the part for which the exit and the last layer agree. */
double exit_tokens(const struct exit_tally *tally);
double exit_loss_of(const struct exit_tally *tally);
double exit_agreement(const struct exit_tally *tally);

/* The least threshold in thousandths from which on, of tokens with at least this confidence, the wished part
 * agrees; CONFIDENCES + 1 where none does. *leave: the part of all tokens that are these. */
int exit_threshold(const struct exit_tally *tally, double agreement, double *leave);

#endif
