#include "dist/mpi/mpi_check.h"

int mpi_failed(int code, const char *call) {
    char words[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0;
    MPI_Error_string(code, words, &length);
    return gdn_fail(GDN_INTERNAL, "%s failed: %s", call, words);
}
