/* What a checkpoint.h5 says about itself, and whether it is whole by its digest. */
#include "dist/checkpoint/node.h"
#include "data/hdf5/h5.h"
#include "data/hdf5/lock.h"
#include "dist/checkpoint/digest.h"

#include <stdlib.h>
#include <string.h>

/* A dataset of bytes as a text; *out stays NULL where there is none. */
static int read_bytes(hid_t file, const char *path, const char *name, char **out) {
    HDF5_HOLD();
    if (H5Lexists(file, name, H5P_DEFAULT) <= 0) return 0;
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t space = dataset < 0 ? -1 : H5Dget_space(dataset);
    const hssize_t length = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    if (length >= 0 && length < INT32_MAX) *out = calloc((size_t)length + 1, 1);
    const bool read = *out && H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, *out) >= 0;
    if (space >= 0) H5Sclose(space);
    if (dataset >= 0) H5Dclose(dataset);
    return read ? 0 : gdn_fail(GDN_INPUT, "%s: dataset %s cannot be read", path, name);
}

/* Steps, samples or tokens so far. More than a quarter of what 64 bits hold, to which a run would still add,
 * nobody has done. */
static int read_position(hid_t file, const char *path, const char *name, int64_t *out) {
    TRY(h5_read_int(file, path, name, out));
    if (*out >= 0 && *out <= INT64_MAX / 4) return 0;
    return gdn_fail(GDN_INPUT, "%s is damaged: attribute %s is %lld", path, name, (long long)*out);
}

/* The root attributes, and what goes with them. */
static int file_info(hid_t file, const char *path, struct checkpoint_info *out) {
    int64_t version;
    bool there;
    TRY(h5_has_attribute(file, path, "format_version", &there));
    if (!there)
        return gdn_fail(GDN_INPUT, "%s is not a gdn checkpoint: it has no attribute format_version", path);
    TRY(h5_read_int(file, path, "format_version", &version));
    if (version < 1 || version > FORMAT_VERSION)
        return gdn_fail(
            GDN_INPUT,
            "%s has the format version %lld, which this program does not know; it reads versions 1 to %d",
            path, (long long)version, FORMAT_VERSION);
    TRY(read_position(file, path, "step", &out->step));
    TRY(read_position(file, path, "samples", &out->samples));
    TRY(h5_read_double(file, path, "best_loss", &out->best_loss));
    TRY(h5_read_double(file, path, "loss", &out->loss));
    TRY(h5_has_attribute(file, path, "evaluation_due", &out->evaluation_due));
    TRY(h5_has_attribute(file, path, "loss_scale", &there));
    if (there) {
        TRY(h5_read_double(file, path, "loss_scale", &out->loss_scale));
        TRY(h5_read_int(file, path, "loss_scale_good", &out->loss_scale_good));
    }
    out->tokens = -1;
    TRY(h5_has_attribute(file, path, "tokens", &there));
    if (there) TRY(read_position(file, path, "tokens", &out->tokens));
    TRY(h5_read_text(file, path, "config", &out->config));
    TRY(h5_has_attribute(file, path, "data", &there));
    if (there) TRY(h5_read_text(file, path, "data", &out->data));
    TRY(read_bytes(file, path, FILE_TOKENIZER, &out->tokenizer));
    TRY(read_bytes(file, path, FILE_TOKENIZER_CONFIG, &out->tokenizer_config));
    TRY(read_bytes(file, path, FILE_PRUNING, &out->pruning));
    TRY(h5_has_attribute(file, path, "configured", &there));
    return there ? h5_read_text(file, path, "configured", &out->configured) : 0;
}

int checkpoint_initial_tokenizer(const char *path, char **tokenizer, char **tokenizer_config) {
    hid_t file;
    *tokenizer = *tokenizer_config = NULL;
    TRY(h5_open(path, &file));
    int status = read_bytes(file, path, FILE_TOKENIZER, tokenizer);
    if (!status) status = read_bytes(file, path, FILE_TOKENIZER_CONFIG, tokenizer_config);
    h5_close(file);
    return status;
}

void file_info_free(struct checkpoint_info *info) {
    free(info->config);
    free(info->configured);
    free(info->data);
    free(info->tokenizer);
    free(info->tokenizer_config);
    free(info->pruning);
    info->config = info->configured = info->data = info->tokenizer = info->tokenizer_config = info->pruning = NULL;
}

int file_verify(const struct file_group *group, const char *path) {
    bool has_digest;
    TRY(digest_verify(group, path, &has_digest, NULL));
    if (has_digest) return node_verify(group, path);
    return gdn_fail(
        GDN_INPUT,
        "%s is an HDF5 file, but no checkpoint as gdn writes it: the checksum of the whole file is "
        "missing; its weights can serve as checkpoint.init_from",
        path);
}

int file_open(const char *path, hid_t *file, struct checkpoint_info *info) {
    *info = (struct checkpoint_info){0};
    TRY(h5_open(path, file));
    int status = file_info(*file, path, info);
    if (status) {
        file_info_free(info);
        h5_close(*file);
    }
    return status;
}
