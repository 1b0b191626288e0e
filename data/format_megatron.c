/* Megatron's pair of .bin (tokens) and .idx (where each sequence lies in it). The stream is the sequences in
 * the index's order, wherever they lie in .bin. Nothing in either file is aligned. The index, little-endian,
 * without padding:
 *
 *     9 bytes   magic "MMIDIDX\0\0"
 *     uint64    version, 1
 *     uint8     type code of the tokens in .bin
 *     uint64    n, number of sequences
 *     uint64    d, number of document indices: documents + 1
 *     int32 [n] tokens of each sequence
 *     int64 [n] where each sequence begins in .bin, in bytes
 *     int64 [d] index of each document's first sequence, and n at the end
 *     int8  [n] modes of the sequences; only in multimodal data, and unused here
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/format.h"
#include "data/output_tokens.h"
#include "data/stream.h"
#include "kernels/base/marks.h"
#include "kernels/base/status.h"

#define MEGATRON_MAGIC "MMIDIDX\0" /* and the literal's own zero: 9 bytes */

enum {
    MEGATRON_MAGIC_BYTES = 9,
    MEGATRON_VERSION_AT = 9,
    MEGATRON_CODE_AT = 17,
    MEGATRON_SEQUENCES_AT = 18,
    MEGATRON_INDICES_AT = 26,
    MEGATRON_HEADER_BYTES = 34,
    MEGATRON_VERSION = 1,
    MEGATRON_INT32 = 4,
    MEGATRON_UINT16 = 8,
};

enum { STRIDE = 256 }; /* sequences between two entries of `starts`: a compromise of memory and search */

struct megatron {
    struct mapping index;
    char *index_path;
    const uint8_t *lengths;  /* int32 [sequences], unaligned */
    const uint8_t *pointers; /* int64 [sequences], unaligned */
    long sequences;
    long *starts; /* [sequences/STRIDE + 1]: first token, in the stream, of sequence STRIDE·i */
};

/* `path` without .bin or .idx, and with `suffix` instead; free() it. NULL without memory. */
static char *megatron_path(const char *path, const char *suffix) {
    size_t length = strlen(path);
    if (length >= 4 && (!strcmp(path + length - 4, ".bin") || !strcmp(path + length - 4, ".idx")))
        length -= 4;
    char *out = NULL;
    return asprintf(&out, "%.*s%s", (int)length, path, suffix) < 0 ? NULL : out;
}

static char *megatron_name_of(const char *given) {
    return megatron_path(given, ".idx");
}

static bool is_index(const struct head *head) {
    return head_has(head, 0, MEGATRON_MAGIC, MEGATRON_MAGIC_BYTES);
}

/* Whether the index of a pair lies beside `path`, which is its .bin or both files' name without suffix. */
static bool has_index(const char *path) {
    size_t length = strlen(path);
    bool bin = length >= 4 && !strcmp(path + length - 4, ".bin");
    if (!bin && !access(path, F_OK)) return false; /* a file of its own */
    char *index = megatron_path(path, ".idx");
    const struct head head = index ? head_read(index) : (struct head){.length = 0};
    free(index);
    return is_index(&head);
}

/* By the index alone: a .bin's tokens may look like anything. */
static const char *megatron_recognise(const char *path, const struct head *head) {
    if (is_index(head)) return "the index of a Megatron pair";
    return has_index(path) ? "the .bin of a Megatron pair" : NULL;
}

static int64_t load_int64(const uint8_t *at, long i) {
    int64_t value;
    memcpy(&value, at + 8 * i, sizeof value);
    return value;
}

static int32_t load_int32(const uint8_t *at, long i) {
    int32_t value;
    memcpy(&value, at + 4 * i, sizeof value);
    return value;
}

