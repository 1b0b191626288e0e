#include "dist/mesh/machine.h"

#include "dist/mpi/activity.h"
#include "dist/mpi/mpi_error.h"

#include <string.h>

/* Between the two the watchdog knows what this rank may be waiting for. */
static int open_machine(const struct mesh *mesh, MPI_Comm *machine) {
    activity_enter("mesh", "exchange on a machine", -1, -1);
    int code = MPI_Comm_split_type(mesh->world, MPI_COMM_TYPE_SHARED, mesh->rank, MPI_INFO_NULL, machine);
    if (code == MPI_SUCCESS) return 0;
    activity_leave();
    return mpi_failed(code, "MPI_Comm_split_type");
}

static void close_machine(MPI_Comm *machine) {
    MPI_Comm_free(machine);
    activity_leave();
}

int machine_rank(const struct mesh *mesh, int *rank) {
    MPI_Comm machine;
    *rank = 0;
    if (mesh->size == 1) return 0;
    TRY(open_machine(mesh, &machine));
    MPI_Comm_rank(machine, rank);
    close_machine(&machine);
    return 0;
}

int machine_count(const struct mesh *mesh, int number, int *ranks) {
    MPI_Comm machine, same = MPI_COMM_NULL;
    *ranks = 1;
    if (mesh->size == 1) return 0;
    TRY(open_machine(mesh, &machine));
    int code = MPI_Comm_split(machine, number, 0, &same);
    if (code == MPI_SUCCESS) {
        MPI_Comm_size(same, ranks);
        MPI_Comm_free(&same);
    }
    close_machine(&machine);
    MPI_TRY(code);
    return 0;
}

int machine_union(const struct mesh *mesh, const void *mine, int bytes, void *all, int *ranks) {
    MPI_Comm machine;
    *ranks = 1;
    memcpy(all, mine, (size_t)bytes);
    if (mesh->size == 1) return 0;
    TRY(open_machine(mesh, &machine));
    int code = MPI_Allreduce(MPI_IN_PLACE, all, bytes, MPI_BYTE, MPI_BOR, machine);
    MPI_Comm_size(machine, ranks);
    close_machine(&machine);
    MPI_TRY(code);
    return 0;
}
