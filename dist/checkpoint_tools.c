/* What `gdn checkpoint` prints. */
#include "dist/checkpoint_file.h"
#include "dist/folder.h"
#include "dist/h5.h"
#include "dist/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int list_one(const char *path, const char *state, FILE *out) {
    struct checkpoint_info info = {0};
    struct stat about = {0};
    int status = checkpoint_info(path, &info);
    if (status && status != GDN_INPUT) return status;
    stat(path, &about);
    double mib = (double)about.st_size / 1048576;
    if (status) {
        fprintf(out, "%14s %14s %10.1f  damaged%s: %s\n", "-", "-", mib, state, gdn_failure());
        gdn_failure_clear();
        return 0;
    }
    fprintf(out, "%14" PRId64 " ", info.samples);
    if (isnan(info.loss))
        fprintf(out, "%14s", "-");
    else
        fprintf(out, "%14.6f", info.loss);
    fprintf(out, " %10.1f  whole%s\n", mib, state);
    free(info.config);
    return 0;
}

static int list_steps(const char *directory, const int64_t *steps, int count, int64_t latest, int64_t best,
                      FILE *out) {
    fprintf(out, "%10s %14s %14s %10s  state\n", "step", "samples", "loss", "MiB");
    for (int i = 0; i < count; i++) {
        char name[FOLDER_NAME], state[32], *path;
        folder_step_name(steps[i], name);
        snprintf(state, sizeof state, "%s%s", steps[i] == latest ? ", latest" : "",
                 steps[i] == best ? ", best" : "");
        if (asprintf(&path, "%s/checkpoints/%s/%s", directory, name, CHECKPOINT_FILE) < 0)
            return gdn_fail(GDN_INTERNAL, "out of memory for a path");
        fprintf(out, "%10" PRId64 " ", steps[i]);
        int status = list_one(path, state, out);
        free(path);
        TRY(status);
    }
    return 0;
}

int checkpoint_list(const char *directory, FILE *out) {
    char *path;
    if (asprintf(&path, "%s/checkpoints", directory) < 0)
        return gdn_fail(GDN_INTERNAL, "out of memory for a path");
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0, error = folder < 0 ? errno : 0;
    int64_t *steps = NULL;
    if (!error) error = folder_list(folder, &steps, &count);
    int status;
    if (error)
        status = gdn_fail(GDN_INPUT, "%s cannot be listed: %s; a run directory is expected", path,
                          strerror(error));
    else
        status = list_steps(directory, steps, count, folder_pointer(folder, "latest"),
                            folder_pointer(folder, "best"), out);
    if (folder >= 0) close(folder);
    free(steps);
    free(path);
    return status;
}

int checkpoint_verify(const char *path, FILE *out) {
    struct file_size size;
    TRY(file_check_all(path, &size));
    fprintf(out, "%s: whole, %d datasets, %.1f MiB\n", path, size.datasets, (double)size.bytes / 1048576);
    return 0;
}

/* Two files side by side. */
struct comparison {
    hid_t a, b;
    const char *path_a, *path_b;
    bool same;
    FILE *out;
};

/* The greatest |x − y| of n numbers; NAN where a NAN stands against anything else. */
static double greatest_difference(const double *x, const double *y, size_t n, double so_far) {
    for (size_t i = 0; i < n; i++) {
        if (x[i] == y[i] || (isnan(x[i]) && isnan(y[i]))) continue;
        double difference = fabs(x[i] - y[i]);
        if (!(difference <= so_far)) so_far = difference;
        if (isnan(so_far)) break;
    }
    return so_far;
}

static int compare_blocks(const struct h5_dataset *a, const struct h5_dataset *b, void *x, void *y,
                          double *difference) {
    *difference = 0;
    for (long first = 0; first < (long)a->shape[0] && !isnan(*difference); first += a->block_rows) {
        long n = (long)a->shape[0] - first < a->block_rows ? (long)a->shape[0] - first : a->block_rows;
        size_t count = (size_t)n * a->shape[1];
        TRY(h5_dataset_read(a, first, n, x));
        TRY(h5_dataset_read(b, first, n, y));
        if (H5Tconvert(a->type, H5T_NATIVE_DOUBLE, count, x, NULL, H5P_DEFAULT) < 0 ||
            H5Tconvert(b->type, H5T_NATIVE_DOUBLE, count, y, NULL, H5P_DEFAULT) < 0)
            return h5_fail(GDN_INPUT, a->path, "dataset %s cannot be converted", a->name);
        *difference = greatest_difference(x, y, count, *difference);
    }
    return 0;
}

static int compare_datasets(struct comparison *c, const struct h5_dataset *a, const struct h5_dataset *b) {
    if (a->ndim != b->ndim || a->shape[0] != b->shape[0] || a->shape[1] != b->shape[1]) {
        c->same = false;
        fprintf(c->out, "/%s: the shapes differ\n", a->name);
        return 0;
    }
    size_t bytes = a->block_bytes > b->block_bytes ? a->block_bytes : b->block_bytes;
    double *x = malloc(bytes), *y = malloc(bytes), difference = 0;
    int status = x && y ? compare_blocks(a, b, x, y, &difference)
                        : gdn_fail(GDN_INTERNAL, "out of memory for a comparison");
    if (!status && difference != 0) {
        c->same = false;
        fprintf(c->out, "/%s: greatest difference %.9g\n", a->name, difference);
    }
    free(x);
    free(y);
    return status;
}

static int compare_name(void *context, hid_t file, const char *path, const char *name) {
    struct comparison *c = context;
    struct h5_dataset a, b;
    bool there;
    TRY(h5_exists(c->b, c->path_b, name, &there));
    if (!there) {
        c->same = false;
        fprintf(c->out, "/%s: only in %s\n", name, path);
        return 0;
    }
    TRY(h5_dataset_open(file, path, name, &a));
    int status = h5_dataset_open(c->b, c->path_b, name, &b);
    if (!status) {
        status = compare_datasets(c, &a, &b);
        h5_dataset_close(&b);
    }
    h5_dataset_close(&a);
    return status;
}

static int only_in_b(void *context, hid_t file, const char *path, const char *name) {
    (void)file;
    struct comparison *c = context;
    bool there;
    TRY(h5_exists(c->a, c->path_a, name, &there));
    if (there) return 0;
    c->same = false;
    fprintf(c->out, "/%s: only in %s\n", name, path);
    return 0;
}

static int open_whole(const char *path, hid_t *file) {
    bool sealed;
    TRY(seal_check(path, &sealed));
    return h5_open(path, file);
}

int checkpoint_diff(const char *a, const char *b, bool *same, FILE *out) {
    struct comparison c = {.path_a = a, .path_b = b, .same = true, .out = out};
    TRY(open_whole(a, &c.a));
    int status = open_whole(b, &c.b);
    if (!status) {
        status = h5_each_name(c.a, a, compare_name, &c);
        if (!status) status = h5_each_name(c.b, b, only_in_b, &c);
        H5Fclose(c.b);
    }
    H5Fclose(c.a);
    *same = c.same;
    return status;
}