static int find_element(const char *path, int code, enum element *out) {
    static const enum element by_code[] = {
        [1] = ELEMENT_UINT8, [2] = ELEMENT_INT8,  [3] = ELEMENT_INT16,
        [4] = ELEMENT_INT32, [5] = ELEMENT_INT64, [MEGATRON_UINT16] = ELEMENT_UINT16,
    };
    if (code == 6 || code == 7)
        return gdn_fail(GDN_INPUT, "%s: type code %d means %s values, and tokens must be integers", path,
                        code, code == 6 ? "float64" : "float32");
    if (code < 1 || code > MEGATRON_UINT16)
        return gdn_fail(GDN_INPUT, "%s: type code %d is unknown; 1 to 5 and 8 are integers", path, code);
    *out = by_code[code];
    return GDN_OK;
}

/* Checks the index's header and its size, and finds its tables. */
static int read_header(struct token_file *file, struct megatron *m) {
    const char *path = m->index_path;
    const uint8_t *bytes = m->index.bytes;
    long size = (long)m->index.size;
    if (size < MEGATRON_HEADER_BYTES || memcmp(bytes, MEGATRON_MAGIC, MEGATRON_MAGIC_BYTES))
        return gdn_fail(GDN_INPUT, "%s is not a Megatron index: it does not begin with MMIDIDX", path);
    if (load_int64(bytes + MEGATRON_VERSION_AT, 0) != MEGATRON_VERSION)
        return gdn_fail(GDN_INPUT, "%s: its version is %llu, and %d is expected", path,
                        (unsigned long long)load_int64(bytes + MEGATRON_VERSION_AT, 0), MEGATRON_VERSION);
    TRY(find_element(path, bytes[MEGATRON_CODE_AT], &file->element));

    uint64_t sequences = (uint64_t)load_int64(bytes + MEGATRON_SEQUENCES_AT, 0);
    uint64_t indices = (uint64_t)load_int64(bytes + MEGATRON_INDICES_AT, 0);
    uint64_t tables = (uint64_t)(size - MEGATRON_HEADER_BYTES);
    if (sequences == 0) return gdn_fail(GDN_INPUT, "%s is empty: it lists no sequences", path);
    if (sequences > tables / 12 || indices > tables / 8 || 12 * sequences + 8 * indices > tables)
        return gdn_fail(GDN_INPUT,
                        "%s is truncated: %llu sequences and %llu document indices do not fit its %ld bytes",
                        path, (unsigned long long)sequences, (unsigned long long)indices, size);
    uint64_t rest = tables - 12 * sequences - 8 * indices;
    if (rest != 0 && rest != sequences) /* one mode a sequence */
        return gdn_fail(GDN_INPUT, "%s is too long: %llu bytes follow its tables", path,
                        (unsigned long long)rest);

    m->sequences = (long)sequences;
    m->lengths = bytes + MEGATRON_HEADER_BYTES;
    m->pointers = m->lengths + 4 * sequences;
    file->documents = (long)indices - 1;
    return GDN_OK;
}

static int validate_documents(const struct token_file *file, const struct megatron *m) {
    const uint8_t *documents = m->pointers + 8 * m->sequences;
    if (file->documents < 0 || load_int64(documents, 0) != 0 ||
        load_int64(documents, file->documents) != m->sequences)
        return gdn_fail(GDN_INPUT,
                        "%s is damaged: its document indices do not run from 0 to its %ld sequences",
                        m->index_path, m->sequences);
    for (long i = 0; i < file->documents; i++)
        if (load_int64(documents, i) > load_int64(documents, i + 1))
            return gdn_fail(GDN_INPUT,
                            "%s is damaged: document index %ld is %lld, less than the one before it",
                            m->index_path, i + 1, (long long)load_int64(documents, i + 1));
    return GDN_OK;
}

