/* gdn prune --layers: a model without some of its layers. */
#ifndef GDN_PRUNE_LAYERS_COMMAND_H
#define GDN_PRUNE_LAYERS_COMMAND_H

#include "data/outcome.h"
#include "train/command/subject.h"
#include "train/prune/layers.h"

struct prune_layers_wish {
    int less; /* so many layers go */
    enum prune_layers_by by;
    const char *output; /* NULL: nothing is written; else `outcome` is open on rank 0 */
    bool json;
};

/* Measures the layers of a subject that is loaded, writes the model without the least important ones, and prints.
 * Collective. GDN_INPUT where that cannot be; as prune_layers_measure and prune_layers_write. */
int prune_layers_command(struct subject *subject, const struct prune_layers_wish *wish, struct outcome *outcome);

#endif
