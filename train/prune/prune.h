/* What the delta connections of a trained model do for its loss: connections in the order of their
 * importance, and the loss with fewer and fewer of them. No weight is changed: a connection that is left out
 * is one that is not active (dist/layout/edge.h), so that what is measured is the model without it, means
 * over a layer's connections and shares among them made anew. */
#ifndef GDN_PRUNE_H
#define GDN_PRUNE_H

#include <stdbool.h>

#include "data/outcome.h"
#include "dist/layout/table.h"
#include "train/evaluation/evaluation.h"

/* What importance is: by how much the loss grows without the connection alone, an evaluation each; what one
 * evaluation of all tells, gate x contribution; or what one pass forward and backward tells, by how much groups of the
 * data would lose to first order (evaluation_effects). */
enum prune_by { PRUNE_LEAVE_ONE_OUT, PRUNE_CONTRIBUTION, PRUNE_FIRST_ORDER };
extern const char *const prune_by_words[]; /* what each is called; then NULL (measure.c) */

struct prune_edge {
    int edge;                     /* its number in the table */
    int target, source, distance; /* −1: the embedding is the source */
    double gate;                  /* mean over tokens and gates */
    double contribution;          /* mean over tokens of its root mean square, times |mix| where it has one */
    double effect;                /* first order; NAN: not measured */
    double increase;              /* of the loss without it alone; NAN: not measured */
    double importance;            /* whichever of these it is */
    bool kept;
};

struct prune_point {
    int kept; /* so many of the most important connections */
    double loss;
};

struct prune {
    int count;                 /* connections that are active */
    struct prune_edge *edge;   /* [count] by falling importance */
    struct prune_point *curve; /* [points] by falling number */
    int points;
    double loss;        /* with all of them */
    double kept_loss;   /* with those kept; NAN: it was not said how many */
    /* Of the ranks by gate x contribution, and by first order, with those by leave-one-out (Spearman); NAN: not known. */
    double correlation, effect_correlation;
};

struct prune_job {
    struct evaluation *evaluation; /* of one set, on ranks that have all layers each */
    const struct edge_set *active; /* those of the model's edges that are in use */
    const struct model_config *config;
    const struct table *table; /* of the whole model, */
    const struct state *state; /* and its weights, */
    const struct ops *ops;     /* on this device */
    enum prune_by by;
    int keep;   /* so many of the connections; −1: that is not said */
    int points; /* of the curve, about, both ends among them; at least 2 */
    /* Told after each of `all` evaluations; NULL: nobody. */
    void (*tell)(void *context, int done, int all);
    void *context;
};

/* Measures them. Collective; the same on all ranks. Free with prune_free, whatever this returns. GDN_INPUT
 * where the model has no connections, or a loss is not finite; else as evaluation_loss. */
int prune_measure(const struct prune_job *job, struct prune *out);
void prune_free(struct prune *prune);

/* Gate x contribution. */
static inline double prune_use(const struct prune_edge *edge) {
    return edge->gate * edge->contribution;
}

/* Whether it is measured by first order: where that is asked for, and beside leave-one-out on the host. */
static inline bool prune_takes_effects(enum prune_by by, const struct ops *ops) {
    return by == PRUNE_FIRST_ORDER || (by == PRUNE_LEAVE_ONE_OUT && ops->device->host);
}

/* How many connections a model has in use. */
int prune_count(const struct edges *edges, const struct edge_set *active);

/* write.c: fills an open folder (data/outcome.h) and gives it its name: checkpoint.h5, the weights of the
 * checkpoint.h5 at `path` without those of connections that are not kept, and config.yaml, its configuration
 * with the edges kept, which starts from these weights. One process. GDN_INPUT, GDN_INTERNAL. */
int prune_write(const struct prune *prune, const char *path, struct outcome *outcome);

/* Before anything is measured: whether config.yaml, which is UTF-8, can say where checkpoint.h5 will be. Not
 * collective. GDN_INPUT. */
int prune_verify_folder(const char *directory);

/* curve.c: draws the curve into an SVG file. One process. Fails as plot_draw. */
int prune_draw(const struct prune *prune, const char *path);

#endif
