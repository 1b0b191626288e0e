/* Pruning while training (train.prune): which delta connections go, and when. A step that measures gives each
 * connection's sums (model.h, struct connection_sums), of which moving averages are kept; at some steps the
 * least important go, for good or, with train.prune.regrow, until some of those that have gone come back. The
 * averages and which connections are left are a part of the training state and go into checkpoints (`/pruning`, a
 * text), so that a resumed run prunes as one that was not stopped. All values have the same bits on all ranks, so
 * all ranks decide alike.
 *
 * Importance of a connection (importance.h has a row of each), the first two of whole batches:
 *   contribution  the average of gate × contribution, times |mix| where it has one (as of gdn prune);
 *   first_order   the root mean square, over steps, of by how much the loss of the batch would grow without it
 *                 to first order: gradient · change of what enters the layer (after Molchanov et al. 2019). Where
 *                 training has come to rest the mean is 0, and the mean square is what second order has
 *                 (Fisher's information for the Hessian);
 *   leave_one_out the average of by how much the loss of some validation data does grow without it, found out before
 *                 each decision (leave_out.h) rather than by steps.
 * One that has gone is not computed, so nothing is measured of it: its average stays as it was, and is what it comes
 * back by. Once back, it is measured like the others, and its average goes on from there. */
#ifndef GDN_PRUNING_H
#define GDN_PRUNING_H

#include <stdbool.h>
#include <stdint.h>

#include "dist/layout/edge.h"
#include "model/model.h"
#include "train/config/config.h"
#include "train/prune/importance.h"

struct pruning {
    const struct prune_config *config;
    const struct edges *edges;
    int connections;  /* all that there were at first */
    bool *has;        /* [edges] those in use; edges of other rules always are */
    double *average;  /* [edges] of what the importance's row averages */
    int64_t measured; /* steps in the averages, or changes */
    struct pruning_sums *sums; /* [edges] for whoever finds them out */
    struct pruning_place {
        int edge;
        double importance;
    } *order; /* [edges] of the last decision: `kept`, then `gone`, by falling importance, then likewise `back` */
    int kept, gone, back; /* of it; kept + back are in use */
    double margin;  /* of it: the least by which an importance, in parts of itself, could have been another
                       without another decision; NAN where nothing could */
    char *text;     /* as the last checkpoint has it */
};

/* All connections, nothing measured. `config` and `edges` outlive it. Not collective. GDN_INTERNAL without
 * memory. pruning_free follows, whatever this returns. */
int pruning_create(const struct prune_config *config, const struct edges *edges, struct pruning *out);
void pruning_free(struct pruning *pruning);

/* The row of what is important; of nothing where training does not prune. */
const struct importance *pruning_importance(const struct prune_config *config);

/* Whether a step (0-based) measures; and whether before it connections may go. */
bool pruning_measures(const struct prune_config *config, int64_t step);
bool pruning_due(const struct pruning *pruning, int64_t step);

/* Takes what was found out, of all ranks, as pruning->sums has it. Not collective. */
void pruning_add(struct pruning *pruning);

/* Decides before a step: takes those that go out of pruning->has, and puts back those that come back; mix [edges]:
 * |mix|, 1 where a connection has none. Returns how many do either. Not collective. */
int pruning_decide(struct pruning *pruning, int64_t step, const double *mix);

/* How many connections a step is to have by the cubic schedule (Zhu & Gupta 2017). */
int pruning_schedule(const struct pruning *pruning, int64_t step);

/* The state as a text, and back. The text is the pruning's until the next call; NULL without memory. Not
 * collective. GDN_INPUT for a text of other connections. */
const char *pruning_text(struct pruning *pruning);
int pruning_read(struct pruning *pruning, const char *text);

/* Whether some are gone; and which are left, as pipeline_choose takes it: NULL where none are gone. */
bool pruning_has_pruned(const struct pruning *pruning);
const bool *pruning_chosen(const struct pruning *pruning);

#endif
