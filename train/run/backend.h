/* The backend that a configuration asks for: device and precision. */
#ifndef GDN_BACKEND_H
#define GDN_BACKEND_H

#include <stdio.h>

#include "dist/mesh/mesh.h"
#include "kernels/ops.h"
#include "train/config/config.h"

/* Opens the device that config->device asks for, on every rank alike, and gives its operations in
 * config->train.precision. `auto` becomes what was found: cuda where every rank has a GPU, cpu where none
 * has one. GDN_INPUT, naming what is missing, for a device or precision that this build or some rank's
 * machine does not have, or GPUs on some ranks alone with `auto`. Collective. */
int backend_choose(struct config *config, const struct mesh *mesh, const struct ops **ops);

/* A line behind `lead` where this processor computes the precision that was asked for in software. Not
 * collective. */
void backend_note(const struct ops *ops, const char *lead, FILE *out);

/* What `auto` means on this mesh: DEVICE_CUDA or DEVICE_CPU. Fails likewise. Collective. */
int backend_find(const struct mesh *mesh, int *device);

#endif
