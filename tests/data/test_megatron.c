/* Megatron's .bin/.idx pairs, written here by hand: every type code, any order of sequences, damage. */
#include "kernels/base/marks.h"
#include "tests/data/fixtures.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An index as it lies in the file. */
struct index {
    char bytes[8192];
    size_t size;
};

static void append(struct index *index, const void *bytes, size_t size) {
    assert_true(index->size + size <= sizeof index->bytes);
    if (size == 0) return;
    memcpy(index->bytes + index->size, bytes, size);
    index->size += size;
}

static struct index make_index(uint8_t code, int64_t n, const int32_t *lengths, const int64_t *pointers,
                               int64_t d, const int64_t *documents) {
    struct index index = {.size = 0};
    append(&index, "MMIDIDX\0\0", 9);
    append(&index, &(uint64_t){1}, 8);
    append(&index, &code, 1);
    append(&index, &n, 8);
    append(&index, &d, 8);
    append(&index, lengths, 4 * (size_t)n);
    append(&index, pointers, 8 * (size_t)n);
    append(&index, documents, 8 * (size_t)d);
    return index;
}

static void put_pair(const char *bin, const void *tokens, size_t bytes, const char *idx,
                     const struct index *index) {
    put_file(bin, tokens, bytes);
    put_file(idx, index->bytes, index->size);
}

/* Three sequences of 2, 0 and 1 tokens in two documents. */
static const int32_t three_lengths[] = {2, 0, 1};
static const int64_t two_documents[] = {0, 2, 3};

static void put_three(uint8_t code, const void *tokens, long width) {
    struct index index =
        make_index(code, 3, three_lengths, (int64_t[]){0, 2 * width, 2 * width}, 3, two_documents);
    put_pair("type.bin", tokens, 3 * (size_t)width, "type.idx", &index);
}

static void type_codes(void **state) {
    (void)state;
    put_three(1, (uint8_t[]){0, 255, 7}, 1);
    expect_stream("type.bin", &megatron_format, (int32_t[]){0, 255, 7}, 3);
    put_three(2, (int8_t[]){-128, 127, 7}, 1);
    expect_stream("type.bin", &megatron_format, (int32_t[]){-128, 127, 7}, 3);
    put_three(3, (int16_t[]){-32768, 32767, 7}, 2);
    expect_stream("type.bin", &megatron_format, (int32_t[]){-32768, 32767, 7}, 3);
    put_three(4, (int32_t[]){INT32_MIN, INT32_MAX, 7}, 4);
    expect_stream("type.bin", &megatron_format, (int32_t[]){INT32_MIN, INT32_MAX, 7}, 3);
    put_three(5, (int64_t[]){INT32_MIN, INT32_MAX, 7}, 8);
    expect_stream("type.bin", &megatron_format, (int32_t[]){INT32_MIN, INT32_MAX, 7}, 3);
    put_three(8, (uint16_t[]){0, 65535, 7}, 2);
    expect_stream("type.bin", &megatron_format, (int32_t[]){0, 65535, 7}, 3);

    put_three(6, (double[]){1, 2, 3}, 8);
    expect_open_fails("type.bin", &megatron_format, "type.idx|float64|integers");
    put_three(7, (float[]){1, 2, 3}, 4);
    expect_open_fails("type.bin", &megatron_format, "type.idx|float32|integers");
    put_three(0, (uint8_t[]){1, 2, 3}, 1);
    expect_open_fails("type.bin", &megatron_format, "type.idx|type code 0");
    put_three(9, (uint8_t[]){1, 2, 3}, 1);
    expect_open_fails("type.bin", &megatron_format, "type.idx|type code 9");
}

static void value_beyond_int32(void **state) {
    (void)state;
    int32_t values[3];
    struct tokens *tokens;
    put_three(5, (int64_t[]){1, 4294967297, 7}, 8); /* its lower half alone would be 1 */
    assert_int_equal(tokens_open("type.bin", &megatron_format, &tokens), GDN_OK);
    expect_failure(tokens_read(tokens, 0, 3, values), GDN_INPUT, "type.bin|token 1 |4294967297");
    tokens_close(tokens);
    put_three(5, (int64_t[]){1, 2, -2147483649}, 8);
    assert_int_equal(tokens_open("type.bin", &megatron_format, &tokens), GDN_OK);
    expect_failure(tokens_read(tokens, 2, 1, values), GDN_INPUT, "type.bin|token 2 |-2147483649");
    tokens_close(tokens);
}

