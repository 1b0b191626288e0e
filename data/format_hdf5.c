/* HDF5: the one-dimensional integer dataset `tokens`, and where they are there beside it `loss_mask`, uint8,
 * as long: 1 where a token counts as a target, else 0; and `documents`, n + 1 numbers, where each of n
 * documents starts, and how many tokens there are (borders.h). */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/borders.h"
#include "data/format.h"
#include "data/hdf5/h5.h"
#include "data/hdf5/lock.h"
#include "data/hdf5/source.h"
#include "data/hdf5_line.h"
#include "data/output_tokens.h"
#include "kernels/base/status.h"

enum { BLOCK = 4096 }; /* elements of a mask read at a time */

struct hdf5 {
    hid_t file; /* H5I_INVALID_HID where not open: where all lines are mapped */
    struct hdf5_line tokens, mask;
    struct borders documents; /* none: not recorded */
};

static int take_borders(void *context, const struct h5_dataset *dataset, const long at[2], const long size[2],
                        void *buffer) {
    struct token_file *file = context;
    struct hdf5 *h = file->state;
    HDF5_HOLD();
    (void)at;
    if (H5Tconvert(dataset->type, H5T_NATIVE_INT64, (size_t)size[0], buffer, NULL, H5P_DEFAULT) < 0)
        return gdn_fail(GDN_INPUT, "%s: dataset documents cannot be read", file->path);
    return borders_add(&h->documents, file->path, file->count, buffer, size[0]);
}

static int read_line(struct token_file *file, const struct h5_dataset *dataset) {
    const struct hdf5 *h = file->state;
    if (!dataset->integer || dataset->ndim != 1)
        return gdn_fail(GDN_INPUT, "%s: the dataset `documents` is not a line of integers", file->path);
    TRY(h5_dataset_each(dataset, (long[]){0, 0}, (long[]){(long)dataset->shape[0], 1}, take_borders, file));
    TRY(borders_finish(&h->documents, file->path, file->count));
    file->documents = h->documents.count - 1;
    return GDN_OK;
}

static int read_documents(struct token_file *file, const struct hdf5 *h) {
    struct h5_dataset dataset;
    file->documents = NOT_RECORDED;
    if (H5Lexists(h->file, "documents", H5P_DEFAULT) <= 0) return GDN_OK;
    TRY(h5_dataset_open(h->file, file->path, "documents", &dataset));
    int status = read_line(file, &dataset);
    h5_dataset_close(&dataset);
    return status;
}

static const char *hdf5_recognise(const char *path, const struct head *head) {
    (void)path;
    return head_has(head, 0, "\x89HDF\r\n\x1a\n", 8) ? "an HDF5 file" : NULL;
}

static int open_mask(struct token_file *file, struct hdf5 *h) {
    char type[32];
    if (!hdf5_line_is_there(h->file, "loss_mask")) return GDN_OK;
    file->masked = true;
    TRY(hdf5_line_open(h->file, file->path, "loss_mask", &h->mask));
    hdf5_line_type(&h->mask, type, sizeof type);
    if (strcmp(type, "uint8"))
        return gdn_fail(GDN_INPUT, "%s: the dataset `loss_mask` holds %s, and uint8 is expected", file->path,
                        type);
    if (h->mask.count == file->count) return GDN_OK;
    return gdn_fail(
        GDN_INPUT,
        "%s: the dataset `loss_mask` has %ld elements, and as many as there are tokens, %ld, are expected",
        file->path, h->mask.count, file->count);
}

static void close_file(struct hdf5 *h) {
    if (h->file >= 0) H5Fclose(h->file);
    h->file = H5I_INVALID_HID;
}

