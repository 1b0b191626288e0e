#include "dist/mpi/mpi_error.h"

int mpi_failed(int code, const char *call) {
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return gdn_fail(GDN_INTERNAL, "%s failed: %s", call, text);
}
