/* Finding and opening the modules of backends with a device of their own. */
#ifndef GDN_MODULES_H
#define GDN_MODULES_H

#include "kernels/accelerator.h"

/* The accelerator of "cuda" or "emulated", opened at the first call; NULL, with a failure that says what is
 * missing, where this build or machine has none, and without one where no module has that name.
 *
 * libgdn_NAME.so is looked for in the folder that the environment variable GDN_MODULES names, or else beside
 * the program, in ../lib from there, and where the build puts it. */
const struct accelerator *module_open(const char *name, int local);

#endif
