#include "train/optimizer/update.h"

#include "kernels/base/status.h"
#include "model/params/find.h"
#include "train/optimizer/matrices.h"

int optimizer_begin(struct optimizer *o, const struct edge_set *active, double gscale) {
    for (int i = 0; i < o->table->rows; i++)
        if (params_active(&o->table->row[i], active)) o->state->steps[i]++;
    return matrices_update(o, active, gscale);
}

/* Reads weight, gradient and moments, writes weight and moments. */
int64_t optimizer_element_bytes(int moments) {
    return (3 + 2 * moments) * (int64_t)sizeof(real);
}

int64_t optimizer_update_bytes(const struct bucket *bucket) {
    return bucket->own_count * optimizer_element_bytes(bucket->kept);
}

/* The first of the pieces, which lie by place in the moments, that a bucket has. */
static int first_piece(const struct shards *shards, const struct bucket *bucket) {
    int low = 0, high = shards->pieces;
    while (low < high) {
        int middle = (low + high) / 2;
        if (shards->piece[middle].moment >= bucket->moment)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void optimizer_update(struct optimizer *o, int bucket, const struct edge_set *active,
                      const struct rates *rates) {
    const struct shards *shards = o->shards;
    for (int i = first_piece(shards, &shards->bucket[bucket]); i < shards->pieces; i++) {
        const struct piece *piece = &shards->piece[i];
        if (piece->bucket != bucket) break;
        if (!params_active(&o->table->row[piece->row], active)) continue;
        const struct update update = optimizer_piece(o, piece, rates);
        o->rule->update(&update);
    }
}
