/* tokens_write: text files to a token file of another format. The text is read as the stream that tokens_open
 * makes of it, so that writing and reading cannot disagree about separators. Every format is written as
 * uint16. */
#include <errno.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/format_llmc.h"
#include "data/format_megatron.h"
#include "data/output.h"
#include "data/stream.h"
#include "kernels/base/status.h"

enum { BLOCK = 1 << 14 }; /* tokens at a time */

/* Reads up to BLOCK tokens from `first` on as uint16; their number goes to *count. */
static int read_block(struct tokens *text, long first, uint16_t block[BLOCK], long *count) {
    int32_t values[BLOCK];
    long rest = tokens_count(text) - first;
    *count = rest < BLOCK ? rest : BLOCK;
    TRY(tokens_read(text, first, *count, values));
    for (long i = 0; i < *count; i++) block[i] = (uint16_t)values[i];
    return GDN_OK;
}

/* Appends all tokens as they are. */
static int write_tokens(struct output *output, struct tokens *text) {
    uint16_t block[BLOCK];
    for (long first = 0, n; first < tokens_count(text); first += n) {
        TRY(read_block(text, first, block, &n));
        TRY(output_write(output, block, (size_t)n * sizeof *block));
    }
    return GDN_OK;
}

static int llmc_fill(struct output *output, struct tokens *text) {
    long count = tokens_count(text);
    if (count > INT32_MAX)
        return gdn_fail(
            GDN_INPUT, "%s: a file of llm.c tokens holds at most %d, and these are %ld; write several shards",
            output->path, INT32_MAX, count);
    int32_t header[LLMC_HEADER_INTS] = {LLMC_MAGIC_UINT16, LLMC_VERSION_UINT16, (int32_t)count};
    TRY(output_write(output, header, sizeof header));
    return write_tokens(output, text);
}

