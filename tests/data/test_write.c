/* tokens_write: what it writes is read back as the text it was, byte for byte as the formats ask, complete or
 * not at all. */
#include "tests/data/fixtures.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const two_documents[] = {"doc_1", "doc_2"};

static void put_documents(void) {
    put_text("doc_1", "ab\xff");
    put_text("doc_2", "c");
}

/* 1 MiB of text, as much as is looked through for NUL bytes when a file is opened. */
static void put_long_text(const char *path) {
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE);
    memset(text, 'a', SIZE);
    put_file(path, text, SIZE);
    free(text);
}

/* Files in the scratch folder whose names contain `word`. */
static int count_files(const char *word) {
    int count = 0;
    DIR *folder = opendir(".");
    for (struct dirent *entry; (entry = readdir(folder));) count += strstr(entry->d_name, word) != NULL;
    closedir(folder);
    return count;
}

static void small_documents(void **state) {
    (void)state;
    put_documents();
    const int32_t separated[] = {'a', 'b', 255, 256, 'c', 256};
    assert_int_equal(tokens_write("small.h5", &hdf5_format, two_documents, 2), GDN_OK);
    expect_stream("small.h5", &hdf5_format, separated, 5);
    assert_int_equal(tokens_write("small.bin", &llmc_format, two_documents, 2), GDN_OK);
    expect_stream("small.bin", &llmc_format, separated, 5);
    assert_int_equal(tokens_write("pair", &megatron_format, two_documents, 2), GDN_OK);
    assert_int_equal(tokens_write("small.raw", &nanogpt_format, two_documents, 2), GDN_OK);
    expect_stream("small.raw", &nanogpt_format, separated, 5);
    expect_stream("pair", &megatron_format, separated, 6); /* the last document is closed, too */
    assert_int_equal(count_files("partial"), 0);
}

static void large_document(void **state) {
    (void)state;
    enum { N = 100000 }; /* several of the writer's blocks */
    uint8_t *bytes = malloc(N);
    int32_t *expected = malloc((N + 1) * sizeof *expected);
    for (int i = 0; i < N; i++) expected[i] = bytes[i] = (uint8_t)((unsigned)i * 2654435761u >> 24 | 1);
    expected[N] = 256;
    put_file("large.txt", bytes, N);
    const char *const documents[] = {"large.txt"};
    assert_int_equal(tokens_write("large.h5", &hdf5_format, documents, 1), GDN_OK);
    expect_stream("large.h5", &hdf5_format, expected, N);
    assert_int_equal(tokens_write("large.bin", &llmc_format, documents, 1), GDN_OK);
    expect_stream("large.bin", &llmc_format, expected, N);
    assert_int_equal(tokens_write("pair.idx", &megatron_format, documents, 1), GDN_OK);
    expect_stream("pair", &megatron_format, expected, N + 1);
    free(expected);
    free(bytes);
}

static void expect_bytes(const char *path, const void *expected, size_t size) {
    char found[4096];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof found, file), size);
    fclose(file);
    assert_memory_equal(found, expected, size);
}

/* What other programs read, and so no business of our own reader alone. */
static void exact_bytes(void **state) {
    (void)state;
    put_documents();
    char llmc[1024 + 10] = "\x88\xd8\x34\x01\1\0\0\0\5"; /* 20240520, 1, 5 tokens */
    memcpy(llmc + 1024, "a\0b\0\xff\0\0\1c\0", 10);
    assert_int_equal(tokens_write("exact.bin", &llmc_format, two_documents, 2), GDN_OK);
    expect_bytes("exact.bin", llmc, sizeof llmc);

    assert_int_equal(tokens_write("exact.bin", &megatron_format, two_documents, 2), GDN_OK); /* replaces it */
    expect_bytes("exact.bin", "a\0b\0\xff\0\0\1c\0\0\1", 12);
    const char index[] = "MMIDIDX\0\0\1\0\0\0\0\0\0\0\10\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0" /* header */
                         "\4\0\0\0\2\0\0\0"                                               /* lengths */
                         "\0\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0"                              /* pointers */
                         "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0";                /* documents */
    expect_bytes("exact.idx", index, sizeof index);
}

