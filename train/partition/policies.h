/* What backward passes compute again, as far as the configuration says (enum recompute_policy of
 * model/model.h). */
#ifndef GDN_POLICIES_H
#define GDN_POLICIES_H

#include <stdbool.h>

#include "model/model.h"
#include "train/config/config.h"

/* Does memory decide, of layers or of their connections? */
bool recompute_chosen(const struct train_config *train);

/* What the configuration fixes, out [layers]; POLICY_NONE where memory decides. */
void recompute_fixed(const struct train_config *train, int layers, struct recompute *out);

#endif
