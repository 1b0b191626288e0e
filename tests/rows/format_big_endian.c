/* A token format: a mark, the numbers of tokens and of documents as 64 bits, then tokens of 16 bits; all with
 * the high byte first, as none of gdn's own formats has them. */
#include "rows.h"

#include "data/format.h"
#include "data/output_tokens.h"
#include "data/stream.h"
#include "kernels/base/status.h"

#include <stdio.h>
#include <string.h>

enum { MARK_BYTES = 8, HEADER_BYTES = 24, TOKEN_BYTES = 2, BLOCK = 1000 };
static const uint8_t mark[MARK_BYTES] = {0, 'b', 'i', 'g', 'e', 'n', 'd', 1};

static void put(uint8_t *at, int bytes, uint64_t value) {
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static uint64_t get(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | at[i];
    return value;
}

static const char *recognise(const char *path, const struct head *head) {
    (void)path;
    return head_has(head, 0, mark, sizeof mark) ? "a file of big-endian tokens" : NULL;
}

static int open_file(struct token_file *file) {
    TRY(mapping_open(file->path, &file->map));
    const uint8_t *bytes = file->map.bytes;
    file->bytes = (long)file->map.size;
    if (file->bytes < HEADER_BYTES || memcmp(bytes, mark, sizeof mark))
        return gdn_fail(GDN_INPUT, "%s is not a file of big-endian tokens", file->path);
    uint64_t count = get(bytes + 8, 8), documents = get(bytes + 16, 8);
    long room = (file->bytes - HEADER_BYTES) / TOKEN_BYTES;
    if (count != (uint64_t)room || file->bytes != HEADER_BYTES + room * TOKEN_BYTES || room == 0)
        return gdn_fail(GDN_INPUT, "%s is damaged: its header says %llu tokens, but it has %ld bytes",
                        file->path, (unsigned long long)count, file->bytes);
    if (documents < 1 || documents > count)
        return gdn_fail(GDN_INPUT, "%s is damaged: its header says %llu documents of %llu tokens", file->path,
                        (unsigned long long)documents, (unsigned long long)count);
    file->count = room;
    file->documents = (long)documents;
    file->raw = bytes + HEADER_BYTES;
    snprintf(file->stored_as, sizeof file->stored_as, "uint16, high byte first");
    return GDN_OK;
}

static int read_file(struct token_file *file, long first, long count, int32_t *out) {
    for (long i = 0; i < count; i++)
        out[i] = (int32_t)get(file->raw + (first + i) * TOKEN_BYTES, TOKEN_BYTES);
    return GDN_OK;
}

static int fill(struct output *output, const struct written_tokens *written) {
    uint8_t header[HEADER_BYTES], stored[BLOCK * TOKEN_BYTES];
    int32_t values[BLOCK];
    long total = tokens_count(written->tokens);
    memcpy(header, mark, sizeof mark);
    put(header + 8, 8, (uint64_t)total);
    put(header + 16, 8, (uint64_t)written->documents);
    TRY(output_write(output, header, sizeof header));
    for (long first = 0, n; first < total; first += n) {
        n = total - first < BLOCK ? total - first : BLOCK;
        TRY(tokens_read(written->tokens, first, n, values));
        for (long i = 0; i < n; i++) put(stored + i * TOKEN_BYTES, TOKEN_BYTES, (uint64_t)values[i]);
        TRY(output_write(output, stored, (size_t)(n * TOKEN_BYTES)));
    }
    return GDN_OK;
}

static int write_file(const char *path, const struct written_tokens *written) {
    return output_whole(path, fill, written);
}

static const struct token_format big_endian = {
    .name = "bigendian",
    .about = "big-endian uint16",
    .recognise = recognise,
    .open = open_file,
    .read = read_file,
    .close = format_close_map,
    .write = write_file,
};

void rows_of_formats(void) {
    if (!token_format_named(big_endian.name)) token_format_register(&big_endian);
}
