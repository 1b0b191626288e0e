/* A checkpoint from weights that come tensor by tensor. The checksums stand in the file before its elements
 * do, so the tensors are gone through twice. */
#include "dist/checkpoint/digest.h"
#include "dist/checkpoint/file.h"
#include "dist/checkpoint/weights.h"
#include "data/hdf5/sum.h"
#include "kernels/base/write_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct writer {
    const char *path, *prepared; /* the name it will have, and has until then */
    const struct table *global;
    const struct weight_source *source;
    struct file_dataset *dataset; /* [rows] */
    int64_t *offset;              /* [rows] */
    int tensor;                   /* the row that is gone through */
    int fd;
};

static int sum_lines(void *context, const struct row *row, long first, long n, real *lines) {
    struct writer *w = context;
    long width = row->shape[1];
    w->dataset[w->tensor].sum += sum_elements(lines, sizeof(real), n * width, (uint64_t)(first * width), 1);
    return 0;
}

static int write_lines(void *context, const struct row *row, long first, long n, real *lines) {
    struct writer *w = context;
    long width = row->shape[1];
    int error = write_whole_at(w->fd, lines, (size_t)(n * width) * sizeof(real),
                               w->offset[w->tensor] + first * width * (int64_t)sizeof(real));
    return error ? gdn_fail(GDN_INPUT, "%s cannot be written: %s", w->path, strerror(error)) : 0;
}

static int each_tensor(struct writer *w, weight_lines *take) {
    for (w->tensor = 0; w->tensor < w->global->rows; w->tensor++) {
        const struct row *row = &w->global->row[w->tensor];
        TRY(weight_source_each(w->source, row, 0, row->shape[0], take, w));
    }
    return 0;
}

static int make_file(struct writer *w, const struct checkpoint_info *info) {
    struct file_plan plan = {.datasets = w->global->rows,
                             .dataset = w->dataset,
                             .global = w->global,
                             .info = info,
                             .bytes = FILE_OVERHEAD + file_text_bytes(info)};
    for (int i = 0; i < w->global->rows; i++) {
        const struct row *row = &w->global->row[i];
        plan.bytes += FILE_METADATA + row->shape[0] * row->shape[1] * (int64_t)sizeof(real);
    }
    TRY(file_verify_limit(w->prepared, plan.bytes));
    return file_make(w->prepared, &plan, w->offset);
}

static int fill_file(struct writer *w) {
    w->fd = open(w->prepared, O_WRONLY | O_CLOEXEC);
    if (w->fd < 0) return gdn_fail(GDN_INPUT, "%s cannot be written: %s", w->path, strerror(errno));
    int status = each_tensor(w, write_lines);
    if (!status && fsync(w->fd))
        status = gdn_fail(GDN_INPUT, "%s cannot be written: %s", w->path, strerror(errno));
    close(w->fd);
    return status;
}

/* With its digest, and read back. */
static int finish_file(const struct writer *w) {
    struct mesh alone = mesh_alone();
    struct file_group group = file_group_all(&alone);
    char hash[DIGEST_HASH];
    struct file_size size;
    TRY(digest_write(&group, w->prepared, hash));
    TRY(file_verify_datasets(&group, w->prepared, &size));
    if (rename(w->prepared, w->path))
        return gdn_fail(GDN_INPUT, "%s cannot be written: %s", w->path, strerror(errno));
    return 0;
}

static int write_datasets(struct writer *w, const struct checkpoint_info *info) {
    for (int i = 0; i < w->global->rows; i++) {
        const struct row *row = &w->global->row[i];
        TRY(weight_source_need(w->source, row));
        w->dataset[i] = (struct file_dataset){
            .ndim = row->ndim, .shape = {row->shape[0], row->shape[1]}, .has_sum = true};
        rows_dataset_name(row, "model", w->dataset[i].name);
    }
    TRY(each_tensor(w, sum_lines));
    int status = make_file(w, info);
    if (!status) status = fill_file(w);
    if (!status) status = finish_file(w);
    unlink(w->prepared);
    return status;
}

/* ".NAME.tmp" beside `path`; NULL without memory. */
static char *prepared_name(const char *path) {
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0;
    char *name;
    return asprintf(&name, "%.*s.%s.tmp", folder, path, path + folder) < 0 ? NULL : name;
}

int weights_write(const char *path, const struct table *global, const struct checkpoint_info *info,
                  const struct weight_source *source) {
    size_t rows = (size_t)global->rows;
    struct stat about;
    if (!lstat(path, &about)) return gdn_fail(GDN_INPUT, "%s is there already", path);
    char *prepared = prepared_name(path);
    struct writer w = {.path = path,
                       .prepared = prepared,
                       .global = global,
                       .source = source,
                       .dataset = malloc(rows * sizeof *w.dataset),
                       .offset = malloc(rows * sizeof *w.offset)};
    int status = GDN_INTERNAL;
    if (!prepared || !w.dataset || !w.offset)
        gdn_fail(status, "out of memory to write %s", path);
    else {
        unlink(prepared); /* left by one that was killed */
        status = write_datasets(&w, info);
    }
    free(prepared);
    free(w.dataset);
    free(w.offset);
    return status;
}
