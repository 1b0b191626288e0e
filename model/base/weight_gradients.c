#include "model/base/weight_gradients.h"
#include "kernels/base/status.h"

static long room(long elements) {
    return (elements + WEIGHT_ALIGNED - 1) / WEIGHT_ALIGNED * WEIGHT_ALIGNED;
}

static void compute(struct model *m, const struct weight_product *p, long lda, long ldb) {
    multiply_weight(m, p->weight_id, 'T', 'N', p->m, p->n, p->k, p->alpha, p->a, lda, p->b, ldb, 1, p->c,
                    p->ldc);
}

static const real *keep(struct model *m, struct weight_set *set, long rows, long columns, const real *x,
                        long ld) {
    real *to = set->store + set->used;
    if (ld == columns)
        m->ops->copy(rows * columns, x, to);
    else
        m->ops->copy_columns(rows, columns, x, ld, to, columns);
    set->used += room(rows * columns);
    return to;
}

/* The operand where another product of the layer has kept it; NULL. */
static const struct weight_operand *kept_before(const struct weight_gradients *w, const real *x, long k,
                                                long n) {
    for (int i = 0; i < w->operands; i++)
        if (w->operand[i].x == x && w->operand[i].k == k && w->operand[i].n == n) return &w->operand[i];
    return NULL;
}

/* Elements of the store that a product needs, b only where no other has it. */
static long needed(const struct weight_product *p, bool has_b) {
    return room(p->k * p->m) + (has_b ? 0 : room(p->k * p->n));
}

static void count_product(struct weight_gradients *w, const struct weight_product *p, bool has_b) {
    if (!w->count) return;
    w->count[w->layer].elements += needed(p, has_b);
    w->count[w->layer].products++;
}

/* Into the set in hand, instead of its computation. */
static void defer(struct model *m, struct weight_product p, long lda, long ldb,
                  const struct weight_operand *before) {
    struct weight_gradients *w = m->weight_gradients;
    struct weight_set *set = w->open;
    if (set->count == w->size.products || set->used + needed(&p, before) > w->size.elements) {
        pass_failed(
            m, gdn_fail(GDN_INTERNAL,
                        "layer %d's gradients of weights do not fit into a weight set of %d products and %ld "
                        "elements",
                        w->layer, w->size.products, w->size.elements));
        return;
    }
    p.a = keep(m, set, p.k, p.m, p.a, lda);
    p.b = before ? before->copy : keep(m, set, p.k, p.n, p.b, ldb);
    set->product[set->count++] = p;
}

static void add_product(struct model *m, const struct weight_product *p, long lda, long ldb, bool again) {
    struct weight_gradients *w = m->weight_gradients;
    const struct weight_operand *before = again ? kept_before(w, p->b, p->k, p->n) : NULL;
    count_product(w, p, before);
    if (w->open)
        defer(m, *p, lda, ldb, before);
    else
        compute(m, p, lda, ldb);
    if (!again || before || w->operands == WEIGHT_OPERANDS || !(w->open || w->count)) return;
    const real *copy = w->open && w->open->count ? w->open->product[w->open->count - 1].b : NULL;
    w->operand[w->operands++] = (struct weight_operand){p->b, copy, p->k, p->n};
}

void weight_gradient(struct model *m, int weight_id, long rows, long columns, long tokens, real alpha,
                     const real *a, long lda, const real *b, long ldb, real *c, long ldc) {
    const struct weight_product product = {
        m->weight_gradients->layer, weight_id, rows, columns, tokens, alpha, a, b, c, ldc};
    add_product(m, &product, lda, ldb, false);
}

void weight_gradient_again(struct model *m, long rows, long columns, long tokens, real alpha, const real *a,
                           long lda, const real *b, long ldb, real *c, long ldc) {
    const struct weight_product product = {
        m->weight_gradients->layer, NO_WEIGHT_ID, rows, columns, tokens, alpha, a, b, c, ldc};
    add_product(m, &product, lda, ldb, true);
}

void begin_weight_set(struct model *m, struct weight_set *set) {
    if (set->next < set->count)
        pass_failed(m, gdn_fail(GDN_INTERNAL,
                                "a weight set is filled anew of which %d of %d products are not computed yet",
                                set->count - set->next, set->count));
    *set = (struct weight_set){.store = set->store, .product = set->product};
}

void defer_weight_gradients(struct model *m, struct weight_set *set, int layer) {
    struct weight_gradients *w = m->weight_gradients;
    w->layer = layer;
    w->operands = 0;
    w->open = layer >= w->from ? set : NULL;
}

void compute_weight_set(struct model *m, struct weight_set *set, int end) {
    for (; set->next < set->count && set->product[set->next].layer >= end; set->next++) {
        const struct weight_product *p = &set->product[set->next];
        compute(m, p, p->m, p->n);
    }
}
