/* Safetensors: numbers of every type of weights, files and folders of them, what is written to the byte, and
 * every malformation by name. Files are written here by hand. */
#include "tests/data/fixtures.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/safetensors/safetensors.h"
#include "data/safetensors/write.h"

/* A file of a header, which is padded to a multiple of 8 as whoever writes such files does, and elements. */
static void put_safetensors(const char *path, const char *header, const void *elements, size_t bytes) {
    size_t length = (strlen(header) + 7) / 8 * 8;
    char *file = malloc(8 + length + bytes);
    const uint64_t stored = length;
    memcpy(file, &stored, 8);
    memset(file + 8, ' ', length);
    memcpy(file + 8, header, strlen(header));
    memcpy(file + 8 + length, elements, bytes);
    put_file(path, file, 8 + length + bytes);
    free(file);
}

static void expect_refused(const char *path, const char *text) {
    struct safetensors file;
    expect_failure(safetensors_open(path, &file), GDN_INPUT, text);
    assert_null(file.map.bytes);
}

static const char zeros[64];

/* A file with this header and `bytes` bytes of elements is refused in these words. */
static void refuse(const char *header, size_t bytes, const char *text) {
    put_safetensors("bad.safetensors", header, zeros, bytes);
    expect_refused("bad.safetensors", text);
}

#define ENTRY(name, dtype, shape, from, to)                                                                  \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"

static void reads(void **state) {
    (void)state;
    const float values[] = {1, -2.5f, 3, 4, 5, 6, 7};
    put_safetensors(
        "good.safetensors",
        "{\"__metadata__\":{\"format\":\"pt\"}," ENTRY("b", "F32", "[2,2]", "8", "24") "," ENTRY(
            "a", "F32", "[2]", "0", "8") "," ENTRY("none", "F32", "[0,7]", "8",
                                                   "8") "," ENTRY("one", "I16", "[]", "24", "26") "}",
        values, 26);
    struct safetensors file;
    if (safetensors_open("good.safetensors", &file)) fail_msg("%s", gdn_failure());
    assert_int_equal(file.count, 4);
    assert_string_equal(file.tensor[0].name, "a");
    assert_string_equal(file.tensor[1].name, "b");
    assert_int_equal(file.tensor[1].ndim, 2);
    assert_null(file.tensor[3].dtype->load); /* integers are no weights */
    real out[2];
    safetensors_read(&file.tensor[1], 1, 2, out);
    assert_true(out[0] == 4 && out[1] == 5);
    safetensors_close(&file);
}

static void malformed(void **state) {
    (void)state;
    refuse("{" ENTRY("a", "F32", "[2]", "0", "8") "," ENTRY("b", "F32", "[2]", "4", "12") "}", 12,
           "a and b overlap");
    refuse("{" ENTRY("a", "F32", "[2]", "0", "8") "," ENTRY("b", "F32", "[2]", "12", "20") "}", 20,
           "4 bytes before tensor b");
    refuse("{" ENTRY("a", "F32", "[2]", "4", "12") "}", 12, "4 bytes before tensor a");
    refuse("{" ENTRY("a", "F32", "[2]", "0", "8") "}", 9, "last 1 bytes");
    refuse("{" ENTRY("a", "F32", "[2]", "0", "8") "}", 7, "tensor a lies at bytes 0 to 8 of the 7");
    refuse("{" ENTRY("a", "F32", "[2]", "8", "0") "}", 8, "tensor a lies at bytes 8 to 0");
    refuse("{" ENTRY("a", "F32", "[3]", "0", "8") "}", 8, "tensor a has 8 bytes|shape and dtype F32");
    refuse("{" ENTRY("a", "F32", "[4611686018427387904,4]", "0", "8") "}", 8, "tensor a has 8 bytes");
    refuse("{" ENTRY("a", "F32", "[-2]", "0", "8") "}", 8, "tensor a|whole numbers from 0");
    refuse("{" ENTRY("a", "F32", "[2.0]", "0", "8") "}", 8, "tensor a|whole numbers from 0");
    refuse("{" ENTRY("a", "F33", "[2]", "0", "8") "}", 8, "tensor a has a dtype that is not known");
    refuse("{" ENTRY("a", "F32", "[1,1,1,1,1,1,1,1,2]", "0", "8") "}", 8, "tensor a has more than 8");
    refuse("{" ENTRY("a", "F32", "2", "0", "8") "}", 8, "tensor a has no shape");
    refuse("{" ENTRY("a", "F32", "[2]", "0", "8") "," ENTRY("a", "F32", "[2]", "8", "16") "}", 16,
           "a name twice");
    refuse("{" ENTRY("a", "U8", "[1]", "0", "1") "," ENTRY("b", "F32", "[2]", "1", "9") "}", 9,
           "tensor b is not aligned");
    refuse("{" ENTRY("a", "F32", "[2]", "0", "9223372036854775808") "}", 8, "no JSON");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "tensor a has other entries");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"offsets\":[0,8]}}", 8, "tensor a lacks one");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8]}}", 8,
           "tensor a has no data_offsets");
    refuse("{" ENTRY("a\\nb", "F32", "[2]", "0", "8") "}", 8, "name is empty, longer");
    refuse("[1]", 0, "no JSON object");
    refuse("{", 0, "no JSON");
    put_text("bad.safetensors", "1234567");
    expect_refused("bad.safetensors", "it has 7 bytes");
    put_file("bad.safetensors", "\0\0\0\0\0\0\0\x80{}      ", 16); /* 2^63 */
    expect_refused("bad.safetensors", "would have 9223372036854775808 bytes, of a file of 16");
    put_file("bad.safetensors", "\x09\0\0\0\0\0\0\0{}      ", 16);
    expect_refused("bad.safetensors", "would have 9 bytes, of a file of 16");
}

