/* What tells one stream of tokens from another. */
#include "tests/data/fixtures.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/identity.h"

/* What is said of a stream: the same of the same tokens, wherever the files lie and however they are cut;
 * another thing of more, fewer, others, and of files in another order, in streams that are read whole and in
 * long ones. */
static struct tokens_identity identify(const char *pattern) {
    struct tokens_identity identity;
    struct tokens *tokens;
    if (tokens_open(pattern, &llmc_format, &tokens)) fail_msg("%s", gdn_failure());
    assert_int_equal(tokens_identify(tokens, &identity), GDN_OK);
    tokens_close(tokens);
    return identity;
}

static void assert_same(struct tokens_identity a, struct tokens_identity b, bool same) {
    assert_true((a.tokens == b.tokens && a.hash == b.hash) == same);
}

static void identities(void **state) {
    (void)state;
    enum { LONG = 3 << 20, EACH = (LONG - 1024) / 1023 };
    const int32_t sizes[] = {3000, LONG};
    for (int i = 0; i < 2; i++) {
        int32_t n = sizes[i], half = n / 2;
        put_counting("as_is.bin", 5, n);
        struct tokens_identity first = identify("as_is.bin");
        assert_int_equal(first.tokens, n);
        assert_int_equal(rename("as_is.bin", "moved.bin"), 0);
        assert_same(first, identify("moved.bin"), true);
        put_counting("cut_1.bin", 5, half);
        put_counting("cut_2.bin", 5 + (uint32_t)half, n - half);
        assert_same(first, identify("cut_?.bin"), true);
        put_counting("cut_1.bin", 5 + (uint32_t)half, n - half);
        put_counting("cut_2.bin", 5, half);
        assert_same(first, identify("cut_?.bin"), false);
        put_counting("as_is.bin", 5, n + 1);
        assert_same(first, identify("as_is.bin"), false);
        put_counting("as_is.bin", 6, n);
        assert_same(first, identify("as_is.bin"), false);
    }
    /* one token, in a block and between two: byte 1024 is where llm.c's tokens begin */
    struct tokens_identity first = identify("as_is.bin");
    const long places[] = {0, LONG - 1, EACH * 1l, EACH * 511l + 1023, EACH * 3l + 1500};
    for (int i = 0; i < 5; i++) {
        FILE *file = fopen("as_is.bin", "r+b");
        assert_non_null(file);
        uint32_t right = 6 + (uint32_t)places[i], wrong = 1;
        assert_int_equal(fseek(file, 1024 + 4 * places[i], SEEK_SET), 0);
        assert_int_equal(fwrite(&wrong, sizeof wrong, 1, file), 1);
        assert_int_equal(fflush(file), 0);
        assert_same(first, identify("as_is.bin"), i == 4);
        assert_int_equal(fseek(file, 1024 + 4 * places[i], SEEK_SET), 0);
        assert_int_equal(fwrite(&right, sizeof right, 1, file), 1);
        fclose(file);
        assert_same(first, identify("as_is.bin"), true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(identities, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
