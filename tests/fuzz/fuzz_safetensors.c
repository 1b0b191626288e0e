/* A model's safetensors. The first four bytes of an input are two numbers, low byte first: how many bytes of
 * the rest are an index, and how many behind that are the header of model.safetensors, which then begins with
 * its right length; 0: what is left is the file as it stands. It is read by itself, and through the index
 * where there is one. */
#include <string.h>
#include <unistd.h>

#include "data/safetensors/safetensors.h"
#include "harness.h"

enum { HEAD = 4, SOME = 64 };

/* The last elements of weights; other tensors are only known. */
static void read_end(const struct stored_tensor *tensor) {
    static real some[SOME];
    if (!tensor->dtype->load) return;
    size_t n = tensor->bytes / tensor->dtype->bytes, last = n < SOME ? n : SOME;
    safetensors_read(tensor, n - last, last, some);
}

static void read_folder(void) {
    struct safetensors_folder folder;
    if (!fuzz_status(safetensors_folder_open(fuzz_folder(), &folder), 1, "safetensors_folder_open")) return;
    for (int i = 0; i < folder.count; i++) {
        read_end(folder.tensor[i]);
        fuzz_check(safetensors_find(&folder, folder.tensor[i]->name) == folder.tensor[i], "safetensors_find");
    }
    safetensors_folder_close(&folder);
}

/* The file, and what is read of it alone. */
static void put_file(const uint8_t *rest, size_t left, size_t header) {
    static uint8_t file[1 << 17];
    const uint64_t length = header;
    if (!header || left + sizeof length > sizeof file) {
        fuzz_write("model.safetensors", rest, left);
        return;
    }
    memcpy(file, &length, sizeof length);
    memcpy(file + sizeof length, rest, left);
    fuzz_write("model.safetensors", file, left + sizeof length);
}

static size_t number(const uint8_t *data, size_t most) {
    size_t value = (size_t)(data[0] | data[1] << 8);
    return value < most ? value : most;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < HEAD) return 0;
    size_t index = number(data, size - HEAD), left = size - HEAD - index, header = number(data + 2, left);
    put_file(data + HEAD + index, left, header);
    unlink(fuzz_path("model.safetensors.index.json"));
    read_folder();
    if (!index) return 0;
    fuzz_write("model.safetensors.index.json", data + HEAD, index);
    read_folder();
    return 0;
}
