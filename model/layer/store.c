/* What a layer keeps in bf16 (SAVE_BF16). */
#include "model/layer/stream.h"

void store_layer(struct model *m, int l) {
    stored_keep(m, &m->layer[l].stored);
}

/* Rows that were gathered of the norms' outputs are not theirs any more. */
static void written(struct model *m, const struct layer *layer) {
    if (layer->stored.count == 0) return;
    stream_written(m, layer->n1);
    stream_written(m, layer->n2);
}

void load_layer(struct model *m, int l) {
    stored_bring(m, &m->layer[l].stored);
    written(m, &m->layer[l]);
}

void round_layer(struct model *m, int l) {
    stored_round(m, &m->layer[l].stored);
    written(m, &m->layer[l]);
}
