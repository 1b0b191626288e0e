/* A dry run: a pipeline rank's list walked by the executor's own handlers on what only counts: a model
 * without memory (model_create_planned), its operations, and planned axes (dist/comm/axis.h), on which
 * messages are counted where they would be sent. Sums and updates (act_is_of_update) are left to its
 * caller. */
#ifndef GDN_DRY_RUN_H
#define GDN_DRY_RUN_H

#include "train/step/execute.h"

struct dry_run {
    const struct execution *execution; /* on a mesh of planned axes, without state */
    const struct actions *list;        /* of a largest step with the edges of `options` */
    const struct loss_options *options;
    void (*action)(void *context, int i);    /* after action i of the list, if it can count anything */
    void (*layer)(void *context, int layer); /* in a BACKWARD, after a layer */
    void *context;
};

/* Walks the list, of the rank at the mesh's pipeline index. Not collective. GDN_INTERNAL without memory,
 * where a pass fails, and where the list is at fault. */
int execute_dry(const struct dry_run *run);

#endif
