/* Reading one file of stored differences. Everything that a record says is checked against the shapes of its
 * datasets, and these against their checksums; attributes are covered by HDF5's own. */
#include "data/hdf5/h5.h"
#include "kernels/base/status.h"
#include "train/deltas/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { FORMAT_VERSION = 1 };

static int damaged(const char *path, const char *what) {
    return gdn_fail(GDN_INPUT, "%s is damaged: %s", path, what);
}

/* ---------------------------------------------------------------------------------------------- the file */

static int check_root(hid_t file, const char *path, int64_t step, int layer) {
    int64_t version, its_step, its_layer;
    TRY(h5_read_int(file, path, "format_version", &version));
    if (version != FORMAT_VERSION)
        return gdn_fail(GDN_INPUT, "%s has format version %lld, and this program reads version %d", path,
                        (long long)version, FORMAT_VERSION);
    TRY(h5_read_int(file, path, "step", &its_step));
    TRY(h5_read_int(file, path, "layer", &its_layer));
    if (its_step == step && its_layer == layer) return 0;
    return gdn_fail(GDN_INPUT, "%s is of step %lld and layer %lld, not what its name says", path,
                    (long long)its_step, (long long)its_layer);
}

static int open_file(const char *path, int64_t step, int layer, hid_t *file) {
    TRY(h5_open(path, file));
    int status = check_root(*file, path, step, layer);
    if (status) H5Fclose(*file);
    return status;
}

/* The distance of a group's name, 0 where it is something else. */
static int distance_of(const char *name) {
    char right[32];
    int distance = 0;
    if (sscanf(name, "distance_%9d", &distance) != 1 || distance < 1) return 0;
    snprintf(right, sizeof right, "distance_%d", distance);
    return strcmp(name, right) ? 0 : distance;
}

static int by_value(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int list_distances(hid_t file, const char *path, int **distances, int *count) {
    H5G_info_t info;
    if (H5Gget_info(file, &info) < 0) return h5_fail(GDN_INPUT, path, "its groups cannot be listed");
    if (info.nlinks > INT32_MAX / sizeof **distances) return damaged(path, "it has too many groups");
    *distances = calloc(info.nlinks + 1, sizeof **distances);
    if (!*distances) return gdn_fail(GDN_INTERNAL, "out of memory for reading %s", path);
    for (hsize_t i = 0; i < info.nlinks; i++) {
        char name[64];
        if (H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT) < 0)
            return h5_fail(GDN_INPUT, path, "its groups cannot be listed");
        int distance = distance_of(name);
        if (distance) (*distances)[(*count)++] = distance;
    }
    qsort(*distances, (size_t)*count, sizeof **distances, by_value);
    return *count ? 0 : damaged(path, "it has no group distance_N");
}

int delta_file_distances(const char *path, int64_t step, int layer, int **distances, int *count) {
    hid_t file;
    *distances = NULL, *count = 0;
    TRY(open_file(path, step, layer, &file));
    int status = list_distances(file, path, distances, count);
    H5Fclose(file);
    if (status) free(*distances), *distances = NULL, *count = 0;
    return status;
}

/* ------------------------------------------------------------------------------------------ the datasets */

/* A dataset on its way to memory. */
struct filling {
    char *out;
    hid_t type; /* in memory */
    XXH3_state_t *hash;
};

static int fill(void *context, const struct h5_dataset *d, const long at[2], const long size[2],
                void *buffer) {
    struct filling *f = context;
    (void)at;
    size_t count = (size_t)(size[0] * size[1]), bytes = count * H5Tget_size(f->type);
    XXH3_64bits_update(f->hash, buffer, count * d->element);
    if (H5Tconvert(d->type, f->type, count, buffer, NULL, H5P_DEFAULT) < 0)
        return h5_fail(GDN_INPUT, d->path, "dataset %s cannot be converted", d->name);
    memcpy(f->out, buffer, bytes);
    f->out += bytes;
    return 0;
}

