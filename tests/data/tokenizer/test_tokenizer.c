/* Tokenizers as the reference implementation has them: golden/ has its ids (reference.py), of tokenizers in
 * the forms of five families and two odd ones, of texts of all kinds. */
#include "data/tokenizer/token_bytes.h"

#include <jansson.h>
#include <string.h>

#include "kernels/base/status.h"
#include "tests/support/unit.h"

static json_t *golden;

static json_t *member(const char *name, const char *family) {
    return json_object_get(json_object_get(golden, name), family);
}

static struct tokenizer *open_family(const char *family) {
    struct tokenizer *tokenizer;
    char path[1000];
    snprintf(path, sizeof path, GOLDEN "/%s.json", family);
    if (tokenizer_open(path, &tokenizer)) fail_msg("%s", gdn_failure());
    return tokenizer;
}

static struct text unhex(const char *hex) {
    struct text text = {0};
    for (unsigned byte; *hex; hex += 2) {
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        assert_int_equal(text_add(&text, &(char){(char)byte}, 1), GDN_OK);
    }
    return text;
}

static int digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return (int)(strchr(digits, c) - digits);
}

static void expect_ids(const char *family, long text, const struct ids *found, const char *spelt) {
    size_t count = strlen(spelt) / 2;
    for (size_t i = 0; i < count && i < (size_t)found->count; i++)
        if (found->id[i] != digit(spelt[2 * i]) * 64 + digit(spelt[2 * i + 1]))
            fail_msg("%s, text %ld: token %zu is %d", family, text, i, found->id[i]);
    if ((size_t)found->count != count)
        fail_msg("%s, text %ld: %ld tokens, expected %zu", family, text, found->count, count);
}

static void expect_decoded(const char *family, long text, const struct text *found, const char *expected,
                           size_t length) {
    if (found->length != length || (length && memcmp(found->bytes, expected, length)))
        fail_msg("%s, text %ld: decoded to '%.*s'", family, text, (int)found->length, found->bytes);
}

/* What tokens are in a text, one by one, is the text: as long, and the same behind the first. */
static void expect_bytes(const char *family, long text, const struct tokenizer *tokenizer,
                         const struct token_bytes *table, const struct ids *ids) {
    struct text whole = {0};
    long sum = 0;
    assert_int_equal(tokenizer_decode_bytes(tokenizer, ids->id, ids->count, &whole), GDN_OK);
    for (long i = 0; i < ids->count; i++) {
        size_t length;
        const char *bytes = token_bytes_at(table, ids->id[i], &length);
        const long own = token_bytes_length(table, i ? ids->id[i - 1] : -1, ids->id[i]);
        if (sum + own > (long)whole.length || (i && memcmp(bytes, whole.bytes + sum, length)))
            fail_msg("%s, text %ld: token %ld is other bytes than alone", family, text, i);
        sum += own;
    }
    if (sum != (long)whole.length)
        fail_msg("%s, text %ld: tokens are %ld bytes, and the text has %zu", family, text, sum, whole.length);
    text_free(&whole);
}

/* Each text twice, since the second time its words are known, and decoded. */
static void ids_and_texts(void **state) {
    (void)state;
    const char *family;
    json_t *all;
    json_object_foreach(json_object_get(golden, "ids"), family, all) {
        struct tokenizer *tokenizer = open_family(family);
        struct encoder *encoder;
        struct token_bytes table;
        assert_int_equal(encoder_create(tokenizer, &encoder), GDN_OK);
        assert_int_equal(token_bytes_create(tokenizer, -1, &table), GDN_OK);
        for (size_t i = 0; i < 2 * json_array_size(all); i++) {
            size_t k = i / 2;
            struct text text = unhex(json_string_value(json_array_get(json_object_get(golden, "texts"), k)));
            struct text decoded = {0};
            struct ids ids = {0};
            const json_t *back = json_array_get(member("decoded", family), k);
            if (encoder_encode(encoder, text.bytes, text.length, false, &ids)) fail_msg("%s", gdn_failure());
            expect_ids(family, (long)k, &ids, json_string_value(json_array_get(all, k)));
            expect_bytes(family, (long)k, tokenizer, &table, &ids);
            assert_int_equal(tokenizer_decode(tokenizer, ids.id, ids.count, false, &decoded), GDN_OK);
            bool itself = json_is_null(back); /* where it is UTF-8, which a text with U+FFFD is not */
            if (!itself)
                expect_decoded(family, (long)k, &decoded, json_string_value(back), json_string_length(back));
            if (itself && !(decoded.length && memmem(decoded.bytes, decoded.length, "\xef\xbf\xbd", 3)))
                expect_decoded(family, (long)k, &decoded, text.bytes, text.length);
            text_free(&text);
            text_free(&decoded);
            ids_free(&ids);
        }
        token_bytes_free(&table);
        encoder_free(encoder);
        tokenizer_close(tokenizer);
    }
}

