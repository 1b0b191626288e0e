/* What calls must not do to the process: allocate, or leave threads of a BLAS behind. */
#include "kernels/backends/backends.h"
#include "matrices.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "tests/allocations.h"

static int threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));) count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* Also where the environment asks for them, as CMakeLists.txt does here. */
static void test_threads(void **state) {
    (void)state;
    assert_non_null(getenv("OPENBLAS_NUM_THREADS"));
    assert_int_equal(threads(), 1);
    struct workplace place;
    real *x = make_matrix(spectrum_find("slow"), 600, 400, 1);
    set_up(&place, ops_find("reference"), 600, 400, 50, true); /* "cpu" has OpenMP's */
    assert_int_equal(lowrank_full(&place.w, 600, 400, x, 50, NULL, &place.f), 0);
    assert_int_equal(threads(), 1);
    clean_up(&place);
    free(x);
}

#ifdef GDN_COUNTED
static void test_allocations(void **state) {
    (void)state;
    const long T = 90, D = 60, rank = 20;
    struct workplace place;
    struct lowrank *w = &place.w;
    real *x = make_matrix(spectrum_find("slow"), T, D, 1), *y = calloc((size_t)(T * D), sizeof *y);
    real *q = calloc((size_t)(T * rank), sizeof *q), *b = calloc((size_t)(rank * D), sizeof *b);
    set_up(&place, ops_find("reference"), T, D, rank, true);
    allocations_count();
    int status = lowrank_factor(w, T, D, x, rank, 1, &place.f);
    if (!status) status = lowrank_to(w, T, D, x, 0.2, 1, &place.f);
    if (!status) status = lowrank_full(w, T, D, x, rank, NULL, &place.f);
    lowrank_expand(w->ops, &place.f, q, y);
    lowrank_split(w, T, D, x, rank, 1, q, b);
    lowrank_join(w->ops, T, D, rank, q, b, y);
    long made = allocations_counted();
    assert_int_equal(status, 0);
    if (made) fail_msg("%ld allocations, the last one from %s", made, allocations_last());
    clean_up(&place);
    free(x), free(y), free(q), free(b);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
#ifdef GDN_COUNTED
        cmocka_unit_test(test_allocations),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
