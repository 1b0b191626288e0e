/* What `gdn checkpoint` finds out. */
#include "dist/checkpoint/node.h"
#include "dist/checkpoint/folder.h"
#include "data/hdf5/h5.h"
#include "dist/checkpoint/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of a checkpoint.h5 and what lies beside it. */
static int64_t bytes_of(const char *path) {
    char folder[4096];
    struct stat about;
    int64_t bytes = 0;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    DIR *stream = opendir(folder);
    if (!stream) return 0;
    for (struct dirent *entry; (entry = readdir(stream));)
        if (!fstatat(dirfd(stream), entry->d_name, &about, 0) && S_ISREG(about.st_mode))
            bytes += about.st_size;
    closedir(stream);
    return bytes;
}

/* Finds out whether the entry's checkpoint is whole, and tells the visitor. */
static int visit_one(struct checkpoint_entry *entry, checkpoint_visitor *visit, void *context) {
    struct mesh alone = mesh_alone();
    struct checkpoint checkpoint;
    int status = checkpoint_open(&alone, entry->path, &checkpoint);
    if (status && status != GDN_INPUT) return status;
    entry->bytes = bytes_of(entry->path);
    if (!status) {
        entry->info = &checkpoint.info;
        status = visit(context, entry);
        checkpoint_close(&checkpoint);
        return status;
    }
    char *damage = strdup(gdn_failure());
    if (!damage) return gdn_fail(GDN_INTERNAL, "out of memory for a message");
    gdn_failure_clear();
    entry->damage = damage;
    status = visit(context, entry);
    free(damage);
    return status;
}

static int visit_steps(const char *directory, int folder, const int64_t *steps, int count,
                       checkpoint_visitor *visit, void *context) {
    int64_t latest = folder_pointer(folder, "latest", NULL), best = folder_pointer(folder, "best", NULL);
    for (int i = 0; i < count; i++) {
        struct checkpoint_entry entry = {
            .step = steps[i], .latest = steps[i] == latest, .best = steps[i] == best};
        char name[FOLDER_NAME], *path;
        folder_step_name(steps[i], name);
        if (asprintf(&path, "%s/checkpoints/%s/%s", directory, name, CHECKPOINT_FILE) < 0)
            return gdn_fail(GDN_INTERNAL, "out of memory for a path");
        entry.path = path;
        int status = visit_one(&entry, visit, context);
        free(path);
        TRY(status);
    }
    return 0;
}

int checkpoint_each(const char *directory, checkpoint_visitor *visit, void *context) {
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
        status = visit_steps(directory, folder, steps, count, visit, context);
    if (folder >= 0) close(folder);
    free(steps);
    free(path);
    return status;
}

int checkpoint_verify(const char *path, FILE *out) {
    struct mesh alone = mesh_alone();
    struct file_group group = file_group_all(&alone);
    struct file_size size;
    TRY(file_verify(&group, path));
    TRY(file_verify_datasets(&group, path, &size));
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
static double max_difference(const double *x, const double *y, size_t n, double so_far) {
    for (size_t i = 0; i < n; i++) {
        if (x[i] == y[i] || (isnan(x[i]) && isnan(y[i]))) continue;
        double difference = fabs(x[i] - y[i]);
        if (!(difference <= so_far)) so_far = difference;
        if (isnan(so_far)) break;
    }
    return so_far;
}

/* The other file's dataset, and what has been found so far. */
struct pair {
    const struct h5_dataset *b;
    double difference;
    const double *x; /* a block of a, */
    long first;      /* from this line on */
};

static int to_doubles(const struct h5_dataset *d, const long size[2], void *buffer) {
    if (H5Tconvert(d->type, H5T_NATIVE_DOUBLE, (size_t)(size[0] * size[1]), buffer, NULL, H5P_DEFAULT) >= 0)
        return 0;
    return h5_fail(GDN_INPUT, d->path, "dataset %s cannot be converted", d->name);
}

static int compare_block(void *context, const struct h5_dataset *b, const long at[2], const long size[2],
                         void *buffer) {
    struct pair *pair = context;
    if (isnan(pair->difference)) return 0; /* greater than all */
    TRY(to_doubles(b, size, buffer));
    const double *x = pair->x + (at[0] - pair->first) * size[1];
    pair->difference = max_difference(x, buffer, (size_t)(size[0] * size[1]), pair->difference);
    return 0;
}

/* A block of a, to be compared with the same of b, which may come in smaller ones. */
static int compare_rectangle(void *context, const struct h5_dataset *a, const long at[2], const long size[2],
                             void *buffer) {
    struct pair *pair = context;
    TRY(to_doubles(a, size, buffer));
    pair->x = buffer, pair->first = at[0];
    return h5_dataset_each(pair->b, at, size, compare_block, pair);
}

static int compare_datasets(struct comparison *c, const struct h5_dataset *a, const struct h5_dataset *b) {
    if (a->ndim != b->ndim || a->shape[0] != b->shape[0] || a->shape[1] != b->shape[1]) {
        c->same = false;
        fprintf(c->out, "/%s: the shapes differ\n", a->name);
        return 0;
    }
    struct pair pair = {.b = b};
    const long at[2] = {0, 0}, size[2] = {(long)a->shape[0], (long)a->shape[1]};
    TRY(h5_dataset_each(a, at, size, compare_rectangle, &pair));
    if (pair.difference != 0) {
        c->same = false;
        fprintf(c->out, "/%s: greatest difference %.9g\n", a->name, pair.difference);
    }
    return 0;
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

static int open_intact(const char *path, hid_t *file) {
    struct mesh alone = mesh_alone();
    struct file_group group = file_group_all(&alone);
    bool has_digest;
    TRY(digest_verify(&group, path, &has_digest, NULL));
    if (has_digest) TRY(node_verify(&group, path));
    return h5_open(path, file);
}

int checkpoint_diff(const char *a, const char *b, bool *same, FILE *out) {
    struct comparison c = {.path_a = a, .path_b = b, .same = true, .out = out};
    TRY(open_intact(a, &c.a));
    int status = open_intact(b, &c.b);
    if (!status) {
        status = h5_each_name(c.a, a, compare_name, &c);
        if (!status) status = h5_each_name(c.b, b, only_in_b, &c);
        H5Fclose(c.b);
    }
    H5Fclose(c.a);
    *same = c.same;
    return status;
}
