/* A trained model without some of its layers: which ones do least for its loss, and the model that is left, whose
 * connections read the nearest layer below where theirs has gone. On the host. */
#ifndef GDN_PRUNE_LAYERS_H
#define GDN_PRUNE_LAYERS_H

#include "data/outcome.h"
#include "dist/layout/table.h"
#include "train/evaluation/evaluation.h"

enum prune_layers_by { LAYERS_LEAVE_ONE_OUT, LAYERS_ANGLE };
extern const char *const prune_layers_by_words[]; /* what each is called; then NULL (layers.c) */

/* cut.c: what is left of a model. */
struct cut {
    int num_layers;
    int *layer; /* [num_layers] which they were */
    int edges;
    struct cut_edge {
        struct delta_edge now;
        int target, distance; /* as it was, which its tensors are named by */
        double factor; /* of what it adds, to make up for the scale of another distance */
    } *edge;           /* [edges] by target, then distance */
};

/* The model without layers l with gone[l], of which one at least stays; of its connections those of the set. A
 * connection into a layer that goes, goes; one that reads such a layer reads the nearest below that stays, or the
 * embedding, unless its target reads that already. `out` is a copy of the configuration that shares its strings, with
 * the edges listed. Not collective. GDN_INPUT where these are too many, GDN_INTERNAL. Free with cut_free, whatever
 * this returns. */
int cut_create(const struct config *config, const struct edges *edges, const struct edge_set *active, const bool *gone,
               struct cut *cut, struct config *out);
void cut_free(struct cut *cut);

/* What a tensor was called, and what its elements are to be multiplied with. */
void cut_name(const struct cut *cut, const struct model_config *config, const char *name, char *before, size_t size,
              double *factor);

/* Settings of one layer's tensors (train.groups) follow the layer to its new number, and go with it. */
void cut_groups(const struct cut *cut, struct train_config *train);

struct prune_layer {
    int layer;
    double angle;    /* mean over tokens, in parts of half a turn */
    double increase; /* of the loss without it alone; NAN: not measured */
    bool kept;
};

struct prune_layers {
    int count;
    struct prune_layer *layer; /* [count] by falling importance */
    double loss, kept_loss;
    bool *gone;         /* [count] by number */
};

struct prune_layers_job {
    struct evaluation *evaluation;
    const struct edge_set *active;
    const struct config *config;
    const struct table *table;
    const struct state *state;
    const struct ops *ops;
    enum prune_layers_by by;
    int less; /* so many layers go, fewer than there are */
    void (*tell)(void *context, int done, int all);
    void *context;
};

/* layers.c: measures them. Collective; the same on all ranks. Free with prune_layers_free, whatever this returns.
 * GDN_INPUT where a loss is not finite; else as evaluation_loss. */
int prune_layers_measure(const struct prune_layers_job *job, struct prune_layers *out);
void prune_layers_free(struct prune_layers *layers);

/* write.c: as prune_write, without those layers. */
int prune_layers_write(const struct prune_layers *layers, const struct prune_layers_job *job, const char *path,
                       struct outcome *outcome);

#endif
