/* Weight sets, which keep the products of weights' gradients for later (base/weight_gradients.h). */
#include "model/base/weight_gradients.h"
#include "kernels/base/status.h"
#include "model/pass/private.h"

#include <stdlib.h>

int create_weight_sets(struct model *m, const struct model_part *part) {
    struct weight_gradients *w = m->weight_gradients;
    if (!part || !part->weight_sets || !m->training) return 0;
    w->size = part->weight_size;
    w->from = part->weights_from;
    w->set = calloc((size_t)part->weight_sets, sizeof *w->set);
    for (int s = 0; w->set && s < part->weight_sets; s++) {
        if (!(w->set[s].product = calloc((size_t)w->size.products + 1, sizeof *w->set[s].product))) break;
        w->sets++;
    }
    if (w->sets == part->weight_sets) return 0;
    return gdn_fail(GDN_INTERNAL, "out of memory for %d weight sets", part->weight_sets);
}

void lay_out_weight_sets(struct model *m) {
    struct weight_gradients *w = m->weight_gradients;
    for (int s = 0; s < w->sets; s++) w->set[s].store = take(&m->saved, w->size.elements);
}

void free_weight_sets(struct model *m) {
    struct weight_gradients *w = m->weight_gradients;
    for (int s = 0; s < w->sets; s++) free(w->set[s].product);
    free(w->set);
}

struct weight_set *weight_set_of(struct model *m, const struct pass *pass) {
    return pass->weight_set ? &m->weight_gradients->set[pass->weight_set - 1] : NULL;
}

void model_stage_weights(struct model *m, int weight_set, int end) {
    compute_weight_set(m, &m->weight_gradients->set[weight_set], end);
}
