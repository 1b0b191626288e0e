/* A model cut into the stages of a pipeline whose ranks are all in one process, walked by hand: nodes,
 * source gradients and the gradient of the stream are handed from stage to stage as ranks send them. */
#ifndef GDN_TEST_PIPELINE_H
#define GDN_TEST_PIPELINE_H

#include "tests/model/tensor_ranks.h"

/* A cut into pipeline·chunks stages. */
enum { MAX_STAGES = 6 };
struct cut {
    int pipeline, chunks;
    struct span stage[MAX_STAGES];
};

/* The layout of a pipeline rank, divided over the tensor axis in a way of divided_layout. */
struct layout cut_layout(const struct cut *cut, int pipeline_index, int way);

struct pipeline {
    const struct cut *cut;
    int layers; /* of the model */
    const struct edge_set *active;
    struct edges edges;
    struct part rank[MAX_STAGES]; /* all ranks of the pipeline */
};

int pipeline_stages(const struct pipeline *p);

/* The model that computes a stage. */
struct model *pipeline_model(const struct pipeline *p, int stage);

/* Fills what the pass of a stage, in pass->activation_set, is handed: nothing but what it reads, collects or
 * leaves. `source` and `source_gradient` [1 + layers], entry 1 + node, are memory for pass->source and
 * pass->source_gradient; `source_gradients` are the buffers of the micro-batch's source gradients, and `left`
 * says where something has been left that was not collected yet. */
void pipeline_hand_over(const struct pipeline *p, int stage, real *const *source_gradients, bool *left,
                        real **source, real **source_gradient, struct pass *pass);

/* The layers of a stage's backward pass: from the head, or its last layer, down to the embedding, or its
 * first. */
int pipeline_top(const struct pipeline *p, int stage);
int pipeline_bottom(const struct pipeline *p, int stage);

/* The last layer of one call of that pass, which begins at `layer` and has at most `step` of them; 0: all. */
int pipeline_end(int layer, int bottom, int step);

#endif
