/* What a checkpoint.h5 says about itself, and whether it is whole. */
#include "dist/checkpoint_file.h"
#include "dist/h5.h"
#include "dist/seal.h"

#include <stdlib.h>

/* The root attributes. */
static int file_info(hid_t file, const char *path, struct checkpoint_info *out) {
    int64_t version;
    if (!h5_has_attribute(file, "format_version"))
        return gdn_fail(GDN_INPUT, "%s is not a gdn checkpoint: it has no attribute format_version", path);
    TRY(h5_read_int(file, path, "format_version", &version));
    if (version != FORMAT_VERSION)
        return gdn_fail(
            GDN_INPUT,
            "%s has the format version %lld, which this program does not know; it reads version %d", path,
            (long long)version, FORMAT_VERSION);
    TRY(h5_read_int(file, path, "step", &out->step));
    TRY(h5_read_int(file, path, "samples", &out->samples));
    TRY(h5_read_double(file, path, "best_loss", &out->best_loss));
    TRY(h5_read_double(file, path, "loss", &out->loss));
    return h5_read_text(file, path, "config", &out->config);
}

static int check_dataset(void *size, hid_t file, const char *path, const char *name) {
    struct h5_dataset dataset;
    TRY(h5_dataset_open(file, path, name, &dataset));
    int status = dataset.has_sum ? h5_dataset_each(&dataset, NULL, NULL)
                                 : gdn_fail(GDN_INPUT, "%s: dataset %s has no checksum", path, name);
    struct file_size *count = size;
    count->datasets++;
    count->bytes += (int64_t)(dataset.shape[0] * dataset.shape[1] * dataset.element);
    h5_dataset_close(&dataset);
    return status;
}

int file_check(const char *path) {
    bool sealed;
    TRY(seal_check(path, &sealed));
    if (sealed) return 0;
    return gdn_fail(
        GDN_INPUT,
        "%s is an HDF5 file, but no checkpoint as gdn writes it: the checksum of the whole file is "
        "missing; its weights can serve as checkpoint.init_from",
        path);
}

int file_open(const char *path, hid_t *file, struct checkpoint_info *info) {
    *info = (struct checkpoint_info){0};
    TRY(file_check(path));
    TRY(h5_open(path, file));
    int status = file_info(*file, path, info);
    if (status) H5Fclose(*file);
    return status;
}

int file_check_all(const char *path, struct file_size *out) {
    hid_t file;
    struct checkpoint_info info;
    *out = (struct file_size){0};
    TRY(file_open(path, &file, &info));
    free(info.config);
    int status = h5_each_name(file, path, check_dataset, out);
    H5Fclose(file);
    return status;
}

int checkpoint_info(const char *path, struct checkpoint_info *out) {
    hid_t file;
    TRY(file_open(path, &file, out));
    H5Fclose(file);
    return 0;
}
