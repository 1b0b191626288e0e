/* MPI's error codes as statuses. Private to dist/. */
#ifndef GDN_MPI_CHECK_H
#define GDN_MPI_CHECK_H

#include <mpi.h>

#include "kernels/base/status.h"

/* Records "`call` failed: <MPI's words>" and returns GDN_INTERNAL. */
int mpi_failed(int code, const char *call);

/* Returns from the caller where an MPI call failed. */
#define MPI_TRY(call)                                                                                        \
    do {                                                                                                     \
        int mpi_code_ = (call);                                                                              \
        if (mpi_code_ != MPI_SUCCESS) return mpi_failed(mpi_code_, #call);                                   \
    } while (0)

#endif