static void permissions(void **state) {
    (void)state;
    put_documents();
    mode_t old = umask(027);
    assert_int_equal(tokens_write("mode.bin", &llmc_format, two_documents, 2), GDN_OK);
    umask(old);
    struct stat about;
    assert_int_equal(stat("mode.bin", &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
}

static void refusals(void **state) {
    (void)state;
    put_documents();
    put_text("empty", "");
    const char *const missing[] = {"doc_1", "doc_3"}, *const empty[] = {"doc_1", "empty"};
    const char *const own[] = {"doc_2", "./doc_1"};
    expect_failure(tokens_write("no", &llmc_format, missing, 2), GDN_INPUT, "doc_3|No such file");
    expect_failure(tokens_write("no", &hdf5_format, empty, 2), GDN_INPUT, "empty|is empty");
    expect_failure(tokens_write("no", &text_format, two_documents, 2), GDN_INPUT,
                   "hdf5, llmc, megatron or nanogpt");
    expect_failure(tokens_write("no", &hdf5_format, two_documents, 0), GDN_INPUT, "no documents");
    expect_failure(tokens_write("doc_1", &llmc_format, own, 2), GDN_INPUT,
                   "doc_1|both a document and the output");
    /* Megatron's two files, by any name of theirs */
    put_text("memo.bin", "bin");
    put_text("memo.idx", "idx");
    if (link("memo.idx", "linked.txt")) fail_msg("no link: %s", strerror(errno));
    const char *const megatron[][2] = {
        {"doc_1", "./memo.bin"}, {"memo.idx", "doc_1"}, {"doc_1", "linked.txt"}};
    const char *const named[] = {"memo.bin", "memo.idx", "memo.idx"};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            char text[100];
            snprintf(text, sizeof text, "%s is both|another output", named[i]);
            expect_failure(tokens_write(k ? "memo.bin" : "memo", &megatron_format, megatron[i], 2), GDN_INPUT,
                           text);
        }
    expect_stream("memo.bin", &text_format, (int32_t[]){'b', 'i', 'n'}, 3);
    expect_stream("memo.idx", &text_format, (int32_t[]){'i', 'd', 'x'}, 3);
    for (int f = 0; token_format_of(f); f++)
        if (token_format_of(f)->write)
            expect_failure(tokens_write("nowhere/no", token_format_of(f), two_documents, 2), GDN_INPUT,
                           "nowhere/no|No such file");
    assert_int_equal(count_files("no"), 0);
    assert_int_equal(count_files("partial"), 0);
    expect_stream("doc_1", &text_format, (int32_t[]){'a', 'b', 255}, 3);
}

/* More tokens than the formats can count: refused before anything is written. */
static void too_many(void **state) {
    (void)state;
    put_long_text("huge.txt");
    set_size("huge.txt", 1l << 31);
    const char *const documents[] = {"huge.txt"};
    expect_failure(tokens_write("no.bin", &llmc_format, documents, 1), GDN_INPUT,
                   "no.bin|2147483647|2147483648");
    expect_failure(tokens_write("no", &megatron_format, documents, 1), GDN_INPUT,
                   "huge.txt|2147483647|2147483649");
    assert_int_equal(count_files("no."), 0);
    unlink("huge.txt");
}

/* A full disk, played by a limit on file sizes, costs neither the file that was there nor leaves a new
 * one. */
static void full_disk(void **state) {
    (void)state;
    put_documents();
    put_long_text("long.txt");
    set_size("long.txt", 1 << 20);
    const char *const large[] = {"long.txt"};
    struct rlimit limit, small;
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 100000;
    signal(SIGXFSZ, SIG_IGN);
    for (int f = 0; token_format_of(f); f++) {
        const struct token_format *format = token_format_of(f);
        if (!format->write) continue;
        const int32_t separated[] = {'a', 'b', 255, 256, 'c', 256};
        long count = format == &megatron_format ? 6 : 5;
        assert_int_equal(tokens_write(format->name, format, two_documents, 2), GDN_OK);
        setrlimit(RLIMIT_FSIZE, &small);
        int status = tokens_write(format->name, format, large, 1);
        setrlimit(RLIMIT_FSIZE, &limit);
        expect_failure(status, GDN_INPUT, format->name);
        expect_stream(format->name, format, separated, count);
        assert_int_equal(count_files("partial"), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(small_documents, clear_failure),
        cmocka_unit_test_setup(large_document, clear_failure),
        cmocka_unit_test_setup(exact_bytes, clear_failure),
        cmocka_unit_test_setup(permissions, clear_failure),
        cmocka_unit_test_setup(refusals, clear_failure),
        cmocka_unit_test_setup(too_many, clear_failure),
        cmocka_unit_test_setup(full_disk, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