static void special_tokens(void **state) {
    (void)state;
    const char *family;
    json_t *spelt;
    struct text text = unhex(json_string_value(json_array_get(json_object_get(golden, "texts"), 0)));
    json_object_foreach(json_object_get(golden, "special"), family, spelt) {
        struct tokenizer *tokenizer = open_family(family);
        struct encoder *encoder;
        struct ids ids = {0};
        assert_int_equal(encoder_create(tokenizer, &encoder), GDN_OK);
        assert_int_equal(encoder_encode(encoder, text.bytes, text.length, true, &ids), GDN_OK);
        expect_ids(family, 0, &ids, json_string_value(spelt));
        ids_free(&ids);
        encoder_free(encoder);
        tokenizer_close(tokenizer);
    }
    text_free(&text);
    struct tokenizer *tokenizer = open_family("llama3");
    struct text decoded = {0};
    int32_t begin = tokenizer_id(tokenizer, "<|begin_of_text|>", 17), a = tokenizer_id(tokenizer, "a", 1);
    assert_true(begin >= 0 && tokenizer_is_special(tokenizer, begin) && !tokenizer_is_special(tokenizer, a));
    const int32_t both[] = {begin, a, 1 << 20};
    assert_int_equal(tokenizer_decode(tokenizer, both, 3, true, &decoded), GDN_OK);
    expect_decoded("llama3", 0, &decoded, "a", 1);
    text_free(&decoded);
    tokenizer_close(tokenizer);
}

/* Every id has a name, which has that id. */
static void names(void **state) {
    (void)state;
    const char *const families[] = {"gpt2", "gemma", "llama3"};
    for (int f = 0; f < 3; f++) {
        struct tokenizer *tokenizer = open_family(families[f]);
        size_t length;
        long vocab = tokenizer_vocab(tokenizer);
        assert_true(vocab > 300 && tokenizer_hash(tokenizer));
        for (int32_t id = 0; id < vocab; id++) {
            const char *name = tokenizer_name(tokenizer, id, &length);
            assert_non_null(name);
            assert_int_equal(tokenizer_id(tokenizer, name, length), id);
        }
        assert_null(tokenizer_name(tokenizer, (int32_t)vocab, &length));
        assert_null(tokenizer_name(tokenizer, -1, &length));
        assert_int_equal(tokenizer_id(tokenizer, "no such token", 13), -1);
        tokenizer_close(tokenizer);
    }
}

static void bytes(void **state) {
    (void)state;
    struct tokenizer *tokenizer;
    struct encoder *encoder;
    struct ids ids = {0};
    struct text text = {0};
    assert_int_equal(tokenizer_open("bytes", &tokenizer), GDN_OK);
    assert_int_equal(tokenizer_vocab(tokenizer), 257);
    assert_int_equal(tokenizer_id(tokenizer, "<separator>", 11), 256);
    assert_int_equal(encoder_create(tokenizer, &encoder), GDN_OK);
    assert_int_equal(encoder_encode(encoder, "a\xff\0b", 4, true, &ids), GDN_OK);
    assert_int_equal(ids.count, 4);
    assert_int_equal(ids.id[1], 255);
    assert_int_equal(ids_add(&ids, &(int32_t){256}, 1), GDN_OK);
    assert_int_equal(tokenizer_decode(tokenizer, ids.id, ids.count, true, &text), GDN_OK);
    expect_decoded("bytes", 0, &text, "a\xff\0b", 4);
    ids_free(&ids);
    text_free(&text);
    encoder_free(encoder);
    tokenizer_close(tokenizer);
}

static int load_golden(void **state) {
    (void)state;
    json_error_t error;
    golden = json_load_file(GOLDEN "/golden.json", JSON_ALLOW_NUL, &error);
    return !golden;
}

static int drop_golden(void **state) {
    (void)state;
    json_decref(golden);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_texts),
        cmocka_unit_test(special_tokens),
        cmocka_unit_test(names),
        cmocka_unit_test(bytes),
    };
    return cmocka_run_group_tests(tests, load_golden, drop_golden);
}
