/* masked_tokens FILE.h5 TOKENS FIRST END: an HDF5 token file of ids below 251 with a loss mask in which spans of 1 to
 * 31 tokens count and do not in turn, and of tokens FIRST … END − 1 none. */
#include <hdf5.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernels/base/random.h"

static void put(hid_t file, const char *name, hid_t stored, hid_t memory, const void *values, hsize_t count) {
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t dataset = H5Dcreate(file, name, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) exit(1);
    H5Dclose(dataset);
    H5Sclose(space);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    const long count = atol(argv[2]), first = atol(argv[3]), end = atol(argv[4]);
    int32_t *token = malloc((size_t)count * sizeof *token);
    uint8_t *mask = malloc((size_t)count);
    if (!token || !mask) return 1;
    bool counts = false;
    for (long i = 0, left = 0; i < count; i++, left--) {
        if (left <= 0) counts = !counts, left = 1 + (long)(random_bits(1, 1, (uint64_t)i) % 31);
        mask[i] = counts && (i < first || i >= end);
        token[i] = (int32_t)(i % 3 ? (i * i / 7) % 251 : (long)(random_bits(1, 2, (uint64_t)i) % 16));
    }
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    put(file, "tokens", H5T_STD_U16LE, H5T_NATIVE_INT32, token, (hsize_t)count);
    put(file, "loss_mask", H5T_STD_U8LE, H5T_NATIVE_UINT8, mask, (hsize_t)count);
    free(token);
    free(mask);
    return H5Fclose(file) < 0;
}
