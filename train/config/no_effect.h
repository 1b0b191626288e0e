/* Settings that are allowed but change nothing, or not what they seem to. */
#ifndef GDN_NO_EFFECT_H
#define GDN_NO_EFFECT_H

#include <stdio.h>

#include "train/config/config.h"

/* A line for each such setting: distances and sources that no layer has, or that are introduced after the
 * last step, and a warm-up that does not end. size: the mesh's, of which the configuration may leave an axis
 * open. Not collective. */
void no_effect_print(const struct config *config, const int size[AXES], FILE *out);

#endif