/* Checks every sequence against the size of .bin and sums their lengths. */
static int validate_sequences(struct token_file *file, struct megatron *m) {
    long width = (long)element_size(file->element), size = (long)file->map.size;
    m->starts = malloc((size_t)(m->sequences / STRIDE + 1) * sizeof *m->starts);
    if (!m->starts)
        return gdn_fail(GDN_INTERNAL, "%s: no memory for %ld sequences", m->index_path, m->sequences);
    for (long i = 0; i < m->sequences; i++) {
        if (i % STRIDE == 0) m->starts[i / STRIDE] = file->count;
        long length = load_int32(m->lengths, i), pointer = load_int64(m->pointers, i);
        if (length < 0)
            return gdn_fail(GDN_INPUT, "%s is damaged: sequence %ld has %ld tokens", m->index_path, i,
                            length);
        if (pointer < 0 || pointer > size || length * width > size - pointer)
            return gdn_fail(
                GDN_INPUT,
                "%s is truncated: %s has sequence %ld, %ld tokens of %s, at byte %ld, but the file has %ld "
                "bytes",
                file->path, m->index_path, i, length, element_name(file->element), pointer, size);
        if (__builtin_add_overflow(file->count, length, &file->count))
            return gdn_fail(GDN_INPUT, "%s is damaged: it lists more than 2^63 tokens", m->index_path);
    }
    if (file->count == 0)
        return gdn_fail(GDN_INPUT, "%s is empty: its sequences have no tokens", m->index_path);
    return GDN_OK;
}

/* file->path is the index, by which pairs are found; messages about tokens name the .bin. */
static int megatron_open(struct token_file *file) {
    struct megatron *m = calloc(1, sizeof *m);
    if (!m) return gdn_fail(GDN_INTERNAL, "%s: no memory", file->path);
    file->state = m;
    char *bin = megatron_path(file->path, ".bin");
    if (!bin) return gdn_fail(GDN_INTERNAL, "%s: no memory", file->path);
    m->index_path = file->path;
    file->path = bin;

    TRY(mapping_open(m->index_path, &m->index));
    TRY(read_header(file, m));
    TRY(mapping_open(file->path, &file->map));
    TRY(validate_documents(file, m));
    TRY(validate_sequences(file, m));
    file->bytes = (long)(m->index.size + file->map.size);
    snprintf(file->stored_as, sizeof file->stored_as, "%s", element_name(file->element));
    return GDN_OK;
}

/* The sequence that token `position` of the stream lies in, and that sequence's first token. */
static long find_sequence(const struct megatron *m, long position, long *start) {
    long low = 0, high = (m->sequences - 1) / STRIDE; /* starts[low] ≤ position */
    while (low < high) {
        long middle = low + (high - low + 1) / 2;
        if (m->starts[middle] <= position)
            low = middle;
        else
            high = middle - 1;
    }
    long i = low * STRIDE;
    *start = m->starts[low];
    while (*start + load_int32(m->lengths, i) <= position) *start += load_int32(m->lengths, i++);
    return i;
}

static int megatron_read(struct token_file *file, long first, long count, int32_t *out) {
    const struct megatron *m = file->state;
    long width = (long)element_size(file->element), start;
    if (count == 0) return GDN_OK;
    for (long i = find_sequence(m, first, &start), end = first + count; first < end; i++) {
        long length = load_int32(m->lengths, i), skip = first - start;
        long n = length - skip < end - first ? length - skip : end - first;
        const uint8_t *raw = file->map.bytes + load_int64(m->pointers, i) + skip * width;
        TRY(elements_read(file->path, first, file->element, raw, n, out));
        out += n;
        first += n;
        start += length;
    }
    return GDN_OK;
}

