/* Private to model/delta/: one pass over a layer's connections, and what its files offer each other. */
#ifndef GDN_DELTA_PRIVATE_H
#define GDN_DELTA_PRIVATE_H

#include "model/delta/connections.h"

/* One pass over a layer's connections. */
struct delta_pass {
    struct model *m;
    const struct rule_layer *x;
    struct connections *c; /* x->own */
    int all;               /* active connections */
    int n;                 /* of which this rank computes n, numbered as in `mine` */
    const struct own_active *mine;
    long total;            /* active edges of the whole model */
    long row0, rows;       /* T below: all tokens, or the own ones of on_own_rows */
    bool works;            /* this rank's backward pass goes through gates of its own */
    const real *t;         /* [T, D] target */
    struct source *source; /* [all], in struct delta_state */
    real *dt;              /* [T, D] gradient of t, added to */
    struct loss_sums *sums;
    struct connection_sums *each; /* [edges] of the whole model; NULL: not wanted */
    struct connection_sums *effects; /* the same of `effect`, in a backward pass */
    bool measure;                 /* compute the sparsity and entropy sums */
    bool recomputed;              /* what the forward pass has not kept: sums have been counted then */
    double sparsity, entropy;     /* gradient weights of one token of one connection; 0: none */
};

/* This rank's i-th active connection. */
static inline const struct source *own(const struct delta_pass *p, int i) {
    return &p->source[p->mine->among[i]];
}
/* Its part of a stack with `size` elements of each connection; those of its neighbours lie behind it. */
static inline struct tensor own_tensor(const struct delta_pass *p, struct tensor stack, int i, long size) {
    long at = p->mine->place[i] * size;
    return (struct tensor){stack.w ? stack.w + at : NULL, stack.g ? stack.g + at : NULL};
}
/* Of a width that is divided among the ranks that share a connection: this rank's part. */
static inline long own_part(const struct model *m, long width) {
    return m->delta->part.channels ? width / m->tensor->size : width;
}
/* Do all tensor ranks need the same maps where their weights are whole, so that each computes them for its
 * own rows? */
static inline bool shares_maps(const struct model *m) {
    return m->rows_divided && m->delta->part.channels;
}

/* active.c: which connections are active, of a pass with m, x and c: fills all, n, mine, and of the sources
 * their edges. */
void find_active(struct delta_pass *p);
/* So many of this rank's active connections, from the i-th on, are neighbours in its stacks: one product takes
 * them. All of them are while distances are introduced one after the other. */
int neighbours(const struct delta_pass *p, int i);
/* Of a stack of vectors those of this rank's active connections, as one [n·size]: themselves where they are
 * neighbours, else copied to `room`. */
const real *active_stack(const struct delta_pass *p, const real *stack, long size, real *room);
/* To such a stack of gradients adds the sums over the pass's rows of dx [T, n·size]. */
void add_bias_gradient(const struct delta_pass *p, const real *dx, long size, real *stack);

/* source.c: an edge's source, and where its gradient goes. */
struct source find_source(struct model *m, const struct edge *edge);
/* The same pass over this rank's own rows alone, for what all tensor ranks would compute alike: with
 * sequence_parallel each does it for its own tokens. Else it is the pass itself. */
struct delta_pass on_own_rows(const struct delta_pass *p);
/* What aggregates read of all active sources, of the pass's rows: by the number of a map of the aggregate, W
 * s as out [rows, all, width]; and from its gradient dout adds to the leaf's and to the sources'. From the
 * inverse rms' own gradients, as factors of the sources k [all, rows] (select_back of kernels/ops.h): to the
 * sources'. */
void map_sources(const struct delta_pass *p, int map, real *out);
void map_sources_back(const struct delta_pass *p, int map, const real *dout);
void source_rms_back(const struct delta_pass *p, const real *k);

/* drop.c: does the pass drop gates? And dropout of the gates x [T, W] of this rank's i-th connection, or of
 * what is multiplied by them; `column` is the number of the first. Row distance ld, of y too, which may be
 * x. */
bool drops_gates(const struct delta_pass *p);
void drop_gates(const struct delta_pass *p, int i, long W, long column, const real *x, long ld, real *y);