static void any_name_of_the_pair(void **state) {
    (void)state;
    put_three(1, (uint8_t[]){1, 2, 3}, 1);
    const int32_t expected[] = {1, 2, 3};
    expect_stream("type.idx", &megatron_format, expected, 3);
    expect_stream("type.bin", &megatron_format, expected, 3);
    expect_stream("type", &megatron_format, expected, 3);
    expect_stream("ty*.bin", &megatron_format, expected, 3);
    expect_stream("t?pe", &megatron_format, expected, 3);
}

/* Sequences out of order, overlapping and at odd bytes. */
static void pointers(void **state) {
    (void)state;
    const uint8_t bin[] = {99, 5, 0, 6, 0, 7, 0, 8, 0, 99};
    struct index index =
        make_index(8, 3, (int32_t[]){2, 2, 1}, (int64_t[]){5, 1, 3}, 4, (int64_t[]){0, 1, 2, 3});
    put_pair("far.bin", bin, sizeof bin, "far.idx", &index);
    expect_stream("far", &megatron_format, (int32_t[]){7, 8, 5, 6, 6}, 5);
}

static void multimodal(void **state) {
    (void)state;
    struct index index = make_index(1, 2, (int32_t[]){1, 1}, (int64_t[]){0, 1}, 2, (int64_t[]){0, 2});
    append(&index, "\0\1", 2);
    put_pair("modes.bin", "\5\6", 2, "modes.idx", &index);
    expect_stream("modes", &megatron_format, (int32_t[]){5, 6}, 2);
    append(&index, "\0", 1);
    put_pair("modes.bin", "\5\6", 2, "modes.idx", &index);
    expect_open_fails("modes", &megatron_format, "modes.idx|too long|3 bytes");
}

/* More sequences than one stride of the reader's table, some without tokens, backwards in .bin; two such
 * pairs. */
static void many_sequences(void **state) {
    (void)state;
    enum { N = 600 };
    int32_t lengths[N], expected[2 * 3 * N];
    int64_t sequence_pointers[N], documents[] = {0, N};
    uint16_t bin[3 * N];
    long count = 0, at = 3 * N;
    for (int i = 0; i < N; i++) {
        lengths[i] = i < 260 && i > 250 ? 0 : i % 4;
        at -= lengths[i];
        sequence_pointers[i] = 2 * at;
        for (int t = 0; t < lengths[i]; t++) expected[count++] = bin[at + t] = (uint16_t)(4 * i + t);
    }
    struct index index = {.size = 0};
    index = make_index(8, N, lengths, sequence_pointers, 2, documents);
    put_pair("many_1.bin", bin, sizeof bin, "many_1.idx", &index);
    put_pair("many_2.bin", bin, sizeof bin, "many_2.idx", &index);
    memcpy(expected + count, expected, (size_t)count * sizeof *expected);
    expect_stream("many_*", &megatron_format, expected, 2 * count);

    struct tokens *tokens;
    long in_file;
    assert_int_equal(tokens_open("many_*", &megatron_format, &tokens), GDN_OK);
    assert_string_equal(tokens_place(tokens, count + 5, &in_file), "many_2.bin");
    assert_int_equal(in_file, 5);
    for (long i = 0; i < 2 * count; i++) {
        int32_t value;
        assert_int_equal(tokens_read(tokens, i, 1, &value), GDN_OK);
        assert_int_equal(value, expected[i]);
    }
    tokens_close(tokens);
}

/* Documents start where they do, wherever a read begins, also with a sequence without tokens, of which more
 * than a stride lie in one place. */
static void document_starts(void **state) {
    (void)state;
    enum { N = 600, TOKENS = 6 };
    int32_t lengths[N] = {[0] = 2, [1] = 1, [N - 2] = 2, [N - 1] = 1}, row[TOKENS];
    int64_t sequence_pointers[N] = {0};
    struct index index = make_index(1, N, lengths, sequence_pointers, 5, (int64_t[]){0, 1, 2, N - 1, N});
    struct tokens *tokens;
    put_pair("starts.bin", "\1\2", 2, "starts.idx", &index);
    assert_int_equal(tokens_open("starts", &megatron_format, &tokens), GDN_OK);
    assert_int_equal(tokens_find_documents(tokens), GDN_OK);
    for (long first = 0; first < TOKENS; first++)
        for (long count = 1; count <= TOKENS - first; count++) {
            memset(row, 0, sizeof row);
            assert_int_equal(tokens_mark_documents(tokens, first, count, row), GDN_OK);
            for (long i = 0; i < TOKENS; i++) {
                const long at = first + i;
                const bool starts = at == 0 || at == 2 || at == 3 || at == 5;
                assert_int_equal(row[i], i < count && starts ? MARK_DOCUMENT : 0);
            }
        }
    tokens_close(tokens);
}

