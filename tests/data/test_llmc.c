/* llm.c's .bin shards, written here by hand: both widths, several shards, sizes beyond 2 and 4 GiB,
 * damage. */
#include "tests/data/fixtures.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void two_bytes(void **state) {
    (void)state;
    put_llmc("gpt2.bin", 20240520, 1, 4, (uint16_t[]){50256, 0, 65535, 7}, 8);
    expect_stream("gpt2.bin", &llmc_format, (int32_t[]){50256, 0, 65535, 7}, 4);
}

static void four_bytes(void **state) {
    (void)state;
    put_llmc("llama.bin", 20240801, 7, 3, (uint32_t[]){128000, 2147483647, 1}, 12);
    expect_stream("llama.bin", &llmc_format, (int32_t[]){128000, 2147483647, 1}, 3);
}

static void shards(void **state) {
    (void)state;
    put_llmc("shard_000002.bin", 20240520, 1, 2, (uint16_t[]){3, 4}, 4);
    put_llmc("shard_000001.bin", 20240801, 7, 3, (uint32_t[]){0, 1, 2}, 12);
    put_llmc("shard_000003.bin", 20240520, 1, 1, (uint16_t[]){5}, 2);
    expect_stream("shard_*.bin", &llmc_format, (int32_t[]){0, 1, 2, 3, 4, 5}, 6);
}

static void value_beyond_int32(void **state) {
    (void)state;
    put_llmc("wide_1.bin", 20240801, 7, 1, (uint32_t[]){1}, 4);
    put_llmc("wide_2.bin", 20240801, 7, 3, (uint32_t[]){1, 2, 2147483648u}, 12);
    struct tokens *tokens;
    int32_t values[4];
    assert_int_equal(tokens_open("wide_*.bin", &llmc_format, &tokens), GDN_OK);
    assert_int_equal(tokens_read(tokens, 0, 3, values), GDN_OK);
    expect_failure(tokens_read(tokens, 0, 4, values), GDN_INPUT, "wide_2.bin|token 2 |2147483648");
    tokens_close(tokens);
}

/* A sparse shard of `count` tokens of which only the last is not 0, and reads of the last three. */
static void large_shard(const char *path, int32_t magic, int32_t version, int32_t count, long width) {
    put_llmc(path, magic, version, count, "", 0);
    long size = LLMC_HEADER + count * width;
    set_size(path, size);
    int descriptor = open(path, O_WRONLY);
    assert_int_equal(pwrite(descriptor, "\x39\x30\0", 2, size - width), 2); /* 12345 */
    close(descriptor);

    struct tokens *tokens;
    int32_t values[3];
    if (tokens_open(path, &llmc_format, &tokens)) fail_msg("%s", gdn_failure());
    assert_int_equal(tokens_count(tokens), count);
    assert_int_equal(tokens_read(tokens, count - 3l, 3, values), GDN_OK);
    assert_memory_equal(values, ((int32_t[]){0, 0, 12345}), sizeof values);
    tokens_close(tokens);

    set_size(path, size - 1);
    expect_open_fails(path, &llmc_format, "truncated");
    unlink(path);
}

static void beyond_2_gib(void **state) {
    (void)state;
    large_shard("large2.bin", 20240520, 1, 1100000000, 2);
}

static void beyond_4_gib(void **state) {
    (void)state;
    large_shard("large4.bin", 20240801, 7, 1100000000, 4);
    large_shard("large8.bin", 20240801, 7, INT32_MAX, 4);
}

static void damaged(void **state) {
    (void)state;
    const uint16_t tokens[] = {1, 2, 3};
    put_text("foreign.bin", "not tokens");
    expect_open_fails("foreign.bin", &llmc_format, "foreign.bin|is not|10 bytes");
    put_llmc("foreign.bin", 12345, 1, 3, tokens, 6);
    expect_open_fails("foreign.bin", &llmc_format, "foreign.bin|12345|20240520|20240801");
    put_llmc("version.bin", 20240520, 7, 3, tokens, 6);
    expect_open_fails("version.bin", &llmc_format, "version.bin|version 1|7");
    put_llmc("short.bin", 20240520, 1, 4, tokens, 6);
    expect_open_fails("short.bin", &llmc_format, "short.bin|truncated|4 tokens|1032|1030");
    put_llmc("long.bin", 20240520, 1, 2, tokens, 6);
    expect_open_fails("long.bin", &llmc_format, "long.bin|too long|1028|1030");
    put_llmc("none.bin", 20240520, 1, 0, tokens, 0);
    expect_open_fails("none.bin", &llmc_format, "none.bin|0 tokens");
    put_llmc("negative.bin", 20240520, 1, -3, tokens, 6);
    expect_open_fails("negative.bin", &llmc_format, "negative.bin|-3 tokens");
    put_text("empty.bin", "");
    expect_open_fails("empty.bin", &llmc_format, "empty.bin|is empty");
    expect_open_fails("missing.bin", &llmc_format, "missing.bin|No such file");
    expect_open_fails("missing_*.bin", &llmc_format, "missing_*.bin|no file matches");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(two_bytes, clear_failure),
        cmocka_unit_test_setup(four_bytes, clear_failure),
        cmocka_unit_test_setup(shards, clear_failure),
        cmocka_unit_test_setup(value_beyond_int32, clear_failure),
        cmocka_unit_test_setup(beyond_2_gib, clear_failure),
        cmocka_unit_test_setup(beyond_4_gib, clear_failure),
        cmocka_unit_test_setup(damaged, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
