#include "train/check/network.h"
#include "train/records/unix_seconds.h"

#include <math.h>
#include <time.h>

/* ------------------------------------------------------------------------------------------- axes */

static const struct {
    long elements;
    int repeats;
} sums[] = {{1, 50}, {(64 << 10) / sizeof(real), 20}, {(4 << 20) / sizeof(real), 5}};
enum { SUMS = sizeof sums / sizeof *sums, WARM_UP = 2 };

static int mpi_status(int code) {
    return code == MPI_SUCCESS ? 0 : gdn_fail(GDN_INTERNAL, "MPI failed while ranks were measured");
}

/* Seconds of one sum, and the bytes that this rank hands over for it. */
static int time_sums(struct axis *axis, const struct ops *ops, real *x, int size, double *seconds,
                     double *bytes) {
    for (int i = 0; i < WARM_UP; i++) axis_sum(axis, x, sums[size].elements);
    TRY(ops->device->wait());
    TRY(mpi_status(MPI_Barrier(axis->comm)));
    int64_t before = axis->bytes;
    double began = MPI_Wtime();
    for (int i = 0; i < sums[size].repeats; i++) axis_sum(axis, x, sums[size].elements);
    TRY(ops->device->wait());
    *seconds = fmax(1e-9, (MPI_Wtime() - began) / sums[size].repeats);
    *bytes = (double)(axis->bytes - before) / sums[size].repeats;
    return axis->status;
}

static int measure(struct axis *axis, const struct ops *ops, real *x, double value[SUMS]) {
    double bytes[SUMS];
    for (int i = 0; i < SUMS; i++) {
        TRY(time_sums(axis, ops, x, i, &value[i], &bytes[i]));
        if (i) value[i] = bytes[i] / value[i];
    }
    return 0;
}

int check_axis(const struct mesh *mesh, struct axis *axis, const struct ops *ops, struct axis_speed *out) {
    *out = (struct axis_speed){.rank = 0};
    if (axis->size == 1) return 0;
    const long max = sums[SUMS - 1].elements;
    double value[SUMS] = {0};
    real *x = ops->device->reserve((size_t)max * sizeof *x);
    int status = x ? axis_reserve(axis, max)
                   : gdn_fail(GDN_INTERNAL, "no memory to measure the %s axis with", axis->name);
    status = mesh_agree(mesh, status);
    if (!status) status = mesh_agree(mesh, measure(axis, ops, x, value));
    if (x) ops->device->release(x);
    TRY(status);

    struct {
        double speed;
        int rank;
    } slowest = {value[2], 0};
    int first = mesh->rank; /* the lowest rank of this one's axis */
    TRY(mpi_status(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, axis->comm)));
    slowest.rank = first;
    TRY(mpi_status(MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE_INT, MPI_MINLOC, mesh->world)));
    TRY(mpi_status(MPI_Allreduce(MPI_IN_PLACE, &value[0], 1, MPI_DOUBLE, MPI_MAX, mesh->world)));
    TRY(mpi_status(MPI_Allreduce(MPI_IN_PLACE, &value[1], 1, MPI_DOUBLE, MPI_MIN, mesh->world)));
    *out = (struct axis_speed){value[0], value[1], slowest.speed, slowest.rank};
    return 0;
}

/* ----------------------------------------------------------------------------------------- clocks */

enum { ROUNDS = 10, TAG = 7 };

/* Answers with this rank's time. */
static int answer(const struct mesh *mesh) {
    for (int i = 0; i < ROUNDS; i++) {
        double mine;
        TRY(mpi_status(MPI_Recv(&mine, 1, MPI_DOUBLE, 0, TAG, mesh->world, MPI_STATUS_IGNORE)));
        mine = unix_seconds();
        TRY(mpi_status(MPI_Send(&mine, 1, MPI_DOUBLE, 0, TAG, mesh->world)));
    }
    return 0;
}

/* The other's clock is taken to have been read in the middle of the shortest round trip. */
static int ask(const struct mesh *mesh, int rank, struct clock_skew *out) {
    *out = (struct clock_skew){.uncertainty = INFINITY, .rank = rank};
    for (int i = 0; i < ROUNDS; i++) {
        double sent = unix_seconds(), theirs = 0;
        TRY(mpi_status(MPI_Send(&sent, 1, MPI_DOUBLE, rank, TAG, mesh->world)));
        TRY(mpi_status(MPI_Recv(&theirs, 1, MPI_DOUBLE, rank, TAG, mesh->world, MPI_STATUS_IGNORE)));
        double back = unix_seconds();
        if ((back - sent) / 2 >= out->uncertainty) continue;
        out->uncertainty = (back - sent) / 2;
        out->seconds = theirs - (sent + back) / 2;
    }
    return 0;
}

int check_clocks(const struct mesh *mesh, struct clock_skew *out) {
    *out = (struct clock_skew){.seconds = 0};
    if (mesh->rank) TRY(answer(mesh));
    for (int r = 1; !mesh->rank && r < mesh->size; r++) {
        struct clock_skew skew;
        TRY(ask(mesh, r, &skew));
        if (r == 1 || fabs(skew.seconds) > fabs(out->seconds)) *out = skew;
    }
    return mesh_broadcast(mesh, out, sizeof *out);
}