static void damaged_index(void **state) {
    (void)state;
    const uint8_t tokens[] = {1, 2, 3};
    const int64_t in_order[] = {0, 2, 2};
    const struct index good = make_index(1, 3, three_lengths, in_order, 3, two_documents);
    struct index bad = good;
    bad.bytes[0] = 'X';
    put_pair("bad.bin", tokens, 3, "bad.idx", &bad);
    expect_open_fails("bad", &megatron_format, "bad.idx|MMIDIDX");
    bad = good;
    bad.bytes[9] = 2;
    put_pair("bad.bin", tokens, 3, "bad.idx", &bad);
    expect_open_fails("bad", &megatron_format, "bad.idx|version is 2");
    for (size_t size = 1; size < good.size; size++) { /* cut anywhere */
        put_pair("bad.bin", tokens, 3, "bad.idx", &(struct index){.size = 0});
        put_file("bad.idx", good.bytes, size);
        expect_open_fails("bad", &megatron_format, size < 34 ? "bad.idx" : "bad.idx|truncated");
    }
    bad = good;
    memset(bad.bytes + 18, 0xff, 16); /* counts whose tables' size would overflow */
    put_pair("bad.bin", tokens, 3, "bad.idx", &bad);
    expect_open_fails("bad", &megatron_format, "bad.idx|truncated");
    bad = make_index(1, 0, NULL, NULL, 1, (int64_t[]){0});
    put_pair("bad.bin", tokens, 3, "bad.idx", &bad);
    expect_open_fails("bad", &megatron_format, "bad.idx|empty");
    bad = make_index(1, 2, (int32_t[]){0, 0}, in_order, 2, (int64_t[]){0, 2});
    put_pair("bad.bin", tokens, 3, "bad.idx", &bad);
    expect_open_fails("bad", &megatron_format, "bad.idx|empty");
    bad = make_index(1, 2, (int32_t[]){1, -1}, in_order, 2, (int64_t[]){0, 2});
    put_pair("bad.bin", tokens, 3, "bad.idx", &bad);
    expect_open_fails("bad", &megatron_format, "bad.idx|sequence 1|-1");
}

static void damaged_documents(void **state) {
    (void)state;
    const uint8_t tokens[] = {1, 2, 3};
    const int64_t in_order[] = {0, 2, 2}, wrong[][3] = {{1, 2, 3}, {0, 4, 3}, {0, 2, 2}};
    for (int i = 0; i < 3; i++) {
        struct index bad = make_index(1, 3, three_lengths, in_order, 3, wrong[i]);
        put_pair("bad.bin", tokens, 3, "bad.idx", &bad);
        expect_open_fails("bad", &megatron_format, "bad.idx|document ind");
    }
    struct index bad = make_index(1, 3, three_lengths, in_order, 0, NULL);
    put_pair("bad.bin", tokens, 3, "bad.idx", &bad);
    expect_open_fails("bad", &megatron_format, "bad.idx|document ind");
}

static void damaged_tokens(void **state) {
    (void)state;
    const uint8_t tokens[] = {1, 2, 3};
    const int64_t wrong[] = {-1, 3, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        struct index bad = make_index(1, 3, three_lengths, (int64_t[]){0, 2, wrong[i]}, 3, two_documents);
        put_pair("bad.bin", tokens, 3, "bad.idx", &bad);
        expect_open_fails("bad", &megatron_format, "bad.bin|truncated|sequence 2");
    }
    put_three(4, tokens, 1); /* 3 bytes for 3 tokens of 4 bytes, with pointers 0, 2, 2 */
    expect_open_fails("type", &megatron_format, "type.bin|truncated|int32");
    unlink("type.bin");
    expect_open_fails("type", &megatron_format, "type.bin|No such file");
    put_text("type.bin", "");
    expect_open_fails("type", &megatron_format, "type.bin|is empty");
    unlink("type.idx");
    expect_open_fails("type.bin", &megatron_format, "type.idx|No such file");
    put_text("type.idx", "");
    expect_open_fails("type.bin", &megatron_format, "type.idx|is empty");
    expect_open_fails("missing_*.bin", &megatron_format, "no file matches|missing_*.idx");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(type_codes, clear_failure),
        cmocka_unit_test_setup(value_beyond_int32, clear_failure),
        cmocka_unit_test_setup(any_name_of_the_pair, clear_failure),
        cmocka_unit_test_setup(pointers, clear_failure),
        cmocka_unit_test_setup(multimodal, clear_failure),
        cmocka_unit_test_setup(many_sequences, clear_failure),
        cmocka_unit_test_setup(document_starts, clear_failure),
        cmocka_unit_test_setup(damaged_index, clear_failure),
        cmocka_unit_test_setup(damaged_documents, clear_failure),
        cmocka_unit_test_setup(damaged_tokens, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