/* Creates the HDF5 file with room for `count` tokens; where they belong in the file goes to *offset. */
static int create_dataset(struct output *output, hsize_t count, haddr_t *offset) {
    H5Eset_auto(H5E_DEFAULT, NULL, NULL); /* the library's own words would come between ours */
    hid_t file = H5Fcreate(output->partial, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &count, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
    hid_t dataset = H5Dcreate(file, "tokens", H5T_STD_U16LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    *offset = H5Dget_offset(dataset);
    H5Pclose(how);
    H5Sclose(space);
    /* the library writes its buffers when it closes, so closing can fail as well */
    if ((H5Dclose(dataset) < 0) | (H5Fclose(file) < 0) || *offset == HADDR_UNDEF)
        return gdn_fail(GDN_INPUT, "%s: cannot be written as an HDF5 file", output->path);
    return GDN_OK;
}

/* The library only makes the file's frame, and the tokens are written past it. A disk that fills up while
 * HDF5 1.10 writes leaves a file that it cannot close, and then it crashes at the program's end. */
static int hdf5_fill(struct output *output, struct tokens *text) {
    haddr_t offset;
    long count = tokens_count(text);
    TRY(output_try(output, count * (long)sizeof(uint16_t)));
    TRY(create_dataset(output, (hsize_t)count, &offset));
    TRY(output_seek(output, (long)offset));
    return write_tokens(output, text);
}

/* Every document is one sequence, closed by the separator. */
static int megatron_fill_index(struct output *index, struct tokens *text) {
    int64_t n = text->num_files, indices = n + 1, version = MEGATRON_VERSION;
    uint8_t code = MEGATRON_UINT16;
    TRY(output_write(index, MEGATRON_MAGIC, MEGATRON_MAGIC_BYTES));
    TRY(output_write(index, &version, sizeof version));
    TRY(output_write(index, &code, sizeof code));
    TRY(output_write(index, &n, sizeof n));
    TRY(output_write(index, &indices, sizeof indices));
    for (int i = 0; i < n; i++) {
        long length = text->files[i].bytes + 1;
        if (length > INT32_MAX)
            return gdn_fail(
                GDN_INPUT,
                "%s: a Megatron sequence has at most %d tokens, and this document has %ld; split it",
                text->files[i].path, INT32_MAX, length);
        int32_t stored = (int32_t)length;
        TRY(output_write(index, &stored, sizeof stored));
    }
    int64_t pointer = 0;
    for (int i = 0; i < n; i++) {
        TRY(output_write(index, &pointer, sizeof pointer));
        pointer += (text->files[i].bytes + 1) * (int64_t)sizeof(uint16_t);
    }
    for (int64_t i = 0; i < indices; i++) TRY(output_write(index, &i, sizeof i));
    return output_sync(index);
}

static int megatron_fill_both(struct output *bin, struct output *index, struct tokens *text) {
    uint16_t separator = TEXT_SEPARATOR; /* the stream has it between documents only */
    TRY(megatron_fill_index(index, text));
    TRY(write_tokens(bin, text));
    TRY(output_write(bin, &separator, sizeof separator));
    TRY(output_sync(bin));
    /* Without its index a .bin is nothing: the old index goes first and the new one comes last, so that at no
     * moment an index stands beside another's tokens. */
    if (unlink(index->path) && errno != ENOENT)
        return gdn_fail(GDN_INPUT, "%s: cannot be replaced: %s", index->path, strerror(errno));
    TRY(output_publish(bin));
    int status = output_publish(index);
    if (status) unlink(bin->path);
    return status;
}

/* A command line with the output's name among the documents, however it is spelt, is a slip that would cost
 * the document. `path`: of a file that is about to be written. */
static int refuse_own_input(const char *path, const struct tokens *text) {
    struct stat output, document;
    if (stat(path, &output)) return GDN_OK;
    for (int i = 0; i < text->num_files; i++)
        if (!stat(text->files[i].path, &document) && document.st_ino == output.st_ino &&
            document.st_dev == output.st_dev)
            return gdn_fail(GDN_INPUT, "%s is both a document and the output; choose another output", path);
    return GDN_OK;
}

static int megatron_write(const char *path, struct tokens *text) {
    char *bin_path = megatron_path(path, ".bin"), *index_path = megatron_path(path, ".idx");
    struct output bin = {.descriptor = -1}, index = {.descriptor = -1};
    int status = bin_path && index_path ? GDN_OK : gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    if (!status) status = refuse_own_input(bin_path, text);
    if (!status) status = refuse_own_input(index_path, text);
    if (!status) status = output_open(bin_path, &bin);
    if (!status) status = output_open(index_path, &index);
    if (!status) status = megatron_fill_both(&bin, &index, text);
    output_close(&index);
    output_close(&bin);
    free(index_path);
    free(bin_path);
    return status;
}

static int write_one(const char *path, int (*fill)(struct output *, struct tokens *), struct tokens *text) {
    struct output output;
    TRY(refuse_own_input(path, text));
    int status = output_open(path, &output);
    if (!status) status = fill(&output, text);
    if (!status) status = output_sync(&output);
    if (!status) status = output_publish(&output);
    output_close(&output);
    return status;
}

int tokens_write(const char *path, enum tokens_format format, const char *const *documents,
                 int num_documents) {
    if (num_documents < 1) return gdn_fail(GDN_INPUT, "%s: no documents to write were given", path);
    struct tokens *text;
    TRY(tokens_open_files(documents, num_documents, TOKENS_TEXT, &text));
    int status;
    switch (format) {
    case TOKENS_HDF5:
        status = write_one(path, hdf5_fill, text);
        break;
    case TOKENS_NANOGPT:
        status = write_one(path, write_tokens, text);
        break;
    case TOKENS_LLMC:
        status = write_one(path, llmc_fill, text);
        break;
    case TOKENS_MEGATRON:
        status = megatron_write(path, text);
        break;
    default:
        status = gdn_fail(
            GDN_INPUT, "%s: text files are tokens as they are; write hdf5, llmc, megatron or nanogpt", path);
    }
    tokens_close(text);
    return status;
}
