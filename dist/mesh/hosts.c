/* Which ranks of a mesh share a host: those that give the same name. */
#include "dist/mesh/mesh.h"
#include "dist/mpi/mpi_error.h"
#include "dist/mpi/polling.h"

#include <stdlib.h>
#include <string.h>

enum { HOST = sizeof((struct mesh *)0)->host };

/* The lowest rank on the same host. */
static int first_on_host(const char *hosts, int rank) {
    int first = 0;
    while (strncmp(hosts + (size_t)first * HOST, hosts + (size_t)rank * HOST, HOST)) first++;
    return first;
}

static int find(const struct mesh *mesh, char *hosts, int *first, int *index, int *count) {
    MPI_TRY(polling_allgather(mesh->polling, mesh->host, HOST, hosts, mesh->world));
    *first = first_on_host(hosts, mesh->rank);
    for (int r = 0; r < mesh->size; r++) {
        bool starts = first_on_host(hosts, r) == r;
        *count += starts;
        *index += starts && r < *first;
    }
    return 0;
}

int mesh_hosts(const struct mesh *mesh, int *first, int *index, int *count) {
    *first = *index = *count = 0;
    char *hosts = calloc((size_t)mesh->size, HOST);
    int status = hosts ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the names of all hosts");
    status = mesh_agree(mesh, status);
    if (!status) status = find(mesh, hosts, first, index, count);
    free(hosts);
    return status;
}
