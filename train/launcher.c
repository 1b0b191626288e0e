#include "train/launcher.h"

#include <math.h>
#include <stdlib.h>

/* Neither srun nor MPI_Init in a process without a launcher sets OMPI_COMM_WORLD_SIZE; what mpirun is given
 * with --mca it hands on in its ranks' environment. */
double launcher_grace(void) {
    if (!getenv("OMPI_COMM_WORLD_SIZE")) return INFINITY;
    const char *seconds = getenv("OMPI_MCA_odls_base_sigkill_timeout");
    return seconds && *seconds ? atof(seconds) : 1;
}