static int read_elements(const struct h5_dataset *d, hid_t type, void *out) {
    const long at[2] = {0, 0}, size[2] = {(long)d->shape[0], (long)d->shape[1]};
    struct filling f = {.out = out, .type = type, .hash = XXH3_createState()};
    if (!f.hash) return gdn_fail(GDN_INTERNAL, "out of memory for reading %s", d->path);
    XXH3_64bits_reset(f.hash);
    int status = h5_dataset_each(d, at, size, fill, &f);
    if (!status && XXH3_64bits_digest(f.hash) != d->sum) status = h5_dataset_damaged(d->path, d->name);
    XXH3_freeState(f.hash);
    return status;
}

/* Reads a dataset of [rows, columns], `ndim` of them, into memory that it takes. */
static int read_open(const struct h5_dataset *d, int ndim, long rows, long columns, hid_t type, void **out) {
    if (d->ndim != ndim || d->shape[0] != (hsize_t)rows || d->shape[1] != (hsize_t)columns)
        return gdn_fail(GDN_INPUT,
                        "%s is damaged: dataset %s is [%llu, %llu], and [%ld, %ld] is expected of its record",
                        d->path, d->name, (unsigned long long)d->shape[0], (unsigned long long)d->shape[1],
                        rows, columns);
    if (d->integer != (H5Tget_class(type) == H5T_INTEGER))
        return gdn_fail(GDN_INPUT, "%s is damaged: dataset %s holds numbers of another kind", d->path,
                        d->name);
    if (d->kind != SUM_XXH3)
        return gdn_fail(GDN_INPUT, "%s: dataset %s has no checksum xxh3", d->path, d->name);
    *out = calloc((size_t)rows * (size_t)columns, H5Tget_size(type));
    if (!*out) return gdn_fail(GDN_INTERNAL, "out of memory for dataset %s of %s", d->name, d->path);
    return read_elements(d, type, *out);
}

static int read_dataset(hid_t group, const char *path, const char *name, int ndim, long rows, long columns,
                        hid_t type, void **out, int *element) {
    struct h5_dataset d;
    TRY(h5_dataset_open(group, path, name, &d));
    int status = read_open(&d, ndim, rows, columns, type, out);
    if (element) *element = (int)d.element;
    h5_dataset_close(&d);
    return status;
}

/* ---------------------------------------------------------------------------------------- the attributes */

/* [batch, length, hidden] */
static int read_shape(hid_t group, const char *path, int64_t shape[3]) {
    bool there;
    TRY(h5_has_attribute(group, path, "original_shape", &there));
    if (!there) return gdn_fail(GDN_INPUT, "%s: attribute original_shape is missing", path);
    hid_t attribute = H5Aopen(group, "original_shape", H5P_DEFAULT), space = -1, type = -1;
    bool right = attribute >= 0 && (space = H5Aget_space(attribute)) >= 0 &&
                 (type = H5Aget_type(attribute)) >= 0 && H5Sget_simple_extent_npoints(space) == 3 &&
                 H5Tget_class(type) == H5T_INTEGER && H5Aread(attribute, H5T_NATIVE_INT64, shape) >= 0;
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    if (attribute >= 0) H5Aclose(attribute);
    return right ? 0 : damaged(path, "attribute original_shape is not three whole numbers");
}

static int read_finite(hid_t group, const char *path, const char *name, double *value) {
    TRY(h5_read_double(group, path, name, value));
    if (isfinite(*value)) return 0;
    return gdn_fail(GDN_INPUT, "%s is damaged: attribute %s is %g", path, name, *value);
}

/* Sizes that can be, and whose products fit. */
static bool right_sizes(const int64_t shape[3], int64_t rank) {
    const int64_t max = INT32_MAX;
    for (int i = 0; i < 3; i++)
        if (shape[i] < 1 || shape[i] > max) return false;
    int64_t T = shape[0] * shape[1];
    return T <= INT64_MAX / 16 / shape[2] && rank >= 1 && rank <= T && rank <= shape[2];
}