static void put_index(const char *map) {
    char text[512];
    snprintf(text, sizeof text, "{\"metadata\":{},\"weight_map\":{%s}}", map);
    put_text("model.safetensors.index.json", text);
}

static void refuse_folder(const char *text) {
    struct safetensors_folder folder;
    expect_failure(safetensors_folder_open(".", &folder), GDN_INPUT, text);
    assert_null(folder.file);
}

static void folders(void **state) {
    (void)state;
    refuse_folder("./model.safetensors: cannot be opened");
    put_safetensors("x.safetensors", "{" ENTRY("a", "F32", "[2]", "0", "8") "}", zeros, 8);
    put_safetensors("y.safetensors", "{" ENTRY("b", "F32", "[2]", "0", "8") "}", zeros, 8);
    put_index("\"a\":\"x.safetensors\",\"b\":\"y.safetensors\"");
    struct safetensors_folder folder;
    if (safetensors_folder_open(".", &folder)) fail_msg("%s", gdn_failure());
    assert_int_equal(folder.count, 2);
    assert_string_equal(safetensors_find(&folder, "b")->path, "./y.safetensors");
    assert_null(safetensors_find(&folder, "c"));
    safetensors_folder_close(&folder);

    put_index("\"a\":\"x.safetensors\",\"b\":\"x.safetensors\"");
    refuse_folder("names 2 tensors, but the files have 1");
    put_index("\"a\":\"y.safetensors\",\"b\":\"x.safetensors\"");
    refuse_folder("does not name tensor a, which ./x.safetensors has");
    put_index("\"a\":\"../x.safetensors\"");
    refuse_folder("a file that is none in this folder");
    put_index("\"a\":7");
    refuse_folder("a file that is none in this folder");
    put_safetensors("z.safetensors", "{" ENTRY("a", "F32", "[2]", "0", "8") "}", zeros, 8);
    put_index("\"a\":\"x.safetensors\",\"b\":\"z.safetensors\"");
    refuse_folder("tensor a is in two files");
    put_text("model.safetensors.index.json", "{\"metadata\":\n}");
    refuse_folder("no JSON, in line 2");
    put_text("model.safetensors.index.json", "[]");
    refuse_folder("no object weight_map");
    assert_int_equal(unlink("model.safetensors.index.json"), 0);
}

/* Each 16-bit pattern, as a number, is stored as itself. */
static void halves(void **state) {
    (void)state;
    const char *const words[] = {"bfloat16", "float16"};
    for (int i = 0; i < 2; i++) {
        const struct dtype *dtype = dtype_of_word(words[i]);
        for (unsigned bits = 0; bits < 65536; bits++) {
            uint16_t half = (uint16_t)bits, again;
            real value;
            dtype->load(&half, 1, &value);
            assert_int_equal(dtype->store(&value, 1, &again), 0);
            if (isnan(value))
                assert_int_equal(again & 0x7c00, 0x7c00);
            else
                assert_int_equal(again, half);
        }
    }
}

static void expect_stored(const char *word, real value, uint16_t right, size_t beyond) {
    uint16_t half;
    assert_int_equal(dtype_of_word(word)->store(&value, 1, &half), beyond);
    assert_int_equal(half, right);
}

/* To the nearest, ties to even, and what has no place. */
static void rounding(void **state) {
    (void)state;
    expect_stored("bfloat16", 1 + 0x1p-8f, 0x3f80, 0);
    expect_stored("bfloat16", 1 + 0x1p-8f + 0x1p-20f, 0x3f81, 0);
    expect_stored("bfloat16", 1 + 3 * 0x1p-8f, 0x3f82, 0);
    expect_stored("bfloat16", 0x1.fffffep127f, 0x7f80, 1);
    expect_stored("bfloat16", -INFINITY, 0xff80, 0);
    expect_stored("float16", 1 + 0x1p-11f, 0x3c00, 0);
    expect_stored("float16", 1 + 3 * 0x1p-11f, 0x3c02, 0);
    expect_stored("float16", 65504, 0x7bff, 0);
    expect_stored("float16", 65519, 0x7bff, 0);
    expect_stored("float16", 65520, 0x7c00, 1);
    expect_stored("float16", -1e30f, 0xfc00, 1);
    expect_stored("float16", 0x1p-24f, 0x0001, 0);
    expect_stored("float16", 0x1p-25f, 0x0000, 0);
    expect_stored("float16", 3 * 0x1p-25f, 0x0002, 0);
    expect_stored("float16", -0x1.ff8p-15f, 0x83ff, 0);
    expect_stored("float16", 0x1.ffcp-15f, 0x0400, 0);
}

