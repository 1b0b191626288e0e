#include "tests/dist/comm/side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/backend.h"

/* Between the program and MPI: how long what is handed over is. */
static long longest;

static void see(const int *at, const int *count, int ranks) {
    for (int r = 0; r < ranks; r++) {
        long end = (at ? (long)at[r] : 0) + count[r];
        if (end > longest) longest = end;
    }
}

long side_longest(void) {
    const char *transport = getenv("GDN_TEST_TRANSPORT");
    long was = longest;
    longest = 0;
    return transport && strcmp(transport, "nccl") == 0 ? 0 : was; /* the emulated NCCL is not cut */
}

static int ranks_of(MPI_Comm comm) {
    int size;
    PMPI_Comm_size(comm, &size);
    return size;
}

int MPI_Alltoallv(const void *out, const int counts[], const int at[], MPI_Datatype type, void *in,
                  const int received[], const int received_at[], MPI_Datatype in_type, MPI_Comm comm) {
    see(at, counts, ranks_of(comm));
    return PMPI_Alltoallv(out, counts, at, type, in, received, received_at, in_type, comm);
}

int MPI_Allgatherv(const void *out, int count, MPI_Datatype type, void *in, const int counts[],
                   const int at[], MPI_Datatype in_type, MPI_Comm comm) {
    see(at, counts, ranks_of(comm));
    return PMPI_Allgatherv(out, count, type, in, counts, at, in_type, comm);
}

int MPI_Allgather(const void *out, int count, MPI_Datatype type, void *in, int in_count, MPI_Datatype in_type,
                  MPI_Comm comm) {
    see(NULL, &count, 1);
    return PMPI_Allgather(out, count, type, in, in_count, in_type, comm);
}

int MPI_Bcast(void *x, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    see(NULL, &count, 1);
    return PMPI_Bcast(x, count, type, root, comm);
}

int MPI_Isend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *out) {
    see(NULL, &count, 1);
    return PMPI_Isend(x, count, type, to, tag, comm, out);
}

int MPI_Irecv(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *out) {
    see(NULL, &count, 1);
    return PMPI_Irecv(x, count, type, from, tag, comm, out);
}

const struct ops *side_ops(void) {
    return test_backend("cpu");
}

bool side_slow(void) {
    return strcmp(side_ops()->name, "emulated") == 0;
}

int side_mesh(int data, int tensor, int pipeline, struct mesh *out) {
    const char *asked = getenv("GDN_TEST_TRANSPORT");
    enum mesh_transport choice = !asked ? MESH_AUTO : strcmp(asked, "staged") == 0 ? MESH_STAGED : MESH_NCCL;
    TRY(mesh_create(axes_of(data, tensor, pipeline).size, out));
    TRY(mesh_use(out, side_ops(), choice, 0));
    if (!asked || out->size == 1 || strcmp(out->transport, asked) == 0) return 0;
    return gdn_fail(GDN_INTERNAL, "buffers travel by %s, not as GDN_TEST_TRANSPORT says", out->transport);
}

real *side_make(const real *host, long count) {
    real *x = side_ops()->device->reserve((size_t)count * sizeof *x);
    if (!x) exit(1);
    if (host) side_put(x, host, count);
    return x;
}

void side_drop(real *x) {
    side_ops()->device->release(x);
}

void side_put(real *x, const real *host, long count) {
    side_ops()->device->upload(x, host, (size_t)count * sizeof *x);
}

void side_get(real *host, const real *x, long count) {
    side_ops()->device->download(host, x, (size_t)count * sizeof *x);
}
