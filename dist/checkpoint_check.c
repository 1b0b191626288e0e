/* What a checkpoint.h5 says about itself, and whether it is whole. */
#include "dist/checkpoint_file.h"
#include "dist/h5.h"
#include "dist/seal.h"

#include <stdlib.h>
#include <string.h>

int file_info(hid_t file, const char *path, struct checkpoint_info *out) {
    *out = (struct checkpoint_info){0};
    int64_t version;
    if (!h5_has_attribute(file, "format_version"))
        return gdn_fail(GDN_INPUT, "%s is not a gdn checkpoint: it has no attribute format_version", path);
    TRY(h5_read_int(file, path, "format_version", &version));
    if (version != FORMAT_VERSION)
        return gdn_fail(GDN_INPUT, "%s has the format version %lld, which this program does not know; it reads version %d",
                        path, (long long)version, FORMAT_VERSION);
    TRY(h5_read_int(file, path, "step", &out->step));
    TRY(h5_read_int(file, path, "samples", &out->samples));
    TRY(h5_read_double(file, path, "best_loss", &out->best_loss));
    TRY(h5_read_double(file, path, "loss", &out->loss));
    return h5_read_text(file, path, "config", &out->config);
}

/* Adds a dataset's name and checksum. */
static int add_dataset(void *hash, hid_t file, const char *path, const char *name) {
    struct h5_dataset dataset;
    TRY(h5_dataset_open(file, path, name, &dataset));
    bool has_sum = dataset.has_sum;
    h5_dataset_close(&dataset);
    if (!has_sum) return gdn_fail(GDN_INPUT, "%s is damaged: dataset %s has no checksum", path, name);
    XXH3_64bits_update(hash, name, strlen(name) + 1);
    XXH3_64bits_update(hash, &dataset.sum, sizeof dataset.sum);
    return 0;
}

int file_manifest(hid_t file, const char *path, const struct checkpoint_info *info, uint64_t *sum) {
    XXH3_state_t *hash = XXH3_createState();
    if (!hash) return gdn_fail(GDN_INTERNAL, "out of memory for the checksum of %s", path);
    const struct {
        int64_t version, step, samples;
        double best_loss, loss;
    } numbers = {FORMAT_VERSION, info->step, info->samples, info->best_loss, info->loss};
    XXH3_64bits_reset(hash);
    XXH3_64bits_update(hash, &numbers, sizeof numbers);
    XXH3_64bits_update(hash, info->config, strlen(info->config) + 1);
    int status = h5_each_name(file, path, add_dataset, hash);
    *sum = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    return status;
}

int file_check_manifest(hid_t file, const char *path, const struct checkpoint_info *info) {
    uint64_t stored, right;
    TRY(h5_read_sum(file, path, "xxh3", &stored));
    TRY(file_manifest(file, path, info, &right));
    if (stored != right)
        return gdn_fail(GDN_INPUT, "%s is damaged: its attributes and list of datasets do not match their checksum", path);
    return 0;
}

static int check_dataset(void *size, hid_t file, const char *path, const char *name) {
    struct h5_dataset dataset;
    TRY(h5_dataset_open(file, path, name, &dataset));
    int status = h5_dataset_each(&dataset, NULL, NULL);
    struct file_size *count = size;
    count->datasets++;
    count->bytes += (int64_t)(dataset.shape[0] * dataset.shape[1] * dataset.element);
    h5_dataset_close(&dataset);
    return status;
}

/* Attributes, list of datasets, and every dataset. */
static int check_content(const char *path, struct file_size *size) {
    hid_t file;
    struct checkpoint_info info;
    TRY(h5_open(path, &file));
    int status = file_info(file, path, &info);
    if (!status) {
        status = file_check_manifest(file, path, &info);
        free(info.config);
    }
    if (!status) status = h5_each_name(file, path, check_dataset, size);
    H5Fclose(file);
    return status;
}

int file_check(const char *path) {
    bool sealed;
    struct file_size size = {0};
    TRY(seal_check(path, &sealed));
    return sealed ? 0 : check_content(path, &size);
}

int file_check_all(const char *path, struct file_size *out) {
    bool sealed;
    *out = (struct file_size){0};
    TRY(seal_check(path, &sealed));
    return check_content(path, out);
}

int checkpoint_info(const char *path, struct checkpoint_info *out) {
    hid_t file;
    *out = (struct checkpoint_info){0};
    TRY(h5_open(path, &file));
    int status = file_info(file, path, out);
    if (!status) status = file_check_manifest(file, path, out);
    if (status) free(out->config), out->config = NULL;
    H5Fclose(file);
    return status;
}