/* ---------------------------------------------------------------------------------------------- writing */

static const struct tensor_entry entries[] = {{"b.weight", 2, {2, 3}}, {"a", 1, {1}}, {"c", 1, {4}}};

/* Element e of entry i is 10 i + e, in pieces of two. */
static int give(void *context, int entry, tensor_put *put, void *sink) {
    const int *counts = context;
    for (int e = 0; e < counts[entry]; e += 2) {
        real two[] = {(real)(10 * entry + e), (real)(10 * entry + e + 1)};
        TRY(put(sink, two, counts[entry] - e < 2 ? 1 : 2));
    }
    return GDN_OK;
}

static int write_all(const char *word, int64_t shard, int counts[3]) {
    return safetensors_write(".", &(struct safetensors_content){.count = 3,
                                                                .entry = entries,
                                                                .dtype = dtype_of_word(word),
                                                                .shard = shard,
                                                                .give = give,
                                                                .context = counts});
}

static int right_counts[] = {6, 1, 4};

static void writes_one(void **state) {
    (void)state;
    if (write_all("float32", 1000, right_counts)) fail_msg("%s", gdn_failure());
    /* as the format's own library writes the same tensors */
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"}," ENTRY("a", "F32", "[1]", "0", "4") "," ENTRY(
            "b.weight", "F32", "[2,3]", "4", "28") "," ENTRY("c", "F32", "[4]", "28", "44") "}";
    const float elements[] = {10, 0, 1, 2, 3, 4, 5, 20, 21, 22, 23};
    put_safetensors("right.safetensors", header, elements, sizeof elements);
    assert_int_equal(system("cmp model.safetensors right.safetensors"), 0);
    struct safetensors_folder folder;
    if (safetensors_folder_open(".", &folder)) fail_msg("%s", gdn_failure());
    safetensors_folder_close(&folder);
    assert_int_equal(unlink("model.safetensors"), 0);
}

static void writes_several(void **state) {
    (void)state;
    if (write_all("bfloat16", 14, right_counts)) fail_msg("%s", gdn_failure());
    struct safetensors_folder folder;
    if (safetensors_folder_open(".", &folder)) fail_msg("%s", gdn_failure());
    assert_int_equal(folder.files, 2);
    assert_string_equal(safetensors_find(&folder, "b.weight")->path, "./model-00001-of-00002.safetensors");
    const struct stored_tensor *last = safetensors_find(&folder, "c");
    assert_string_equal(last->path, "./model-00002-of-00002.safetensors");
    real out[4];
    safetensors_read(last, 0, 4, out);
    for (int i = 0; i < 4; i++) assert_true(out[i] == 20 + i);
    safetensors_folder_close(&folder);
    if (write_all("float32", 1, right_counts)) fail_msg("%s", gdn_failure());
    assert_int_equal(access("model-00003-of-00003.safetensors", F_OK), 0); /* each alone where none fits */
    assert_int_equal(unlink("model.safetensors.index.json"), 0);
}

static void writes_nothing_wrong(void **state) {
    (void)state;
    int few[] = {6, 1, 3}, many[] = {6, 1, 5};
    expect_failure(write_all("float32", 1000, few), GDN_INTERNAL, "tensor c lacks 1");
    expect_failure(write_all("float32", 1000, many), GDN_INTERNAL, "tensor c has too many");
    assert_int_not_equal(access("model.safetensors", F_OK), 0);
    assert_int_not_equal(access(".model.safetensors.partial", F_OK), 0);
}

static int give_huge(void *context, int entry, tensor_put *put, void *sink) {
    (void)context, (void)entry;
    return put(sink, (real[]){1, 70000}, 2);
}

static void beyond(void **state) {
    (void)state;
    const struct tensor_entry entry = {"big", 1, {2}};
    struct safetensors_content content = {.count = 1, .entry = &entry, .shard = 100, .give = give_huge};
    content.dtype = dtype_of_word("float16");
    expect_failure(safetensors_write(".", &content), GDN_INPUT, "tensor big|largest of float16");
    content.dtype = dtype_of_word("bfloat16");
    assert_int_equal(safetensors_write(".", &content), GDN_OK);
    assert_int_equal(unlink("model.safetensors"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reads, clear_failure),
        cmocka_unit_test_setup(malformed, clear_failure),
        cmocka_unit_test_setup(folders, clear_failure),
        cmocka_unit_test(halves),
        cmocka_unit_test(rounding),
        cmocka_unit_test_setup(writes_one, clear_failure),
        cmocka_unit_test_setup(writes_several, clear_failure),
        cmocka_unit_test_setup(writes_nothing_wrong, clear_failure),
        cmocka_unit_test_setup(beyond, clear_failure),
    };
    return cmocka_run_group_tests(tests, scratch_setup, NULL);
}
