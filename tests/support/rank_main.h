/* The main function of test programs that use MPI. Such a program has rank_main in place of main:
 *
 *     static struct mesh mesh;
 *     static int set_up(void) { return mesh_create(0, 1, 1, &mesh); }
 *     static void tear_down(void) { mesh_free(&mesh); }
 *
 *     int rank_main(void) {
 *         const struct CMUnitTest tests[] = {cmocka_unit_test(sums), cmocka_unit_test(maxima)};
 *         return run_on_ranks(tests, set_up, tear_down);
 *     }
 *
 * All ranks run the same tests in the same order. What fails on one rank fails on all: they agree after the
 * set-up, after every test and at the end. A rank that has failed while others wait for it inside the test
 * ends the job; so does a rank that leaves before the end. Tests on ranks do not call skip(). */
#ifndef GDN_TEST_RANK_MAIN_H
#define GDN_TEST_RANK_MAIN_H

#include "tests/support/unit.h"

/* The program's own: called on every rank between MPI's beginning and end. 0, or not where anything failed on
 * this rank. */
int rank_main(void);

/* The program's argument `i`, from 1; NULL where there are fewer. */
const char *test_argument(int i);

/* This rank and their number, from the beginning of rank_main. */
extern int test_rank, test_ranks;

/* Runs a list of tests; returns the number that failed, the same on all ranks. `set_up` before the first
 * returns 0 or a status (gdn_failure() is printed), `tear_down` follows the last; each may be NULL.
 * Collective. */
#define run_on_ranks(tests, set_up, tear_down)                                                               \
    run_list_on_ranks(#tests, tests, sizeof(tests) / sizeof *(tests), set_up, tear_down)
int run_list_on_ranks(const char *name, const struct CMUnitTest *tests, size_t count, int (*set_up)(void),
                      void (*tear_down)(void));

#endif
