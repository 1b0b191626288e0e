/* The configuration of a run, the same on all ranks. */
#ifndef GDN_RUN_CONFIG_H
#define GDN_RUN_CONFIG_H

#include "dist/mesh/mesh.h"
#include "train/config/config.h"

/* Reads the configuration at `path` with `count` overrides on each rank, and its text, resolved; they must be
 * the same on all. The caller owns both, whatever this returns. Collective. GDN_INPUT. */
int run_config_read(const struct mesh *mesh, const char *path, char *const *set, int count,
                    struct config *config, char **text);

/* Makes the text anew where the configuration was changed. Not collective. GDN_INTERNAL without memory. */
int run_config_resolve(const struct config *config, char **text);

#endif
