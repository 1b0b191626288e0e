/* Models with compressed sources (model/pass/compress.c), and models that keep all and whose outputs of nodes
 * are overwritten by the product of their factors between the passes, through the same micro-batches. */
#ifndef GDN_TEST_COMPRESS_RUN_H
#define GDN_TEST_COMPRESS_RUN_H

#include "kernels/lowrank/lowrank.h"
#include "tests/model/pass/pipeline.h"

enum { LAYERS = 8, NODES = LAYERS + 1, D = 16, ACTIVATION_SETS = 3, PLAYED = 4, MAX = 24 };

/* What is tried. */
struct setting {
    struct model_config config;
    struct loss_options options;
    const struct cut *cut;
    int way; /* how the tensor axis divides */
    struct recompute policies[LAYERS];
    const struct ops *ops;
    long batch, length;
    double noise;         /* of the weights */
    bool equal_sequences; /* the sequences of a micro-batch: then no output has a rank above their length */
    char what[160];
};

/* Variants have all kinds, aggregates, normalize and other settings, cuts one to three chunks, which are all
 * this rank's. */
enum { CUTS = 3, VARIANTS = 24 };
struct setting setting_of(int variant, int cut, int way, const struct ops *ops);

/* The compression ratios to try, beginning with full rank. */
enum { RATIOS = 3 };
extern const double ratios[RATIOS];

/* Of each chunk. */
extern const int activation_sets[CUTS];

/* Whether a node of a chunk's layers is compressed. */
bool compressed(const struct setting *s, struct span span, int node);

/* What to create a model of; ratio 0: without compression. */
struct model_part part_of(const struct setting *s, const struct layout *layout, struct axis *axis,
                          double ratio);

struct runner {
    const struct setting *s;
    struct pipeline pipe;
    struct part *part; /* the pipeline's only rank */
    double ratio;
    bool overwrites; /* plays compression by itself, on a model without */
    bool planned;
    struct arena arena;
    struct lowrank scratch;
    real *q, *b;
    real gradient[MAX * D], source_gradients[NODES][MAX * D], *source_gradient[NODES];
    bool left[NODES];
    struct loss_sums sums[PLAYED];
};

struct runner *runner_create(const struct setting *s, double ratio, bool overwrites);
void runner_free(struct runner *r);

/* What a chunk's pass over a micro-batch is handed, of which the last is smaller than the others. `source`
 * and `source_gradient` [NODES] are filled. */
struct pass pass_of(struct runner *r, int micro_batch, int activation_set, int chunk, real **source,
                    real **source_gradient);

/* A micro-batch through all chunks. */
void runner_forward(struct runner *r, int micro_batch, int activation_set, bool evaluate);

/* Four micro-batches as pipelines interleave them, evaluations in between. */
void play(struct runner *r);

/* Fails, by `failures`, unless all tensor ranks have the same bits. */
void same_on_ranks(const real *x, long count, const char *what, const char *of, int number);

#endif
