/* spoil CHECKPOINT OUT TENSOR ELEMENT VALUE: copies the weights of a checkpoint.h5 to a file for
 * checkpoint.init_from, with one element of one tensor, in the order of the file, set to VALUE ("nan",
 * "3e38"). Elements are float32 or float64. */
#include <hdf5.h>

#include <stdio.h>
#include <stdlib.h>

static int complain(const char *what) {
    fprintf(stderr, "spoil: %s\n", what);
    return 1;
}

/* The checksum of what it was before. */
static herr_t forget(hid_t object, const char *name, const H5A_info_t *info, void *context) {
    (void)info, (void)context;
    return H5Adelete(object, name);
}

static int set(hid_t file, const char *tensor, hsize_t element, double value) {
    hid_t data = H5Dopen(file, tensor, H5P_DEFAULT);
    if (data < 0) return complain("no such tensor");
    hid_t space = H5Dget_space(data);
    hsize_t shape[2] = {1, 1}, count = (hsize_t)H5Sget_simple_extent_npoints(space);
    H5Sget_simple_extent_dims(space, shape, NULL);
    double *x = malloc(count * sizeof *x);
    if (!x || element >= count) return complain("no such element");
    if (H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) < 0)
        return complain("cannot read");
    x[element] = value;
    if (H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) < 0)
        return complain("cannot write");
    hsize_t at = 0;
    H5Aiterate(data, H5_INDEX_NAME, H5_ITER_NATIVE, &at, forget, NULL);
    free(x);
    H5Sclose(space);
    H5Dclose(data);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 6) return complain("CHECKPOINT OUT TENSOR ELEMENT VALUE are expected");
    hid_t from = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t to = H5Fcreate(argv[2], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (from < 0 || to < 0 || H5Ocopy(from, "/model", to, "/model", H5P_DEFAULT, H5P_DEFAULT) < 0)
        return complain("cannot copy /model");
    int status = set(to, argv[3], strtoull(argv[4], NULL, 10), strtod(argv[5], NULL));
    H5Fclose(from);
    return H5Fclose(to) < 0 || status;
}