static int read_attributes(hid_t group, const char *path, struct delta_record *r) {
    int64_t shape[3], rank, source;
    TRY(read_shape(group, path, shape));
    TRY(h5_read_int(group, path, "rank", &rank));
    TRY(h5_read_int(group, path, "source", &source));
    if (!right_sizes(shape, rank))
        return gdn_fail(GDN_INPUT, "%s is damaged: a rank of %lld and the shape [%lld, %lld, %lld]", path,
                        (long long)rank, (long long)shape[0], (long long)shape[1], (long long)shape[2]);
    if (source != r->layer - r->distance)
        return gdn_fail(GDN_INPUT, "%s is damaged: source %lld for layer %d and distance %d", path,
                        (long long)source, r->layer, r->distance);
    r->source = (int)source;
    r->batch = shape[0], r->length = shape[1];
    r->factors.T = shape[0] * shape[1], r->factors.D = shape[2], r->factors.rank = rank;
    TRY(read_finite(group, path, "relative_error", &r->factors.error));
    TRY(read_finite(group, path, "norm", &r->factors.norm));
    TRY(read_finite(group, path, "gate_mean", &r->gate_mean));
    TRY(read_finite(group, path, "gate_deviation", &r->gate_deviation));
    TRY(read_finite(group, path, "gate_least", &r->gate_least));
    return read_finite(group, path, "gate_most", &r->gate_most);
}

/* What checksums do not tell: numbers that no difference has. */
static int check_numbers(const char *path, const struct delta_record *r) {
    for (long i = 0; i < r->factors.rank; i++)
        if (!(r->factors.sigma[i] >= 0) || !isfinite(r->factors.sigma[i]))
            return gdn_fail(GDN_INPUT, "%s is damaged: singular value %ld is %g", path, i + 1,
                            (double)r->factors.sigma[i]);
    for (int i = 0; i < DELTA_BINS; i++)
        if (r->gate_histogram[i] < 0) return damaged(path, "gate_histogram has a count below 0");
    if (r->factors.norm < 0 || r->factors.error < 0) return damaged(path, "a norm or an error is below 0");
    return 0;
}

static int read_group(hid_t group, const char *path, struct delta_record *r, int *element) {
    struct factors *f = &r->factors;
    TRY(read_attributes(group, path, r));
    void *histogram = NULL;
    int status =
        read_dataset(group, path, "gate_histogram", 1, DELTA_BINS, 1, H5T_NATIVE_INT64, &histogram, NULL);
    if (!status) memcpy(r->gate_histogram, histogram, sizeof r->gate_histogram);
    free(histogram);
    TRY(status);
    TRY(read_dataset(group, path, "U", 2, f->T, f->rank, H5_REAL_MEMORY, (void **)&f->u, element));
    TRY(read_dataset(group, path, "sigma", 1, f->rank, 1, H5_REAL_MEMORY, (void **)&f->sigma, NULL));
    TRY(read_dataset(group, path, "Vt", 2, f->rank, f->D, H5_REAL_MEMORY, (void **)&f->vt, NULL));
    return check_numbers(path, r);
}

static int read_record(const char *path, struct delta_record *r, int *element) {
    hid_t file, group;
    char name[32], *where;
    TRY(open_file(path, r->step, r->layer, &file));
    snprintf(name, sizeof name, "distance_%d", r->distance);
    group = H5Gopen2(file, name, H5P_DEFAULT);
    int status = 0;
    if (group < 0)
        status = h5_fail(GDN_INPUT, path, "group %s cannot be opened", name);
    else if (asprintf(&where, "%s %s", path, name) < 0)
        status = gdn_fail(GDN_INTERNAL, "out of memory for reading %s", path);
    else {
        status = read_group(group, where, r, element);
        free(where);
    }
    if (group >= 0) H5Gclose(group);
    H5Fclose(file);
    return status;
}

int delta_record_read_sized(const struct delta_entry *entry, struct delta_record *out, int *element) {
    *out = (struct delta_record){.step = entry->step, .layer = entry->layer, .distance = entry->distance};
    int status = read_record(entry->path, out, element);
    if (status) delta_record_free(out);
    return status;
}

int delta_record_read(const struct delta_entry *entry, struct delta_record *out) {
    return delta_record_read_sized(entry, out, NULL);
}

void delta_record_free(struct delta_record *record) {
    free(record->factors.u);
    free(record->factors.sigma);
    free(record->factors.vt);
    record->factors.u = record->factors.sigma = record->factors.vt = NULL;
}
