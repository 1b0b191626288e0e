/* What a loadable module with a device of its own offers: libgdn_cuda.so and libgdn_emulated.so, opened by
 * kernels/backends/ when their backend is asked for. The program itself links nothing of CUDA's. */
#ifndef GDN_ACCELERATOR_H
#define GDN_ACCELERATOR_H

#include "kernels/ops.h"

/* gdn_fail (kernels/base/status.h) of the program that opens the module. */
typedef int gdn_fail_function(int status, const char *format, ...);

struct accelerator {
    const struct device *device;
    /* The table of a precision; NULL, with a failure that names what the device lacks. */
    const struct ops *(*ops)(enum precision precision);
};

/* The module's one entry: opens the device that this process is to use and returns what it offers; NULL, with
 * a failure that says what is missing, where there is none. `local` numbers this process among those on its
 * host, of which each takes the next GPU. */
typedef const struct accelerator *gdn_accelerator_function(gdn_fail_function *fail, int local);
#define GDN_ACCELERATOR_ENTRY "gdn_accelerator"

#endif
