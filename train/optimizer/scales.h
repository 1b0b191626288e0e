/* The scales of products in 8 bits (fp8) as a part of the training state. A backend scales each operand by
 * the largest numbers that its weight's last products have had (ops.h, linear): what it keeps between calls
 * lies on its device (device.h, scales).
 *
 * After each step the ranks give one another the greatest numbers, as is usual for such scales (NVIDIA's
 * Transformer Engine reduces its "amax" likewise). Then all ranks hold the same, which the host keeps too.
 * That is what checkpoints have, whatever mesh writes or reads them: a resumed run goes on with the bits of
 * one that was not stopped. Evaluations, too, are products; what they add is taken back, so that they do not
 * change training. */
#ifndef GDN_SCALES_H
#define GDN_SCALES_H

#include <stdint.h>

#include "dist/mesh/mesh.h"
#include "kernels/ops.h"
#include "model/params/config.h"

struct scales {
    const struct device *device;
    void *on_device; /* where the device has them */
    uint32_t *word;  /* as of the last step; NULL: the precision has none */
    long count;
};

/* Zeros: nothing is known. Not collective. GDN_INPUT where the device has not scales enough, GDN_INTERNAL
 * without memory. */
int scales_create(const struct ops *ops, const struct model_config *model, struct scales *out);
void scales_free(struct scales *scales);

/* After a step: takes the ranks' greatest. Collective. GDN_INTERNAL. */
int scales_agree(struct scales *scales, const struct mesh *mesh);

/* Gives the device what `word` holds. Not collective. */
void scales_restore(const struct scales *scales);

#endif
