#include "data/documents/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "data/format.h"
#include "data/likeness.h"
#include "kernels/base/status.h"

enum { BLOCK = 1 << 18 }; /* bytes read at a time */

struct reader {
    const char *path;
    FILE *file;
    bool gz; /* of .gz */
    z_stream zip;
    ZSTD_DStream *zstd; /* of .zst */
    char *packed;       /* [BLOCK] of either */
    ZSTD_inBuffer in;
    size_t pending;    /* not 0 inside a frame, or a member of gzip's */
    bool unpacked;     /* a member of gzip's is behind */
    struct text block; /* unpacked, of which `taken` are used */
    size_t taken;
    bool lines, ended, given;
    struct range range;
    long next; /* of lines: where in the unpacked file the next begins */
    long line, position;
};

static bool ends_in(const char *path, size_t length, const char *suffix) {
    size_t n = strlen(suffix);
    return length >= n && !memcmp(path + length - n, suffix, n);
}

static size_t packed_suffix(const char *path) {
    size_t length = strlen(path);
    return ends_in(path, length, ".gz") ? 3 : ends_in(path, length, ".zst") ? 4 : 0;
}

bool reader_is_lines(const char *path) {
    return ends_in(path, strlen(path) - packed_suffix(path), ".jsonl");
}

bool reader_may_cut(const char *path) {
    return reader_is_lines(path) && !packed_suffix(path);
}

static int damaged(const struct reader *r, const char *how, const char *words) {
    return gdn_fail(GDN_INPUT, "%s cannot be unpacked by %s: %s", r->path, how, words);
}

static int open_file(struct reader *r) {
    struct stat about;
    size_t packed = packed_suffix(r->path);
    if (stat(r->path, &about)) return gdn_fail(GDN_INPUT, "%s: %s", r->path, strerror(errno));
    if (!S_ISREG(about.st_mode)) return gdn_fail(GDN_INPUT, "%s is not a file", r->path);
    if (!about.st_size) return gdn_fail(GDN_INPUT, "%s is empty", r->path);
    if (!packed) TRY(likeness_verify(r->path, &text_format));
    r->file = fopen(r->path, "rb");
    if (!r->file) return gdn_fail(GDN_INPUT, "%s: %s", r->path, strerror(errno));
    if (!packed) return GDN_OK;
    r->packed = malloc(BLOCK);
    if (packed == 3)
        r->gz = inflateInit2(&r->zip, 16 + MAX_WBITS) == Z_OK; /* 16: gzip's headers and sums */
    else
        r->zstd = ZSTD_createDStream();
    return r->packed && (r->gz || r->zstd) ? GDN_OK : gdn_fail(GDN_INTERNAL, "%s: no memory", r->path);
}

/* What is packed, where all of it is used up; ended: there is no more. `cut` says what it means that more was
 * to follow. */
static int fill_packed(struct reader *r, const char *how, const char *cut) {
    if (r->in.pos < r->in.size) return GDN_OK;
    r->in = (ZSTD_inBuffer){r->packed, fread(r->packed, 1, BLOCK, r->file), 0};
    r->position += (long)r->in.size;
    if (ferror(r->file)) return gdn_fail(GDN_INPUT, "%s: %s", r->path, strerror(errno));
    if (!r->in.size && r->pending) return damaged(r, how, cut);
    r->ended = !r->in.size;
    return GDN_OK;
}

static const char *gz_words(const struct reader *r, int code) {
    const bool begins = r->zip.total_in <= 2; /* its mark has so many bytes */
    if (begins && !r->unpacked) return "it is not compressed";
    if (begins) return "behind a member of it stands what is neither another one nor zeros";
    return r->zip.msg ? r->zip.msg : zError(code);
}

/* A file is one member or more, and may have zeros behind each, as on tapes. Anything else there is
 * damage: whoever stops at it, as zlib's gzread does, loses all members behind it. */
static int fill_gz(struct reader *r, struct text *out) {
    const bool begun = r->unpacked && r->zip.total_in == 1;
    TRY(fill_packed(r, "gzip",
                    begun ? "it is truncated, or a byte stands behind its last member" : "it is truncated"));
    if (r->unpacked && !r->pending)
        while (r->in.pos < r->in.size && !r->packed[r->in.pos]) r->in.pos++;
    if (r->in.pos == r->in.size) return GDN_OK;
    r->zip.next_in = (Bytef *)r->packed + r->in.pos;
    r->zip.avail_in = (uInt)(r->in.size - r->in.pos);
    r->zip.next_out = (Bytef *)out->bytes + out->length;
    r->zip.avail_out = BLOCK;
    const int code = inflate(&r->zip, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) return damaged(r, "gzip", gz_words(r, code));
    r->in.pos = r->in.size - r->zip.avail_in;
    out->length += BLOCK - r->zip.avail_out;
    r->pending = code != Z_STREAM_END;
    if (r->pending) return GDN_OK;
    r->unpacked = true;
    inflateReset(&r->zip);
    return GDN_OK;
}

