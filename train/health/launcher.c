#include "train/health/launcher.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Neither srun nor MPI_Init in a process without a launcher sets OMPI_COMM_WORLD_SIZE; what mpirun is given
 * with --mca it hands on in its ranks' environment. */
double launcher_grace(void) {
    if (!getenv("OMPI_COMM_WORLD_SIZE")) return INFINITY;
    const char *seconds = getenv("OMPI_MCA_odls_base_sigkill_timeout");
    return seconds && *seconds ? atof(seconds) : 1;
}

bool launcher_is(pid_t process) {
    static const char *const names[] = {"mpirun", "mpiexec", "orterun", "orted", "prterun", "prted"};
    char path[64], name[32] = "";
    const char *handed_on = getenv("OMPI_MCA_orte_forward_job_control");
    if (handed_on && atoi(handed_on)) return false;
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)process);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool read = fgets(name, sizeof name, file) != NULL;
    fclose(file);
    name[strcspn(name, "\n")] = 0;
    for (size_t i = 0; read && i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}
