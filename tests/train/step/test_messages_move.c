/* While a stage computes, its messages move on: between the layers of its passes it looks after those under
 * way. */
#include "tests/train/run/mesh_fixture.h"
#include "tests/train/step/boundary_case.h"
#include "tests/train/step/outcome.h"

/* How often MPI was asked after something under way, without waiting for it. */
static int asked;
int MPI_Testall(int count, MPI_Request *request, int *flag, MPI_Status *status) {
    asked++;
    return PMPI_Testall(count, request, flag, status);
}

static int asked_in_first_step(const struct mesh_case *c) {
    struct run run;
    struct overrides o;
    overrides_fill(&o, c);
    assert_int_equal(prepared(&run, base, &o), 0);
    assert_int_equal(readied(&run), 0);
    const struct loss_options options = {.target_weight = 1.0 / 96};
    struct step step = {.rows = run.data.rows, .sequences = run.part.share, .options = &options};
    asked = 0;
    struct outcome out = outcome_of(&run, &step);
    free(out.gradient);
    return asked;
}

/* Two stages of four layers, eight micro-batches: either has a message under way in nearly every pass. */
static void stages_look_after_messages(void **state) {
    (void)state;
    enum { LAYERS = 4, MICRO_BATCHES = 8 };
    int seen = asked_in_first_step(&(struct mesh_case){{1, 1, 2}, {NULL}});
    if (seen < LAYERS * MICRO_BATCHES) fail_msg("MPI was asked %d times", seen);
    assert_int_equal(asked_in_first_step(&(struct mesh_case){{1, 2, 1}, {NULL}}), 0); /* where nothing is */
}

int rank_main(void) {
    struct CMUnitTest tests[] = {cmocka_unit_test(stages_look_after_messages)};
    return run_list_on_ranks("messages_move", tests, 1, world_with_text, world_free);
}
