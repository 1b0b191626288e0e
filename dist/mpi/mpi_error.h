/* MPI's error codes as statuses, and its types of our numbers. Private to dist/. */
#ifndef GDN_MPI_ERROR_H
#define GDN_MPI_ERROR_H

#include <mpi.h>

#include "kernels/base/real.h"
#include "kernels/base/status.h"
#include "kernels/base/wire.h"

/* MPI's type of a `real`. */
#define REAL_TYPE (sizeof(real) == sizeof(float) ? MPI_FLOAT : MPI_DOUBLE)

/* And of what travels in a wire type. */
static inline MPI_Datatype wire_type(enum wire wire) {
    return wire == WIRE_BF16 ? MPI_UINT16_T : REAL_TYPE;
}

/* Records "`call` failed: <MPI's words>" and returns GDN_INTERNAL. */
int mpi_failed(int code, const char *call);

/* Returns from the caller where an MPI call failed. */
#define MPI_TRY(call)                                                                                        \
    do {                                                                                                     \
        int mpi_code_ = (call);                                                                              \
        if (mpi_code_ != MPI_SUCCESS) return mpi_failed(mpi_code_, #call);                                   \
    } while (0)

#endif
