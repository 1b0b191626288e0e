/* Seeds for fuzz_checkpoint, and one for fuzz_tokens: seed_checkpoint FOLDER FOR_PARTS. Checkpoints as gdn
 * writes them, and weights as other programs may: in HDF5's oldest format, in chunks, compressed, in other
 * number types. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dist/checkpoint/checkpoint.h"
#include "dist/checkpoint/digest.h"
#include "kernels/base/status.h"
#include "tiny_model.h"

static void check(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "seed_checkpoint: %s: %s\n", what, gdn_failure());
    exit(1);
}

/* The file without its first `skip` bytes. */
static void copy(const char *from, const char *to, size_t skip) {
    static char bytes[1 << 20];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    check(in && out, to);
    size_t size = fread(bytes, 1, sizeof bytes, in);
    check(fwrite(bytes + skip, 1, size - skip, out) == size - skip, to);
    fclose(in);
    check(!fclose(out), to);
}

static void save(enum checkpoint_files files, int64_t step) {
    struct mesh mesh = mesh_alone();
    struct checkpoint_content content = tiny_model();
    struct checkpoint_info info = {.step = step,
                                   .samples = 32 * step,
                                   .config = "train: {steps: 9}\n",
                                   .loss = 1.5,
                                   .best_loss = 1.25,
                                   .loss_scale = 1024,
                                   .loss_scale_good = 3};
    check(!checkpoint_save(&mesh, "run", &content, &info, 0, files), "checkpoint_save");
}

/* One dataset of a foreign file. */
struct foreign {
    const char *name;
    int ndim;
    hsize_t shape[2];
    hid_t type;
    bool packed; /* in chunks, compressed */
};

static void write_dataset(hid_t file, const struct foreign *d) {
    const double values[6] = {1, -2, 0.5, 3, 1e-3, -0.0};
    hid_t links = H5Pcreate(H5P_LINK_CREATE), how = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[2] = {1, 2};
    H5Pset_create_intermediate_group(links, 1);
    if (d->packed) {
        H5Pset_chunk(how, d->ndim, chunk);
        H5Pset_shuffle(how);
        H5Pset_deflate(how, 4);
        H5Pset_fletcher32(how);
    }
    hid_t space = H5Screate_simple(d->ndim, d->shape, NULL);
    hid_t id = H5Dcreate2(file, d->name, d->type, space, links, how, H5P_DEFAULT);
    check(id >= 0 && H5Dwrite(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, d->name);
    H5Dclose(id);
    H5Sclose(space);
    H5Pclose(how);
    H5Pclose(links);
}

static void write_foreign(const char *path, const char *group, H5F_libver_t format, bool packed) {
    char name[3][64];
    snprintf(name[0], sizeof name[0], "%s/embed/weight", group);
    snprintf(name[1], sizeof name[1], "%s/norm/weight", group);
    snprintf(name[2], sizeof name[2], "%s/layers/1/delta/1/down/weight", group);
    struct foreign dataset[] = {
        {name[0], 2, {3, 2}, H5T_IEEE_F64BE, packed},
        {name[1], 1, {2, 1}, H5T_IEEE_F32BE, false},
        {name[2], 2, {2, 2}, H5T_NATIVE_LDOUBLE, packed},
    };
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, format, H5F_LIBVER_LATEST);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    check(file >= 0, path);
    for (int i = 0; i < 3; i++) write_dataset(file, &dataset[i]);
    hid_t space = H5Screate(H5S_SCALAR), text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 12);
    hid_t attribute = H5Acreate2(file, "config", text, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, text, "train: {}  ");
    H5Aclose(attribute);
    H5Tclose(text);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(access);
}

/* More tokens than a double can count, none of which is stored. */
static void write_huge_tokens(const char *path) {
    const hsize_t count = 4539628424389490551, chunk = 16;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
          how = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(1, &count, NULL);
    H5Pset_chunk(how, 1, &chunk);
    H5Pset_obj_track_times(how, false);
    hid_t id = H5Dcreate2(file, "tokens", H5T_STD_U16LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    check(id >= 0, path);
    H5Dclose(id);
    H5Sclose(space);
    H5Pclose(how);
    H5Fclose(file);
}

int main(int argc, char **argv) {
    char path[4096];
    check(argc == 3, "usage: seed_checkpoint FOLDER FOR_PARTS, in an empty folder");
#define TO(name) (snprintf(path, sizeof path, "%s/%s", argv[1], name), path)
    check(!mkdir("run", 0700), "the folder run");
    save(FILES_ONE, 7);
    save(FILES_NODE, 8);
    copy("run/checkpoints/step_00000007/checkpoint.h5", TO("one"), DIGEST_BYTES);
    copy("run/checkpoints/step_00000007/checkpoint.h5", TO("one-sealed"), 0);
    copy("run/checkpoints/step_00000008/checkpoint.h5", TO("node"), DIGEST_BYTES);
    snprintf(path, sizeof path, "%s/part_00000.h5", argv[2]);
    copy("run/checkpoints/step_00000008/part_00000.h5", path, 0);
    write_foreign(TO("foreign-oldest"), "initial", H5F_LIBVER_EARLIEST, false);
    write_foreign(TO("foreign-packed"), "model", H5F_LIBVER_EARLIEST, true);
    write_foreign(TO("foreign-latest"), "initial", H5F_LIBVER_LATEST, true);
    write_huge_tokens("huge-tokens.h5"); /* for seeds.sh */
    return 0;
}
