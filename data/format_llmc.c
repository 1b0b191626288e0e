/* llm.c's .bin shards: a header of 256 int32 (magic, version, number of tokens, zeros), then the tokens.
 * Magic and version tell their width: uint16 for GPT-2's vocabulary, uint32 for Llama 3's. The count is an
 * int32, so a shard has fewer than 2^31 tokens, but up to 8 GiB. */
#include <stdio.h>
#include <string.h>

#include "data/format.h"
#include "data/output_tokens.h"
#include "kernels/base/marks.h"
#include "kernels/base/status.h"

enum {
    LLMC_HEADER_INTS = 256,
    LLMC_HEADER_BYTES = 4 * LLMC_HEADER_INTS,
    LLMC_MAGIC_UINT16 = 20240520,
    LLMC_VERSION_UINT16 = 1,
    LLMC_MAGIC_UINT32 = 20240801,
    LLMC_VERSION_UINT32 = 7,
};

/* `opening`: the token that llm.c's programs begin each document with, of GPT-2's and of Llama 3's
 * vocabulary. */
static const struct {
    int32_t magic, version;
    enum element element;
    int32_t opening;
} kinds[] = {
    {LLMC_MAGIC_UINT16, LLMC_VERSION_UINT16, ELEMENT_UINT16, 50256},
    {LLMC_MAGIC_UINT32, LLMC_VERSION_UINT32, ELEMENT_UINT32, 128000},
};

static const char *llmc_recognise(const char *path, const struct head *head) {
    (void)path;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (head_has(head, 0, &kinds[i].magic, sizeof kinds[i].magic)) return "a file of llm.c tokens";
    return NULL;
}

static int find_element(const char *path, const int32_t header[3], enum element *out) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (header[0] != kinds[i].magic) continue;
        if (header[1] != kinds[i].version)
            return gdn_fail(GDN_INPUT,
                            "%s: llm.c tokens with magic %d are of version %d, but this file says %d", path,
                            kinds[i].magic, kinds[i].version, header[1]);
        *out = kinds[i].element;
        return GDN_OK;
    }
    return gdn_fail(
        GDN_INPUT,
        "%s is not a file of llm.c tokens: it begins with %d, where %d (uint16) or %d (uint32) is expected",
        path, header[0], LLMC_MAGIC_UINT16, LLMC_MAGIC_UINT32);
}

static int llmc_open(struct token_file *file) {
    TRY(mapping_open(file->path, &file->map));
    file->bytes = (long)file->map.size;
    int32_t header[3];
    if (file->bytes < LLMC_HEADER_BYTES)
        return gdn_fail(GDN_INPUT,
                        "%s is not a file of llm.c tokens: it has %ld bytes, and the header alone has %d",
                        file->path, file->bytes, LLMC_HEADER_BYTES);
    memcpy(header, file->map.bytes, sizeof header);
    TRY(find_element(file->path, header, &file->element));

    file->count = header[2];
    if (file->count <= 0)
        return gdn_fail(GDN_INPUT, "%s: the header says %ld tokens, where at least one is expected",
                        file->path, file->count);
    long expected = LLMC_HEADER_BYTES + file->count * (long)element_size(file->element);
    if (file->bytes != expected)
        return gdn_fail(GDN_INPUT,
                        "%s is %s: its header says %ld tokens of %s, %ld bytes in all, but it has %ld bytes",
                        file->path, file->bytes < expected ? "truncated" : "too long", file->count,
                        element_name(file->element), expected, file->bytes);
    file->raw = file->map.bytes + LLMC_HEADER_BYTES;
    file->documents = NOT_RECORDED;
    snprintf(file->stored_as, sizeof file->stored_as, "%s", element_name(file->element));
    return GDN_OK;
}

static int llmc_fill(struct output *output, const struct written_tokens *written) {
    long count = tokens_count(written->tokens);
    int kind = 0;
    while (kinds[kind].element != written->element) kind++;
    if (count > INT32_MAX)
        return gdn_fail(
            GDN_INPUT, "%s: a file of llm.c tokens holds at most %d, and these are %ld; write several shards",
            output->path, INT32_MAX, count);
    int32_t header[LLMC_HEADER_INTS] = {kinds[kind].magic, kinds[kind].version, (int32_t)count};
    TRY(output_write(output, header, sizeof header));
    return output_tokens(output, written);
}

static int llmc_write(const char *path, const struct written_tokens *written) {
    return output_whole(path, llmc_fill, written);
}

static int32_t opening_of(const struct token_file *file) {
    int kind = 0;
    while (kinds[kind].element != file->element) kind++;
    return kinds[kind].opening;
}

/* Of a file without any the whole would be one document, which it hardly is. */
static int llmc_find_documents(struct token_file *file) {
    enum { BLOCK = 4096 };
    int32_t block[BLOCK];
    for (long first = 0; first < file->count; first += BLOCK) {
        long n = file->count - first < BLOCK ? file->count - first : BLOCK;
        TRY(format_read_raw(file, first, n, block));
        for (long i = 0; i < n; i++)
            if (block[i] == opening_of(file)) return GDN_OK;
    }
    return gdn_fail(
        GDN_INPUT,
        "%s does not tell where documents start, which data.documents: mask and data.packing: best_fit need: it has no token %d, "
        "which opens each in a file of llm.c tokens of %s",
        file->path, opening_of(file), element_name(file->element));
}

static int llmc_mark_documents(struct token_file *file, long first, long count, int32_t *row) {
    for (long i = 0; i < count; i++)
        if (first + i == 0 || (row[i] & MARK_TOKEN) == opening_of(file)) row[i] |= MARK_DOCUMENT;
    return GDN_OK;
}

const struct token_format llmc_format = {
    .name = "llmc",
    .about = ".bin",
    .recognise = llmc_recognise,
    .open = llmc_open,
    .read = format_read_raw,
    .close = format_close_map,
    .find_documents = llmc_find_documents,
    .mark_documents = llmc_mark_documents,
    .write = llmc_write,
};