/* measure.c: adds to the sums of this rank's i-th connection, where they are wanted: its gates [T, W] with
 * row distance ld (scratch [T, W]), and of all its connections c->rms [n, T]. */
void measure_gates(const struct delta_pass *p, int i, long W, const real *gate, long ld, real *scratch);
void measure_contributions(const struct delta_pass *p);

/* effect.c: adds to the sums what the loss would gain without each connection, where that is wanted: from
 * weights and dweight; and for an aggregate that combines contributions by heads, from this rank's W columns of
 * these c [T, all, W], shares alpha [T, all, heads] and the gradient of what they are combined to, dout [T, W].
 */
void measure_effects(const struct delta_pass *p);
void measure_head_effects(const struct delta_pass *p, long W, long heads, const real *c, const real *alpha,
                          const real *dout);

/* What the rule's row (rule.c) is made of. create.c: this rank's part of all connections; the tensors of a
 * layer's; bytes of what gate and aggregate save; buffers of all that is saved; scratch. */
int prepare_connections(struct model *m, struct model_rule *rule);
void release_connections(void *common);
size_t connection_bytes(const struct model_config *config);
void find_connections(struct model *m, const struct rule_layer *x);
void lay_out_connections(struct model *m, const struct rule_layer *x, void *shared, long T);
void lay_out_delta_scratch(struct model *m, const struct model_rule *rule, long T, int n);

/* delta.c: z += aggregate(contributions), from y before it; a pass over a layer's connections begins. */
void connections_forward(struct model *m, const struct rule_layer *x, real *z, struct loss_sums *sums);
void connections_backward(struct model *m, const struct rule_layer *x);
void recompute_connections(struct model *m, const struct rule_layer *x);
struct delta_pass begin_connections(struct model *m, const struct rule_layer *x, struct loss_sums *sums);

/* watch.c: shows the active connections; overwrites the scratch of differences. */
void watch_connections(struct model *m, const struct rule_layer *x);

/* normalize.c: the norms of the layer's differences from what compressed sources came back as. Of two layers
 * next to each other a difference is small beside either, so what factors miss of a source may be many times
 * the difference: by the norms of the forward pass its gradient would grow with the square of that. */
void renew_norms(struct model *m, const struct rule_layer *x);

/* project.c, by the number of a map of the gate: W_i δ_i or W_i (s_i+t)/2 of all connections, out [T,
 * n·width], all rows of them on all ranks. Of their gradient dout [T, n·width] each rank has its terms;
 * map_sum adds them up where the map is shared, and gives the pass, over all rows or own ones, whose rows of
 * dout map_backward takes: it adds to the leaf's gradient, to dt and to the sources' gradients. */
void map_forward(struct delta_pass *p, int map, real *out);
struct delta_pass map_sum(struct delta_pass *p, int map, real *dout);
void map_backward(struct delta_pass *p, int map, const real *dout);

/* normalize.c: the row factors r = γ/max(‖δ‖, ε), and their backward pass: from dr [T] of connection i adds
 * to scale's gradient and to k [T], the factor of δ in δ's gradient. Without `normalize` both do nothing. */
void normalize_forward(struct delta_pass *p);
void normalize_backward(struct delta_pass *p, int connection, const real *dr, real *k);
/* The row factors of a connection, or NULL. */
const real *row_factor(const struct delta_pass *p, int connection);

/* weight.c: fills the weights [T, n] of the contributions; what is computed again of what shares come from;
 * backward reads dweight. */
void weights_forward(struct delta_pass *p);
void weights_again(const struct delta_pass *p);
void weights_backward(struct delta_pass *p);

/* narrow.c: where in a projected source [T, projected_width] a block begins; the blocks of the gate's maps come
 * first, then one of each of the aggregate's, then the inverse rms. */
long projected_offset(const struct model *m, long T, int block);
int aggregate_block(const struct model *m, int map);
int rms_block(const struct model *m);
/* The same file: model_project and model_unproject of an edge. */
void project_source(struct model *m, int edge, const real *s, long T, real *projected);
void unproject_source(struct model *m, int edge, const real *s, long T, const real *projected_gradient,
                      real *source_gradient);

#endif
