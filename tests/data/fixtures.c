#include "tests/data/fixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/scratch.h"

int scratch_setup(void **state) {
    (void)state;
    return chdir(scratch());
}

int clear_failure(void **state) {
    (void)state;
    gdn_failure_clear();
    return 0;
}

void put_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void put_text(const char *path, const char *text) {
    put_file(path, text, strlen(text));
}

void put_llmc(const char *path, int32_t magic, int32_t version, int32_t count, const void *tokens,
              size_t bytes) {
    int32_t *file = calloc(1, LLMC_HEADER + bytes);
    file[0] = magic;
    file[1] = version;
    file[2] = count;
    memcpy(file + LLMC_HEADER / 4, tokens, bytes);
    put_file(path, file, LLMC_HEADER + bytes);
    free(file);
}

void set_size(const char *path, long size) {
    assert_int_equal(truncate(path, size), 0);
}

void expect_stream(const char *pattern, const struct token_format *format, const int32_t *expected,
                   long count) {
    struct tokens *tokens;
    if (tokens_open(pattern, format, &tokens)) fail_msg("%s", gdn_failure());
    assert_int_equal(tokens_count(tokens), count);
    int32_t *read = malloc((size_t)count * sizeof *read);
    const long min = count > 5000 ? 997 : 1; /* a large file token by token would take seconds */
    const long pieces[] = {min, 4 * min, count};
    for (int p = 0; p < 3; p++) {
        long piece = pieces[p];
        memset(read, 0x55, (size_t)count * sizeof *read);
        for (long first = 0; first < count; first += piece) {
            long n = count - first < piece ? count - first : piece;
            if (tokens_read(tokens, first, n, read + first)) fail_msg("%s", gdn_failure());
        }
        assert_memory_equal(read, expected, (size_t)count * sizeof *read);
    }
    assert_int_equal(tokens_read(tokens, count, 0, read), GDN_OK);
    expect_failure(tokens_read(tokens, count, 1, read), GDN_INTERNAL, "stream");
    expect_failure(tokens_read(tokens, -1, 1, read), GDN_INTERNAL, "stream");
    free(read);
    tokens_close(tokens);
}

char *describe(const char *pattern, const struct token_format *format) {
    struct tokens *tokens;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(tokens_open(pattern, format, &tokens), GDN_OK);
    assert_int_equal(tokens_describe(tokens, out), GDN_OK);
    tokens_close(tokens);
    fclose(out);
    return text;
}

void expect_failure(int status, int expected, const char *text) {
    assert_int_equal(status, expected);
    char *list = strdup(text), *rest = NULL;
    for (char *word = strtok_r(list, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
        if (!strstr(gdn_failure(), word)) fail_msg("'%s' is not in the message: %s", word, gdn_failure());
    free(list);
    gdn_failure_clear();
}

void expect_open_fails(const char *pattern, const struct token_format *format, const char *text) {
    struct tokens *tokens = (struct tokens *)(uintptr_t)1;
    int status = tokens_open(pattern, format, &tokens);
    expect_failure(status, GDN_INPUT, text);
    assert_null(tokens);
}

void put_counting(const char *path, uint32_t base, int32_t count) {
    uint32_t *tokens = malloc((size_t)count * sizeof *tokens);
    for (int32_t i = 0; i < count; i++) tokens[i] = base + (uint32_t)i;
    put_llmc(path, 20240801, 7, count, tokens, (size_t)count * sizeof *tokens);
    free(tokens);
}
