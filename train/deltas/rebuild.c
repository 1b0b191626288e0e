/* The file is written through h5_sink, so that a full disk is a failure that HDF5 does not see. */
#include "train/deltas/rebuild.h"

#include "data/output.h"
#include "data/hdf5/h5.h"
#include "data/hdf5/h5_sink.h"
#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "train/deltas/each.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void delta_cut(struct factors *f, long rank) {
    f->error = deltas_error_of(f, rank);
    for (long t = 1; t < f->T; t++) memmove(f->u + t * rank, f->u + t * f->rank, (size_t)rank * sizeof *f->u);
    f->rank = rank;
}

static int write_attributes(hid_t dataset, const char *path, const struct delta_record *r, long stored_rank,
                            const char *from) {
    TRY(h5_write_text(dataset, path, "from", from));
    TRY(h5_write_int(dataset, path, "step", r->step));
    TRY(h5_write_int(dataset, path, "layer", r->layer));
    TRY(h5_write_int(dataset, path, "distance", r->distance));
    TRY(h5_write_int(dataset, path, "source", r->source));
    TRY(h5_write_int(dataset, path, "rank", r->factors.rank));
    TRY(h5_write_int(dataset, path, "stored_rank", stored_rank));
    TRY(h5_write_double(dataset, path, "norm", r->factors.norm));
    return h5_write_double(dataset, path, "relative_error", r->factors.error);
}

/* What is to be written. */
struct rebuilt {
    const struct delta_record *record;
    long stored_rank;
    const char *from, *path;
    const real *x;
};

static int write_delta(hid_t file, const struct rebuilt *b) {
    const struct delta_record *r = b->record;
    const hsize_t shape[3] = {(hsize_t)r->batch, (hsize_t)r->length, (hsize_t)r->factors.D};
    hid_t space = H5Screate_simple(3, shape, NULL);
    hid_t dataset = H5Dcreate2(file, "delta", H5_REAL_STORED, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int status = 0;
    if (dataset < 0 || H5Dwrite(dataset, H5_REAL_MEMORY, H5S_ALL, H5S_ALL, H5P_DEFAULT, b->x) < 0)
        status = h5_fail(GDN_INTERNAL, b->path, "dataset delta cannot be written");
    if (!status) status = write_attributes(dataset, b->path, r, b->stored_rank, b->from);
    if (dataset >= 0) H5Dclose(dataset);
    H5Sclose(space);
    return status;
}

static int write_hdf5(int fd, const struct rebuilt *b) {
    h5_quiet();
    struct h5_sink sink = {.fd = fd};
    hid_t access = h5_access(), driver = h5_sink_select(access, &sink);
    hid_t file = driver < 0 ? -1 : H5Fcreate(b->path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    int status =
        file < 0 ? h5_fail(GDN_INTERNAL, b->path, "HDF5 cannot create a file") : write_delta(file, b);
    if (file >= 0 && H5Fclose(file) < 0 && !status)
        status = h5_fail(GDN_INTERNAL, b->path, "cannot be closed");
    if (driver >= 0) H5FDunregister(driver);
    H5Pclose(access);
    if (!status && sink.error)
        status = gdn_fail(GDN_INPUT, "%s: cannot be written: %s", b->path, strerror(sink.error));
    return status;
}

static int write_file(const struct rebuilt *b) {
    struct output output;
    int status = output_open(b->path, &output);
    if (!status) status = write_hdf5(output.descriptor, b);
    return output_finish(&output, status);
}

static void lay_out(const struct factors *f, struct arena *arena, real **scaled, real **x) {
    *scaled = arena_take(arena, (size_t)f->T * (size_t)f->rank * sizeof **scaled);
    *x = arena_take(arena, (size_t)f->T * (size_t)f->D * sizeof **x);
}

int delta_rebuild(const struct delta_record *record, long stored_rank, const char *from, const char *path) {
    const struct factors *f = &record->factors;
    const struct ops *ops = ops_find("cpu");
    struct arena arena = {.name = "the difference"};
    real *scaled, *x;
    if (!ops) return gdn_fail(GDN_INPUT, "this machine has no CPU backend");
    lay_out(f, &arena, &scaled, &x);
    TRY(arena_reserve(&arena));
    lay_out(f, &arena, &scaled, &x);
    lowrank_expand(ops, f, scaled, x);
    const struct rebuilt rebuilt = {record, stored_rank, from, path, x};
    int status = write_file(&rebuilt);
    arena_free(&arena);
    return status;
}
