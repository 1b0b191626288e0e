/* From factors back to differences: the file has what lowrank_expand computes, to the bit, and that is what
 * the factors say. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/backends/backends.h"
#include "tests/train/deltas/made_up.h"
#include "kernels/base/status.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"
#include "train/deltas/rebuild.h"

/* Dataset `delta`, of [batch, length, hidden]. */
static real *read_delta(const char *path, const struct made_up *shape, double *error, int64_t *rank) {
    hid_t type = sizeof(real) == sizeof(float) ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), data = H5Dopen2(file, "delta", H5P_DEFAULT);
    assert_true(file >= 0 && data >= 0);
    hid_t space = H5Dget_space(data);
    hsize_t size[3] = {0};
    assert_int_equal(H5Sget_simple_extent_ndims(space), 3);
    H5Sget_simple_extent_dims(space, size, NULL);
    assert_true((long)size[0] == shape->batch && (long)size[1] == shape->length &&
                (long)size[2] == shape->hidden);
    real *x = malloc(size[0] * size[1] * size[2] * sizeof *x);
    assert_true(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    hid_t attribute = H5Aopen(data, "relative_error", H5P_DEFAULT);
    assert_true(H5Aread(attribute, H5T_NATIVE_DOUBLE, error) >= 0);
    H5Aclose(attribute);
    attribute = H5Aopen(data, "rank", H5P_DEFAULT);
    assert_true(H5Aread(attribute, H5T_NATIVE_INT64, rank) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Dclose(data);
    H5Fclose(file);
    return x;
}

/* The first `rank` columns and rows in memory of their own. */
static struct factors copy_of(const struct factors *f, long rank) {
    struct factors c = *f;
    c.rank = rank;
    c.u = malloc((size_t)(f->T * rank) * sizeof *c.u);
    c.sigma = malloc((size_t)rank * sizeof *c.sigma);
    c.vt = malloc((size_t)(rank * f->D) * sizeof *c.vt);
    for (long i = 0; i < rank; i++) {
        for (long t = 0; t < f->T; t++) c.u[t * rank + i] = f->u[t * f->rank + i];
        c.sigma[i] = f->sigma[i];
        for (long j = 0; j < f->D; j++) c.vt[i * f->D + j] = f->vt[i * f->D + j];
    }
    return c;
}

/* Sums in double, in an order of its own: a float's rounding of up to 12 terms stays below 1e-5 of the terms'
 * sum, as 64-bit rounding does of 1e-14. */
static void check_sums(const struct factors *f, const real *x) {
    const double tolerance = sizeof(real) == sizeof(float) ? 1e-5 : 1e-14;
    for (long t = 0; t < f->T; t++)
        for (long j = 0; j < f->D; j++) {
            double sum = 0, size = 0;
            for (long i = f->rank; i-- > 0;) {
                double term =
                    (double)f->u[t * f->rank + i] * (double)f->sigma[i] * (double)f->vt[i * f->D + j];
                sum += term, size += fabs(term);
            }
            assert_true(fabs((double)x[t * f->D + j] - sum) <= tolerance * size);
        }
}

static void check_rank(const struct made_up *shape, long rank) {
    struct delta_record r = made_up_record(20, 5, 2, shape);
    struct factors right = copy_of(&r.factors, rank);
    long T = right.T, D = right.D;
    real *scaled = malloc((size_t)(T * rank) * sizeof *scaled), *x = malloc((size_t)(T * D) * sizeof *x);
    lowrank_expand(ops_find("cpu"), &right, scaled, x);
    /* what is left out, of ‖δ‖² */
    double left = r.factors.error * r.factors.error;
    for (long i = rank; i < shape->rank; i++) left += pow((double)r.factors.sigma[i] / r.factors.norm, 2);
    char path[256];
    snprintf(path, sizeof path, "%s/rank_%ld_%ld.h5", scratch(), shape->hidden, rank);
    if (rank < shape->rank) delta_cut(&r.factors, rank);
    assert_int_equal(delta_rebuild(&r, shape->rank, "somewhere", path), GDN_OK);
    double error;
    int64_t its_rank;
    real *read = read_delta(path, shape, &error, &its_rank);
    assert_memory_equal(read, x, (size_t)(T * D) * sizeof *x);
    check_sums(&right, read);
    assert_int_equal(its_rank, rank);
    assert_true(fabs(error * error - left) <= 1e-12);
    free(read), free(x), free(scaled);
    delta_record_free(&r);
    free(right.u), free(right.sigma), free(right.vt);
}

static void all_ranks(void **state) {
    (void)state;
    static const struct made_up shape[] = {{2, 3, 5, 4}, {3, 16, 40, 12}, {1, 1, 1, 1}, {1, 2, 9, 2}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (long rank = 1; rank <= shape[i].rank; rank++) check_rank(&shape[i], rank);
}

/* A file that is there is replaced; one that cannot be written leaves nothing. */
static void complete_or_not_there(void **state) {
    (void)state;
    static const struct made_up shape = {2, 3, 5, 4};
    struct delta_record r = made_up_record(1, 2, 1, &shape);
    char path[256];
    snprintf(path, sizeof path, "%s/again.h5", scratch());
    for (int i = 0; i < 2; i++) assert_int_equal(delta_rebuild(&r, 4, "somewhere", path), GDN_OK);
    snprintf(path, sizeof path, "%s/no/such/folder.h5", scratch());
    assert_int_equal(delta_rebuild(&r, 4, "somewhere", path), GDN_INPUT);
    assert_non_null(strstr(gdn_failure(), path));
    gdn_failure_clear();
    delta_record_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_ranks), cmocka_unit_test(complete_or_not_there)};
    return cmocka_run_group_tests_name("delta_rebuild", tests, NULL, NULL);
}
