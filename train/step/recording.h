/* A step's forward and backward passes, with what they exchange over device communicators, recorded on the
 * device once and then repeated as one call (CUDA graphs), so that the host need not launch each operation:
 * train.graphs. Kernels keep the numbers that they were recorded with, so a recording serves steps with the
 * same options and as many sequences; other steps (with dropout all, since each has masks of its own) are
 * executed as they come, and what comes twice in a row is recorded anew. Tokens are read from the same place
 * each time. */
#ifndef GDN_RECORDING_H
#define GDN_RECORDING_H

#include "dist/mesh/mesh.h"
#include "kernels/base/device.h"
#include "model/model.h"

struct recording {
    const struct device *device; /* NULL: nothing is recorded */
    void *kept;                  /* the device's; NULL: none yet */
    struct loss_options options; /* of the step before */
    long sequences;
    int count; /* steps in a row that were like it */
    int64_t bytes[AXES], calls[AXES]; /* that the passes hand over on each axis */
};

/* What to do with the passes of a step: execute them; execute them between recording_begin and recording_end,
 * which then runs them; or recording_repeat. */
enum recording_way { RECORDING_EXECUTE, RECORDING_RECORD, RECORDING_REPEAT };
enum recording_way recording_way(struct recording *recording, const struct loss_options *options,
                                 long sequences);

void recording_begin(struct recording *recording, const struct mesh *mesh);
/* `status` of what was recorded; returns it, or GDN_INTERNAL where the device could not record. */
int recording_end(struct recording *recording, const struct mesh *mesh, int status);
/* Counts on the mesh's axes what ranks hand over. */
void recording_repeat(struct recording *recording, struct mesh *mesh);
void recording_free(struct recording *recording);

#endif
