#include "tests/support/rank_main.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/base/status.h"
#include "tests/support/backend.h"
#include "tests/support/scratch.h"

int test_rank, test_ranks = 1;

enum { GRACE = 20 }; /* seconds that others have to end a test that this rank has failed */

static MPI_Comm everyone; /* no test sends anything on it */
static pid_t started;     /* this process; 0: the end has been reached */

/* In how many ranks has something failed? A rank that failed does not wait for long: the others may be
 * waiting for it inside the test. They sleep meanwhile, as there are fewer cores than ranks. */
static int agree(bool failed) {
    int mine = failed, all = 0, done = 0;
    MPI_Request request;
    MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, everyone, &request);
    double begin = MPI_Wtime();
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    while (!done) {
        usleep(200);
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done || !failed || MPI_Wtime() - begin < GRACE) continue;
        fprintf(stderr, "rank %d has failed, and the others do not get to the end of the test\n", test_rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return all;
}

/* A test of the list, run on this rank. */
struct one {
    const struct CMUnitTest *test;
    void *state;
    bool passed;
};

static void run_one(void **state) {
    struct one *one = *state;
    one->state = one->test->initial_state;
    if (one->test->setup_func) assert_int_equal(one->test->setup_func(&one->state), 0);
    one->test->test_func(&one->state);
    one->passed = true; /* not reached when an assertion fails */
}

/* cmocka calls this after a test that failed, too. */
static int after_one(void **state) {
    struct one *one = *state;
    int status = one->test->teardown_func ? one->test->teardown_func(&one->state) : 0;
    int failed = agree(!one->passed || status);
    if (failed && one->passed && !status)
        print_error("%s: failed on %d of %d ranks, not on rank %d\n", one->test->name, failed, test_ranks,
                    test_rank);
    return failed && one->passed; /* what failed by itself is counted already */
}

int run_list_on_ranks(const char *name, const struct CMUnitTest *tests, size_t count, int (*set_up)(void),
                      void (*tear_down)(void)) {
    struct one *ones = calloc(count + 1, sizeof *ones);
    struct CMUnitTest *list = calloc(count + 1, sizeof *list);
    int failed = 0, status = !ones || !list || (set_up && set_up());
    if (status) fprintf(stderr, "rank %d: %s\n", test_rank, gdn_failure());
    if (agree(status)) {
        failed = 1;
    } else {
        for (size_t i = 0; i < count; i++) {
            ones[i].test = &tests[i];
            list[i] = (struct CMUnitTest){tests[i].name, run_one, NULL, after_one, &ones[i]};
        }
        failed = _cmocka_run_group_tests(name, list, count, NULL, NULL);
    }
    if (tear_down) tear_down();
    free(ones);
    free(list);
    return failed;
}

/* exit() before the end is a failure, whatever its status. */
static void left_early(void) {
    if (started != getpid()) return;
    fprintf(stderr, "rank %d left before the end\n", test_rank);
    fflush(NULL);
    _exit(1);
}

static int arguments;
static char **argument;

const char *test_argument(int i) {
    return i < arguments ? argument[i] : NULL;
}

int main(int argc, char **argv) {
    int provided;
    char folder[SCRATCH_LONGEST];
    test_backend_check(); /* may leave as a skipped test, which MPI would not understand */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    arguments = argc, argument = argv;
    started = getpid();
    atexit(left_early);
    MPI_Comm_dup(MPI_COMM_WORLD, &everyone);
    MPI_Comm_rank(everyone, &test_rank);
    MPI_Comm_size(everyone, &test_ranks);
    if (test_rank == 0) snprintf(folder, sizeof folder, "%s", scratch());
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, everyone);
    if (test_rank != 0) scratch_join(folder);
    int failed = agree(rank_main() != 0);
    MPI_Comm_free(&everyone);
    MPI_Finalize();
    started = 0;
    return failed != 0;
}
