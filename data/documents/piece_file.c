#include "data/documents/piece_file.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "kernels/base/marks.h"
#include "kernels/base/status.h"

static const char mark[8] = "gdnpiece";

int piece_writer_open(const char *path, struct piece_writer *out) {
    *out = (struct piece_writer){.output.descriptor = -1, .sum = XXH3_createState()};
    if (!out->sum) return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    memcpy(out->end.mark, mark, sizeof mark);
    XXH3_64bits_reset(out->sum);
    return output_open(path, &out->output);
}

static int put(struct piece_writer *writer, const void *bytes, size_t size) {
    XXH3_64bits_update(writer->sum, bytes, size);
    return output_write(&writer->output, bytes, size);
}

int piece_writer_add(struct piece_writer *writer, const struct ids *ids, long bytes) {
    TRY(put(writer, ids->id, (size_t)ids->count * sizeof *ids->id));
    writer->end.tokens += ids->count;
    writer->end.bytes += bytes;
    writer->end.documents++;
    return text_add(&writer->ends, (const char *)&writer->end.tokens, sizeof writer->end.tokens);
}

int piece_writer_publish(struct piece_writer *writer) {
    if (writer->end.tokens % 2)
        TRY(put(writer, &(int32_t){0}, sizeof(int32_t))); /* what follows is aligned */
    TRY(put(writer, writer->ends.bytes, writer->ends.length));
    XXH3_64bits_update(writer->sum, &writer->end, offsetof(struct piece_end, sum));
    writer->end.sum = XXH3_64bits_digest(writer->sum);
    TRY(output_write(&writer->output, &writer->end, sizeof writer->end));
    return output_rename(&writer->output);
}

void piece_writer_close(struct piece_writer *writer) {
    output_close(&writer->output);
    text_free(&writer->ends);
    XXH3_freeState(writer->sum);
    writer->sum = NULL;
}

static size_t ends_at(const struct piece_end *end) {
    return (size_t)(end->tokens + end->tokens % 2) * sizeof(int32_t);
}

int piece_file_open(const char *path, struct mapping *map, struct piece_end *end, const int64_t **ends) {
    TRY(mapping_open(path, map));
    size_t rest = map->size - sizeof *end;
    if (map->size >= sizeof *end) memcpy(end, map->bytes + rest, sizeof *end);
    bool fits = map->size >= sizeof *end && !memcmp(end->mark, mark, sizeof mark) && end->tokens >= 0 &&
                end->documents >= 0 && (size_t)end->tokens <= rest / sizeof(int32_t) &&
                (size_t)end->documents <= rest / sizeof(int64_t) &&
                ends_at(end) + (size_t)end->documents * sizeof(int64_t) == rest;
    if (fits) {
        *ends = (const int64_t *)(const void *)(map->bytes + ends_at(end));
        return GDN_OK;
    }
    mapping_close(map);
    return gdn_fail(GDN_INPUT, "%s is damaged; remove it", path);
}

bool piece_file_whole(const char *path) {
    struct mapping map;
    struct piece_end end;
    const int64_t *ends;
    if (access(path, F_OK)) return false;
    if (piece_file_open(path, &map, &end, &ends)) {
        gdn_failure_clear(); /* it is written again */
        return false;
    }
    bool whole = XXH3_64bits(map.bytes, map.size - sizeof end.sum) == end.sum;
    mapping_close(&map);
    return whole;
}

static int open_tokens(struct token_file *file) {
    struct piece_end end;
    const int64_t *ends;
    TRY(piece_file_open(file->path, &file->map, &end, &ends));
    file->raw = file->map.bytes;
    file->element = ELEMENT_INT32;
    file->bytes = (long)file->map.size;
    file->count = end.tokens;
    file->masked = true;
    return GDN_OK;
}

static int read_tokens(struct token_file *file, long first, long count, int32_t *out) {
    TRY(format_read_raw(file, first, count, out));
    for (long i = 0; i < count; i++) out[i] &= MARK_TOKEN;
    return GDN_OK;
}

static int read_counted(struct token_file *file, long first, long count, bool *out) {
    const int32_t *id = (const int32_t *)(const void *)file->raw + first;
    for (long i = 0; i < count; i++) out[i] = !(id[i] & MARK_UNCOUNTED);
    return GDN_OK;
}

const struct token_format piece_format = {.name = "piece",
                                          .unmarked = true,
                                          .open = open_tokens,
                                          .read = read_tokens,
                                          .counted = read_counted,
                                          .close = format_close_map};
