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

/* Seconds of one sum, and the bytes that this rank hands over for it. */
static int time_sums(struct axis *axis, const struct ops *ops, real *x, int size, double *seconds,
                     double *bytes) {
    for (int i = 0; i < WARM_UP; i++) axis_sum(axis, x, sums[size].elements);
    TRY(ops->device->wait());
    axis_sum_doubles(axis, &(double){0}, 1); /* all begin at the same time */
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

    double first = axis->index ? 0 : mesh->rank; /* summed: the lowest rank of this one's axis */
    axis_sum_doubles(axis, &first, 1);
    TRY(mesh_agree(mesh, axis->status));
    struct {
        double speed;
        int rank;
    } slowest = {value[2], (int)first};
    TRY(mesh_reduce(mesh, &slowest, 1, MPI_DOUBLE_INT, MPI_MINLOC));
    TRY(mesh_reduce(mesh, &value[0], 1, MPI_DOUBLE, MPI_MAX));
    TRY(mesh_reduce(mesh, &value[1], 1, MPI_DOUBLE, MPI_MIN));
    *out = (struct axis_speed){value[0], value[1], slowest.speed, slowest.rank};
    return 0;
}

/* ----------------------------------------------------------------------------------------- clocks */

enum { ROUNDS = 10 };

/* Answers with this rank's time. */
static int answer(const struct mesh *mesh) {
    for (int i = 0; i < ROUNDS; i++) {
        double mine;
        TRY(mesh_receive(mesh, 0, &mine, sizeof mine));
        mine = unix_seconds();
        TRY(mesh_send(mesh, 0, &mine, sizeof mine));
    }
    return 0;
}

/* The other's clock is taken to have been read in the middle of the shortest round trip. */
static int ask(const struct mesh *mesh, int rank, struct clock_skew *out) {
    *out = (struct clock_skew){.uncertainty = INFINITY, .rank = rank};
    for (int i = 0; i < ROUNDS; i++) {
        double sent = unix_seconds(), theirs = 0;
        TRY(mesh_send(mesh, rank, &sent, sizeof sent));
        TRY(mesh_receive(mesh, rank, &theirs, sizeof theirs));
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