static int hdf5_open(struct token_file *file) {
    HDF5_HOLD();
    struct hdf5 *h = malloc(sizeof *h);
    if (!h) return gdn_fail(GDN_INTERNAL, "%s: no memory", file->path);
    const struct hdf5_line none = {
        .dataset = H5I_INVALID_HID, .type = H5I_INVALID_HID, .space = H5I_INVALID_HID};
    *h = (struct hdf5){.file = H5I_INVALID_HID, .tokens = none, .mask = none};
    file->state = h;

    struct mapping probe = {
        0}; /* first, since its messages about missing and empty files are the better ones */
    TRY(mapping_open(file->path, &probe));
    file->bytes = (long)probe.size;
    mapping_close(&probe);
    H5Eset_auto(H5E_DEFAULT, NULL, NULL); /* the library's own words would come between ours */
    if (H5Fis_hdf5(file->path) <= 0) return gdn_fail(GDN_INPUT, "%s is not an HDF5 file", file->path);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (hdf5_source_select(access) >= 0) h->file = H5Fopen(file->path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    if (h->file < 0)
        return gdn_fail(GDN_INPUT, "%s: HDF5 cannot open it; it is truncated, damaged or being written",
                        file->path);

    TRY(hdf5_line_open(h->file, file->path, "tokens", &h->tokens));
    TRY(h5_has_attribute(h->file, file->path, "tokenizer", &file->has_tokenizer));
    if (file->has_tokenizer) TRY(h5_read_sum(h->file, file->path, "tokenizer", &file->tokenizer));
    file->count = h->tokens.count;
    TRY(read_documents(file, h));
    char type[32];
    hdf5_line_type(&h->tokens, type, sizeof type);
    snprintf(file->stored_as, sizeof file->stored_as, "%s%s", type,
             h->tokens.raw ? "" : ", read through the HDF5 library");
    TRY(open_mask(file, h));
    if (h->tokens.raw && (h->mask.raw || !file->masked)) close_file(h);
    return GDN_OK;
}

static int hdf5_read(struct token_file *file, long first, long count, int32_t *out) {
    const struct hdf5 *h = file->state;
    return hdf5_line_read(&h->tokens, first, count, out);
}

static int hdf5_counted(struct token_file *file, long first, long count, bool *out) {
    const struct hdf5 *h = file->state;
    int32_t values[BLOCK];
    for (long done = 0, n; done < count; done += n) {
        n = count - done < BLOCK ? count - done : BLOCK;
        TRY(hdf5_line_read(&h->mask, first + done, n, values));
        for (long i = 0; i < n; i++) {
            if (values[i] < 0 || values[i] > 1)
                return gdn_fail(GDN_INPUT, "%s: element %ld of loss_mask is %d, and 0 or 1 is expected",
                                file->path, first + done + i, values[i]);
            out[done + i] = values[i] == 1;
        }
    }
    return GDN_OK;
}

static void hdf5_close(struct token_file *file) {
    struct hdf5 *h = file->state;
    if (!h) return;
    hdf5_line_close(&h->tokens);
    hdf5_line_close(&h->mask);
    HDF5_HOLD();
    close_file(h);
    borders_free(&h->documents);
    free(h);
}

static int hdf5_find_documents(struct token_file *file) {
    if (file->documents != NOT_RECORDED) return GDN_OK;
    return gdn_fail(GDN_INPUT,
                    "%s does not tell where documents start, which data.documents: mask and data.packing: "
                    "best_fit need: it has no dataset "
                    "`documents` beside `tokens`, as gdn data write makes it",
                    file->path);
}

static int hdf5_mark_documents(struct token_file *file, long first, long count, int32_t *row) {
    const struct hdf5 *h = file->state;
    borders_mark(&h->documents, first, count, row);
    return GDN_OK;
}

/* A dataset with room for `count` numbers; where they belong in the file goes to *offset. */
static bool create_dataset(hid_t file, const char *name, hid_t type, hsize_t count, haddr_t *offset) {
    hid_t space = H5Screate_simple(1, &count, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
    H5Pset_obj_track_times(how, false); /* the same tokens are the same file, whenever they are written */
    hid_t dataset = H5Dcreate(file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    *offset = H5Dget_offset(dataset);
    H5Pclose(how);
    H5Sclose(space);
    /* the library writes its buffers when it closes, so closing can fail as well */
    return H5Dclose(dataset) >= 0 && *offset != HADDR_UNDEF;
}

/* Where tokens, documents and the loss mask belong in the file. */
struct places {
    haddr_t tokens, documents, mask;
};

static int create_file(struct output *output, const struct written_tokens *written, long borders,
                       struct places *at) {
    const hsize_t count = (hsize_t)tokens_count(written->tokens);
    hid_t type = written->element == ELEMENT_UINT16 ? H5T_STD_U16LE : H5T_STD_U32LE;
    H5Eset_auto(H5E_DEFAULT, NULL, NULL); /* the library's own words would come between ours */
    hid_t file = H5Fcreate(output->partial, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    bool made = create_dataset(file, "tokens", type, count, &at->tokens) &&
                create_dataset(file, "documents", H5T_STD_I64LE, (hsize_t)borders, &at->documents) &&
                (!written->masked || create_dataset(file, "loss_mask", H5T_STD_U8LE, count, &at->mask)) &&
                !h5_write_sum(file, output->path, "tokenizer", written->tokenizer);
    if ((H5Fclose(file) < 0) || !made)
        return gdn_fail(GDN_INPUT, "%s: cannot be written as an HDF5 file", output->path);
    return GDN_OK;
}

/* The library only makes the file's frame, and the numbers are written past it. A disk that fills up while
 * HDF5 1.10 writes leaves a file that it cannot close, and then it crashes at the program's end. */
static int fill_with(struct output *output, const struct written_tokens *written,
                     const struct borders *borders) {
    struct places at;
    const long count = tokens_count(written->tokens), bytes = borders->count * (long)sizeof *borders->at,
               each = (long)element_size(written->element) + written->masked;
    TRY(output_try(output, count * each + bytes));
    TRY(create_file(output, written, borders->count, &at));
    TRY(output_seek(output, (long)at.documents));
    TRY(output_write(output, borders->at, (size_t)bytes));
    TRY(output_seek(output, (long)at.tokens));
    TRY(output_tokens(output, written));
    if (!written->masked) return GDN_OK;
    TRY(output_seek(output, (long)at.mask));
    return output_counted(output, written);
}

static int hdf5_fill(struct output *output, const struct written_tokens *written) {
    struct borders borders = {0};
    int status = output_borders(written, &borders);
    if (!status) status = fill_with(output, written, &borders);
    borders_free(&borders);
    return status;
}

static int hdf5_write(const char *path, const struct written_tokens *written) {
    return output_whole(path, hdf5_fill, written);
}

const struct token_format hdf5_format = {
    .name = "hdf5",
    .about = "dataset `tokens`",
    .recognise = hdf5_recognise,
    .open = hdf5_open,
    .read = hdf5_read,
    .counted = hdf5_counted,
    .close = hdf5_close,
    .find_documents = hdf5_find_documents,
    .mark_documents = hdf5_mark_documents,
    .write = hdf5_write,
};