/* Whether a document starts with this sequence, by the index's list, which never falls. */
static bool starts_document(const struct token_file *file, const struct megatron *m, long sequence) {
    const uint8_t *documents = m->pointers + 8 * m->sequences;
    long low = 0, high = file->documents;
    while (low < high) {
        long middle = low + (high - low) / 2;
        if (load_int64(documents, middle) < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return load_int64(documents, low) == sequence;
}

static int megatron_mark_documents(struct token_file *file, long first, long count, int32_t *row) {
    const struct megatron *m = file->state;
    long start;
    if (count == 0) return GDN_OK;
    if (first == 0) row[0] |= MARK_DOCUMENT; /* and before the first sequence that has tokens */
    /* from the token before on, behind which sequences without tokens may start documents at `first` */
    for (long i = find_sequence(m, first ? first - 1 : 0, &start); i < m->sequences && start < first + count;
         i++) {
        if (start >= first && starts_document(file, m, i)) row[start - first] |= MARK_DOCUMENT;
        start += load_int32(m->lengths, i);
    }
    return GDN_OK;
}

static void megatron_close(struct token_file *file) {
    struct megatron *m = file->state;
    mapping_close(&file->map);
    if (!m) return;
    mapping_close(&m->index);
    free(m->index_path);
    free(m->starts);
    free(m);
}

/* Every document is one sequence, with what closes it. */
static long sequence_length(const struct written_tokens *written, long i) {
    bool closed = i == written->documents - 1 && written->closing >= 0;
    return written->ends[i] - (i ? written->ends[i - 1] : 0) + closed;
}

static int too_long(const struct written_tokens *written, long i) {
    bool is_file = written->tokens->num_files == written->documents;
    char number[40];
    snprintf(number, sizeof number, "document %ld", i + 1);
    return gdn_fail(
        GDN_INPUT, "%s: a Megatron sequence has at most %d tokens, and this document has %ld; split it",
        is_file ? written->tokens->files[i].path : number, INT32_MAX, sequence_length(written, i));
}

static int megatron_fill_index(struct output *index, const struct written_tokens *written) {
    int64_t n = written->documents, indices = n + 1, version = MEGATRON_VERSION, pointer = 0;
    uint8_t code = written->element == ELEMENT_UINT16 ? MEGATRON_UINT16 : MEGATRON_INT32;
    TRY(output_write(index, MEGATRON_MAGIC, MEGATRON_MAGIC_BYTES));
    TRY(output_write(index, &version, sizeof version));
    TRY(output_write(index, &code, sizeof code));
    TRY(output_write(index, &n, sizeof n));
    TRY(output_write(index, &indices, sizeof indices));
    for (long i = 0; i < n; i++) {
        if (sequence_length(written, i) > INT32_MAX) return too_long(written, i);
        int32_t stored = (int32_t)sequence_length(written, i);
        TRY(output_write(index, &stored, sizeof stored));
    }
    for (long i = 0; i < n; i++) {
        TRY(output_write(index, &pointer, sizeof pointer));
        pointer += sequence_length(written, i) * (int64_t)element_size(written->element);
    }
    for (int64_t i = 0; i < indices; i++) TRY(output_write(index, &i, sizeof i));
    return output_sync(index);
}

static int megatron_fill_both(struct output *bin, struct output *index,
                              const struct written_tokens *written) {
    TRY(megatron_fill_index(index, written));
    TRY(output_tokens(bin, written));
    if (written->closing >= 0) TRY(output_write(bin, &written->closing, element_size(written->element)));
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

static int megatron_verify_output(const char *path, const struct output_inputs *inputs) {
    char *bin_path = megatron_path(path, ".bin"), *index_path = megatron_path(path, ".idx");
    int status = bin_path && index_path ? GDN_OK : gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    if (!status) status = output_file_verify(bin_path, inputs);
    if (!status) status = output_file_verify(index_path, inputs);
    free(index_path);
    free(bin_path);
    return status;
}

static int megatron_write(const char *path, const struct written_tokens *written) {
    char *bin_path = megatron_path(path, ".bin"), *index_path = megatron_path(path, ".idx");
    struct output bin = {.descriptor = -1}, index = {.descriptor = -1};
    int status = bin_path && index_path ? GDN_OK : gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    if (!status) status = output_open(bin_path, &bin);
    if (!status) status = output_open(index_path, &index);
    if (!status) status = megatron_fill_both(&bin, &index, written);
    output_close(&index);
    output_close(&bin);
    free(index_path);
    free(bin_path);
    return status;
}

const struct token_format megatron_format = {
    .name = "megatron",
    .about = ".bin and .idx",
    .recognise = megatron_recognise,
    .name_of = megatron_name_of,
    .open = megatron_open,
    .read = megatron_read,
    .close = megatron_close,
    .mark_documents = megatron_mark_documents,
    .write = megatron_write,
    .verify_output = megatron_verify_output,
};
