#include "train/command/version.h"

#include <dlfcn.h>
#include <hdf5.h>
#include <libfyaml.h>
#include <mpi.h>
#include <string.h>

#include "kernels/base/real.h"
#include "version_commit.h" /* GDN_COMMIT; written at each build by version.cmake */

const char *version_commit(void) {
    return GDN_COMMIT;
}

/* Which matrix library is linked is the kernels' business: whichever is loaded is asked by its public
 * name. */
static void print_matrix_libraries(FILE *out) {
    char *(*openblas)(void) = NULL;
    const int *(*onednn)(void) = NULL; /* dnnl_version_t begins with major, minor, patch */
    *(void **)&openblas = dlsym(RTLD_DEFAULT, "openblas_get_config");
    *(void **)&onednn = dlsym(RTLD_DEFAULT, "dnnl_version");
    if (openblas) fprintf(out, "BLAS:      %s\n", openblas());
    if (onednn) fprintf(out, "oneDNN:    %d.%d.%d\n", onednn()[0], onednn()[1], onednn()[2]);
    if (!openblas && !onednn) fprintf(out, "BLAS:      none (own kernels)\n");
}

void version_print(FILE *out) {
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    unsigned major, minor, release;
    MPI_Get_library_version(mpi, &length);
    mpi[strcspn(mpi, "\n")] = 0;
    H5get_libversion(&major, &minor, &release);
    fprintf(out, "gdn " GDN_VERSION "\n");
    fprintf(out, "commit:    " GDN_COMMIT "\n");
    fprintf(out, "compiler:  " GDN_COMPILER "\n");
    fprintf(out, "C flags:   " GDN_C_FLAGS "\n");
    fprintf(out, "numbers:   " GDN_REAL_NAME "\n");
    fprintf(out, "backends:  reference, cpu\n");
    fprintf(out, "OpenMP:    %d\n", _OPENMP);
    fprintf(out, "MPI:       %s\n", mpi);
    fprintf(out, "HDF5:      %u.%u.%u\n", major, minor, release);
    fprintf(out, "libfyaml:  %s\n", fy_library_version());
    print_matrix_libraries(out);
}
