/* MPI's error codes as statuses, and its type of our numbers. Private to dist/. */
#ifndef GDN_MPI_ERROR_H
#define GDN_MPI_ERROR_H

#include <mpi.h>

#include "kernels/base/real.h"
#include "kernels/base/status.h"

/* MPI's type of a `real`. */
#define REAL_TYPE (sizeof(real) == sizeof(float) ? MPI_FLOAT : MPI_DOUBLE)

/* Records "`call` failed: <MPI's words>" and returns GDN_INTERNAL. */
int mpi_failed(int code, const char *call);

/* Returns from the caller where an MPI call failed. */
#define MPI_TRY(call)                                                                                        \
    do {                                                                                                     \
        int mpi_code_ = (call);                                                                              \
        if (mpi_code_ != MPI_SUCCESS) return mpi_failed(mpi_code_, #call);                                   \
    } while (0)

#endif
