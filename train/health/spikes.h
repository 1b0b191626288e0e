/* Spikes: steps whose loss or gradient norm lies far above what it was in the steps before (spikes.* of the
 * configuration). The last `window` values of accepted steps are kept; a new one is a spike where
 *
 *     z = (value − mean) / max(deviation, 0.01·|mean|)   exceeds spikes.threshold.
 *
 * The floor of one hundredth of the mean: where training has come to rest, or data repeat, the values differ
 * by little more than rounding, and by the deviation alone a change in the fourth digit would be a spike.
 * With it, and the default threshold of 6, a value has to be 6% above the mean at least.
 *
 * A step is judged once there are SPIKE_MIN values, and half a window of them: deviations of fewer are too
 * uncertain. What was a spike never enters the window, or a few would make the next ones look usual. A value
 * that is not finite is a spike whatever the window holds.
 *
 * The values have the same bits on all ranks, so all ranks judge alike. They are a part of the training state
 * and are saved in checkpoints (`/spikes/window`): a resumed run judges as one that was not stopped. */
#ifndef GDN_SPIKES_H
#define GDN_SPIKES_H

#include <stdbool.h>
#include <stdint.h>

#include "train/config/config.h"

enum spike_kind { SPIKE_NONE, SPIKE_LOSS, SPIKE_NORM, SPIKE_NOT_FINITE };

/* One spike, and what it was compared with (NAN where it was not). */
struct spike {
    enum spike_kind kind;
    double value, mean, deviation, z;
};

struct spikes {
    const struct spikes_config *config;
    /* [count] as checkpoints have it, NULL where spikes.window is 0: the window's length; how many values it
     * holds; where the next one goes; spikes so far; losses [window]; gradient norms [window]. */
    double *values;
    long count;
    struct spike last; /* of the last step */
};

/* An empty window. `config` outlives it. Not collective. GDN_INTERNAL without memory. */
int spikes_create(const struct spikes_config *config, struct spikes *out);
void spikes_free(struct spikes *spikes);

/* Before values are read from a checkpoint, and after: whether there were any of a window of this length.
 * Where not, the window is empty. */
void spikes_before_load(struct spikes *spikes);
bool spikes_loaded(struct spikes *spikes);

/* Whether a step's loss or gradient norm is a spike, told in spikes->last; where both are, the one with the
 * greater z. False without a window. */
bool spikes_judge(struct spikes *spikes, double loss, double norm);

/* A step was accepted: its values enter the window. */
void spikes_accept(struct spikes *spikes, double loss, double norm);

/* Spikes of the run so far. */
int64_t spikes_so_far(const struct spikes *spikes);
void spikes_set_so_far(struct spikes *spikes, int64_t count);

/* "loss", "grad_norm", "not finite". */
const char *spike_name(enum spike_kind kind);

#endif
