/* What files look like: formats found by content, files of the wrong one refused in words, text with NUL
 * bytes refused wherever they lie, and nanogpt, which looks like nothing. */
#include "tests/data/fixtures.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file of every format with tokens 'a' 'b' 256 'c', and one of text. */
static const struct {
    const struct token_format *format;
    const char *path;
} made[] = {
    {&hdf5_format, "made.h5"},
    {&llmc_format, "made.bin"},
    {&megatron_format, "pair"},
    {&nanogpt_format, "raw.bin"},
};
enum { NUM_MADE = sizeof made / sizeof *made };

static void make_all(void) {
    const char *const documents[] = {"one.txt", "two.txt"};
    put_text("one.txt", "ab");
    put_text("two.txt", "c");
    for (int i = 0; i < NUM_MADE; i++)
        assert_int_equal(tokens_write(made[i].path, made[i].format, documents, 2), GDN_OK);
}

static void expect_format(const char *pattern, const struct token_format *expected) {
    const struct token_format *found;
    assert_int_equal(tokens_detect(pattern, &found), GDN_OK);
    assert_string_equal(found->name, expected->name);
}

static void found_by_content(void **state) {
    (void)state;
    make_all();
    expect_format("one.txt", &text_format);
    expect_format("*.txt", &text_format);
    expect_format("made.h5", &hdf5_format);
    expect_format("made.bi?", &llmc_format);
    expect_format("pair", &megatron_format);
    expect_format("pair.bin", &megatron_format);
    expect_format("pair.idx", &megatron_format);
    expect_format("pair*", &megatron_format);
    expect_format("raw.bin", &text_format); /* nothing in it tells, and as text it is refused */
    expect_format("missing", &text_format); /* opening it tells */
    const struct token_format *found;
    expect_failure(tokens_detect("missing_*", &found), GDN_INPUT, "no file matches|missing_*");

    /* not the name counts, and text beside an index of its name stays text */
    assert_int_equal(rename("made.h5", "no_text.txt"), 0);
    expect_format("no_text.txt", &hdf5_format);
    put_text("pair.txt", "text");
    expect_format("pair.txt", &text_format);
}

/* Every file opened as every format: its own reads it, all others say what it is and which format reads
 * it. */
static void wrong_formats(void **state) {
    (void)state;
    make_all();
    for (int i = 0; i < NUM_MADE; i++)
        for (int f = 0; token_format_of(f); f++) {
            const struct token_format *format = token_format_of(f);
            if (made[i].format == format) {
                expect_stream(made[i].path, format, (int32_t[]){'a', 'b', 256, 'c', 256},
                              format == &megatron_format ? 5 : 4);
                continue;
            }
            if (made[i].format == &nanogpt_format) continue; /* without a mark: below */
            char text[128];
            const char *path = made[i].format == &megatron_format ? "pair.bin" : made[i].path;
            snprintf(text, sizeof text, "%s is |format %s cannot|format %s is expected", path, format->name,
                     made[i].format->name);
            expect_open_fails(path, format, text);
        }
    expect_open_fails("raw.bin", &text_format, "raw.bin is no text|NUL byte at position 1|nanogpt");
    expect_open_fails("raw.bin", &llmc_format, "raw.bin is not a file of llm.c tokens");
    expect_open_fails("one.txt", &hdf5_format, "one.txt is not an HDF5 file");
}

static void packed_files(void **state) {
    (void)state;
    const struct {
        const char *bytes;
        int size, at;
        const char *text;
    } files[] = {
        {"\x1f\x8b\x08\x01", 4, 0, "compressed by gzip|gzip -d"},
        {"\x28\xb5\x2f\xfd", 4, 0, "compressed by zstd|zstd -d"},
        {"\xfd\x37zXZ\0", 6, 0, "compressed by xz|xz -d"},
        {"BZh9\x31\x41\x59\x26\x53\x59", 10, 0, "compressed by bzip2|bzip2 -d"},
        {"\x04\x22\x4d\x18", 4, 0, "compressed by lz4|lz4 -d"},
        {"PK\x03\x04", 4, 0, "zip archive|unzip"},
        {"ustar", 5, 257, "tar archive|tar -xf"},
        {"PAR1\x15", 5, 0, "Parquet"},
        {"\x93NUMPY", 6, 0, "NumPy|nanogpt"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char bytes[400]; /* without a NUL byte, so that only the mark can tell */
        memset(bytes, 'x', sizeof bytes);
        memcpy(bytes + files[i].at, files[i].bytes, (size_t)files[i].size);
        put_file("packed", bytes, sizeof bytes);
        expect_open_fails("packed", &text_format, files[i].text);
        expect_open_fails("packed", &hdf5_format, files[i].text);
    }
    put_text("short", "PK"); /* shorter than any mark */
    expect_stream("short", &text_format, (int32_t[]){'P', 'K'}, 2);
}

static void nul_bytes(void **state) {
    (void)state;
    put_file("nul", "ab\0c", 4);
    expect_open_fails("nul", &text_format,
                      "nul is no text|NUL byte at position 2|hdf5, llmc, megatron, or nanogpt");
    put_file("wide",
             "\xff\xfe"
             "a\0b\0",
             6);
    expect_open_fails("wide", &text_format, "NUL byte at position 3|UTF-16|iconv");

    /* Far into a file it is found by whoever would read it, and nobody else pays for the search. */
    enum { SIZE = 3 << 20, AT = (2 << 20) + 5 };
    char *bytes = malloc(SIZE);
    memset(bytes, 'x', SIZE);
    bytes[AT] = 0;
    put_file("late", bytes, SIZE);
    free(bytes);
    struct tokens *tokens;
    int32_t values[8];
    assert_int_equal(tokens_open("late", &text_format, &tokens), GDN_OK);
    assert_int_equal(tokens_read(tokens, AT - 8, 8, values), GDN_OK);
    assert_int_equal(tokens_read(tokens, AT + 1, 8, values), GDN_OK);
    expect_failure(tokens_read(tokens, AT - 7, 8, values), GDN_INPUT, "late is no text|position 2097157");
    tokens_close(tokens);
}

static void nanogpt(void **state) {
    (void)state;
    const uint16_t tokens[] = {0x8b1f, 0x0008, 65535, 50256}; /* as good a start as any, though gzip's */
    put_file("raw", tokens, sizeof tokens);
    expect_stream("raw", &nanogpt_format, (int32_t[]){0x8b1f, 8, 65535, 50256}, 4);
    put_file("odd", tokens, 5);
    expect_open_fails("odd", &nanogpt_format, "odd has 5 bytes, an odd number|two bytes each");
    put_text("nothing", "");
    expect_open_fails("nothing", &nanogpt_format, "nothing is empty");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(found_by_content, clear_failure),
        cmocka_unit_test_setup(wrong_formats, clear_failure),
        cmocka_unit_test_setup(packed_files, clear_failure),
        cmocka_unit_test_setup(nul_bytes, clear_failure),
        cmocka_unit_test_setup(nanogpt, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