static int fill_zstd(struct reader *r, struct text *out) {
    TRY(fill_packed(r, "zstd", "it is truncated"));
    ZSTD_outBuffer to = {out->bytes + out->length, BLOCK, 0};
    if (r->ended) return GDN_OK;
    r->pending = ZSTD_decompressStream(r->zstd, &to, &r->in);
    if (ZSTD_isError(r->pending)) return damaged(r, "zstd", ZSTD_getErrorName(r->pending));
    out->length += to.pos;
    return GDN_OK;
}

static int fill_plain(struct reader *r, struct text *out) {
    size_t n = fread(out->bytes + out->length, 1, BLOCK, r->file);
    if (ferror(r->file)) return gdn_fail(GDN_INPUT, "%s: %s", r->path, strerror(errno));
    out->length += n;
    r->ended = n == 0;
    r->position += (long)n;
    return GDN_OK;
}

/* Appends up to BLOCK bytes; none at the end alone, but of packed files, which may want more first. */
static int fill(struct reader *r, struct text *out) {
    TRY(text_reserve(out, BLOCK));
    return r->gz ? fill_gz(r, out) : r->zstd ? fill_zstd(r, out) : fill_plain(r, out);
}

/* Appends the next line, or what is left of it; nothing at the end. */
static int read_line(struct reader *r, struct text *out) {
    for (;;) {
        size_t rest = r->block.length - r->taken;
        char *at = rest ? r->block.bytes + r->taken : NULL, *end = rest ? memchr(at, '\n', rest) : NULL;
        size_t used = end ? (size_t)(end + 1 - at) : rest;
        if (rest) TRY(text_add(out, at, end ? used - 1 : rest));
        r->taken += used;
        r->next += (long)used;
        if (end || r->ended) return GDN_OK;
        r->block.length = r->taken = 0;
        TRY(fill(r, &r->block));
    }
}

/* From the byte before the range on, so that a line that begins with it is known by the newline there. */
static int begin_range(struct reader *r) {
    struct text before = {0};
    if (!r->range.from) return GDN_OK;
    if (fseek(r->file, r->next = r->range.from - 1, SEEK_SET))
        return gdn_fail(GDN_INPUT, "%s: %s", r->path, strerror(errno));
    int status = read_line(r, &before);
    text_free(&before);
    return status;
}

int reader_open(const char *path, struct range range, struct reader **out) {
    struct reader *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    r->path = path;
    r->range = range;
    r->lines = reader_is_lines(path);
    int status = open_file(r);
    if (!status) status = begin_range(r);
    if (status)
        reader_close(r);
    else
        *out = r;
    return status;
}

void reader_close(struct reader *r) {
    if (!r) return;
    if (r->gz) inflateEnd(&r->zip);
    if (r->file) fclose(r->file);
    ZSTD_freeDStream(r->zstd);
    free(r->packed);
    text_free(&r->block);
    free(r);
}

static int next_text(struct reader *r, struct text *out, bool *found) {
    *found = !r->given;
    while (!r->given && !r->ended) TRY(fill(r, out));
    r->given = true;
    if (!*found) return GDN_OK;
    const char *nul = out->length ? memchr(out->bytes, 0, out->length) : NULL;
    if (!out->length) return gdn_fail(GDN_INPUT, "%s is empty", r->path);
    if (nul)
        return gdn_fail(GDN_INPUT, "%s is no text: it has a NUL byte at position %ld", r->path,
                        (long)(nul - out->bytes));
    return GDN_OK;
}

static bool is_blank(const struct text *line) {
    for (size_t i = 0; i < line->length; i++)
        if (!strchr(" \t\r", line->bytes[i]) || !line->bytes[i]) return false;
    return true;
}

static int next_line(struct reader *r, struct text *out, bool *found) {
    *found = false;
    while (!*found && r->next < r->range.to && !(r->ended && r->taken == r->block.length)) {
        out->length = 0;
        TRY(read_line(r, out));
        r->line++;
        *found = !is_blank(out);
    }
    return GDN_OK;
}

int reader_next(struct reader *r, struct text *out, long *line, bool *found) {
    out->length = 0;
    int status = r->lines ? next_line(r, out, found) : next_text(r, out, found);
    *line = r->line;
    return status;
}

long reader_lines_before(const char *path, long from) {
    FILE *file = fopen(path, "rb");
    long lines = file && from > 0; /* the first, and one behind each newline */
    for (int c; file && --from > 0 && (c = getc_unlocked(file)) != EOF;) lines += c == '\n';
    if (file) fclose(file);
    return lines;
}

long reader_position(const struct reader *r) {
    return r->position;
}
