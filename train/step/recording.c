#include "train/step/recording.h"

#include <string.h>

static bool same(const struct loss_options *a, const struct loss_options *b) {
    return a->active == b->active && a->target_weight == b->target_weight && a->token_weight == b->token_weight &&
           a->sparsity_weight == b->sparsity_weight && a->entropy_weight == b->entropy_weight &&
           a->z_weight == b->z_weight && a->l1_weight == b->l1_weight &&
           a->measure == b->measure && a->each == b->each &&
           a->masks == b->masks && !memcmp(a->exit_weight, b->exit_weight, sizeof a->exit_weight);
}

enum recording_way recording_way(struct recording *r, const struct loss_options *options, long sequences) {
    if (!r->device) return RECORDING_EXECUTE;
    if (r->count == 0 || sequences != r->sequences || !same(options, &r->options)) {
        recording_free(r);
        r->options = *options;
        r->sequences = sequences;
        r->count = 1;
        return RECORDING_EXECUTE;
    }
    r->count++;
    return r->kept ? RECORDING_REPEAT : RECORDING_RECORD;
}

/* What axes have counted since, with `sign` −1, and up to now, with 1. */
static void count(struct recording *r, const struct mesh *mesh, int sign) {
    for (int a = 0; a < axes_count(); a++) {
        r->bytes[a] += sign * mesh->axis[a].bytes;
        r->calls[a] += sign * mesh->axis[a].calls;
    }
}

void recording_begin(struct recording *r, const struct mesh *mesh) {
    memset(r->bytes, 0, sizeof r->bytes);
    memset(r->calls, 0, sizeof r->calls);
    count(r, mesh, -1);
    r->device->record();
}

int recording_end(struct recording *r, const struct mesh *mesh, int status) {
    count(r, mesh, 1);
    r->kept = r->device->recorded();
    if (!status) status = r->device->status();
    if (!status) r->device->repeat(r->kept); /* whose exchanges were counted as they were recorded */
    return status;
}

void recording_repeat(struct recording *r, struct mesh *mesh) {
    for (int a = 0; a < axes_count(); a++)
        mesh->axis[a].bytes += r->bytes[a], mesh->axis[a].calls += r->calls[a];
    r->device->repeat(r->kept);
}

void recording_free(struct recording *r) {
    if (r->kept) r->device->discard(r->kept);
    r->kept = NULL;
    r->count = 0;
}
