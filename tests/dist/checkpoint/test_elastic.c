/* Elastic checkpoints: what one mesh has saved, any other loads, every element in its place. All tensors and
 * moments hold a function of (tensor, group, global index), so that a layer or shard in a wrong place shows.
 * Runs on as many ranks as it is given: 1, 2, 4, 8 and 16 have every mesh. Meshes of fewer ranks use the
 * first of them, larger ones are left out. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/dist/checkpoint/sample.h"
#include "tests/dist/checkpoint/share.h"
#include "tests/support/scratch.h"
#include "tests/support/world.h"

/* A barrier in which those who wait sleep: there are fewer cores than ranks. */
static void wait_for_all(void) {
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(world.world, &request);
    while (!done) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done) usleep(200);
    }
}

static const char *folder_of(const char *folder, int model, int spot) {
    return format("%s/%d-%d", folder, model, spot);
}

static const char *file_of(const char *folder, int model, int spot) {
    return format("%s/checkpoints/step_00000005/checkpoint.h5", folder_of(folder, model, spot));
}

static void save_on(const char *folder, int model, int spot, struct share *s) {
    if (!on(&spots[spot])) return;
    struct checkpoint_content content = content_of(s);
    struct checkpoint_info info = sample_info(5, 1.5, 1.25);
    clear(s);
    each_value(s, true);
    int status = checkpoint_save(s->mesh, folder_of(folder, model, spot), &content, &info,
                                 &(struct checkpoint_keep){0}, spots[spot].files);
    assert_string_equal(gdn_failure(), "");
    assert_int_equal(status, 0);
}

static void load_on(const char *folder, int model, int from, int to, struct share *s) {
    if (!on(&spots[to])) return;
    struct checkpoint checkpoint;
    struct checkpoint_content content = content_of(s);
    clear(s);
    int status = checkpoint_open(s->mesh, file_of(folder, model, from), &checkpoint);
    if (!status) status = checkpoint_load(s->mesh, &checkpoint, &content);
    assert_string_equal(gdn_failure(), "");
    assert_int_equal(status, 0);
    checkpoint_close(&checkpoint);
    long wrong = each_value(s, false);
    if (wrong)
        fail_msg("rank %d: %ld wrong elements, from mesh %s to %s, model %d", world.rank, wrong,
                 spots[from].name, spots[to].name, model);
}

/* Weights alone, as starting weights. */
static void start_on(const char *folder, int model, int from, int to, struct share *s) {
    if (!on(&spots[to])) return;
    struct checkpoint_content content = content_of(s);
    int missing;
    each_value(s, true); /* moments are to stay */
    fill(s->state.weight, s->table.total, (real)NAN);
    int status = checkpoint_load_initial(s->mesh, file_of(folder, model, from), &content, &missing);
    assert_int_equal(status + missing, 0);
    assert_int_equal(each_value(s, false), 0);
}

/* Each mesh's file has the same datasets as that of one rank. */
static void compare_with_one(const char *folder, int model, int spot) {
    char text[512] = "";
    FILE *out = tmpfile();
    bool same = false;
    int status = checkpoint_diff(file_of(folder, model, 0), file_of(folder, model, spot), &same, out);
    rewind(out);
    text[fread(text, 1, sizeof text - 1, out)] = 0;
    fclose(out);
    if (status || !same) fail_msg("mesh %s, model %d: %s%s", spots[spot].name, model, gdn_failure(), text);
}

/* The spot that is `by` behind one, of those that these ranks can be. */
static int behind(int spot, int by) {
    int all = 0;
    while (all < SPOTS && fits(&spots[all])) all++;
    return (spot + by) % all;
}

/* With the argument `all` every pair of meshes for the first model. Else each mesh's file is loaded on two
 * others (four ranks) or on one, which is enough where files are alike but for how they are stored
 * (compare_with_one). Meshes that half of the ranks can be are tried among themselves with fewer ranks. */
static bool every_pair;

static bool tried(int model, int from, int to) {
    bool small = size_of(&spots[from]) <= world.size / 2 && size_of(&spots[to]) <= world.size / 2;
    if (!fits(&spots[from]) || !fits(&spots[to])) return false;
    if (every_pair && model == 0) return true;
    if (small && !every_pair) return false;
    return to == behind(from, 1) || (to == behind(from, 7) && (every_pair || world.size == 4));
}

/* The first saves always: others' files are compared with its. */
static bool saved(int model, int from) {
    bool any = from == 0;
    for (int to = 0; to < SPOTS && !any; to++) any = tried(model, from, to);
    return any;
}

static void any_to_any(void **unused) {
    (void)unused;
    char *folder = scratch_folder();
    for (int m = 0; m < MODELS; m++) {
        struct share *shares[SPOTS];
        for (int i = 0; i < SPOTS; i++) shares[i] = share_new(&spots[i], &models[m]);
        for (int from = 0; from < SPOTS; from++) {
            if (!saved(m, from)) continue;
            if (world.rank == 0) mkdir(folder_of(folder, m, from), 0777);
            save_on(folder, m, from, shares[from]);
            if (world.rank == 0) compare_with_one(folder, m, from);
            wait_for_all();
            for (int to = 0; to < SPOTS; to++)
                if (tried(m, from, to)) load_on(folder, m, from, to, shares[to]);
            int to = behind(from, 2);
            if (m == 0 && tried(m, from, behind(from, 1))) start_on(folder, m, from, to, shares[to]);
        }
        for (int i = 0; i < SPOTS; i++) share_free(shares[i]);
    }
    free(folder);
}

/* Every rank holds the whole model, as for evaluation: rank 0 alone writes it, all read it. */
static void whole_on_every_rank(void **unused) {
    (void)unused;
    char *folder = scratch_folder();
    struct share *s = share_new(&spots[0], &models[0]);
    struct table global;
    assert_int_equal(params_create(&models[0], NULL, &global), 0);
    struct state state = {.weight = room(global.total)};
    struct checkpoint_content content = {.global = &global, .table = &global, .state = &state};
    struct checkpoint_info info = sample_info(5, 1.5, 1.25);
    for (int i = 0; i < global.rows; i++)
        for (long j = 0; j < global.row[i].count; j++)
            state.weight[global.row[i].offset + j] = value(&global.row[i], 0, j);
    assert_int_equal(
        checkpoint_save(&world, folder, &content, &info, &(struct checkpoint_keep){0}, FILES_ONE), 0);
    memset(state.weight, 0, (size_t)global.total * sizeof(real));
    struct checkpoint found;
    assert_int_equal(checkpoint_find(&world, folder, NULL, &found), 0);
    assert_non_null(found.path);
    assert_int_equal(checkpoint_load(&world, &found, &content), 0);
    checkpoint_close(&found);
    for (int i = 0; i < global.rows; i++)
        for (long j = 0; j < global.row[i].count; j++)
            assert_true(state.weight[global.row[i].offset + j] == value(&global.row[i], 0, j));
    free(state.weight);
    params_free(&global);
    share_free(s);
    free(folder);
}

/* A tensor that no rank would write, and one that two would, are noticed before anything is written. */
static void not_a_partition(void **unused) {
    (void)unused;
    char *folder = scratch_folder();
    for (int extra = 0; extra < 2; extra++) {
        struct share *s = share_new(&spots[0], &models[1]);
        if (on(&spots[0])) {
            struct checkpoint_content content = content_of(s);
            struct checkpoint_info info = sample_info(5, 1.5, 1.25);
            each_value(s, true);
            s->table.row[3].counted = extra;
            if (extra) s->shards.piece[0] = s->shards.piece[1];
            assert_int_equal(
                checkpoint_save(s->mesh, folder, &content, &info, &(struct checkpoint_keep){0}, FILES_ONE),
                GDN_INTERNAL);
            assert_non_null(strstr(gdn_failure(), "elements to save of tensor "));
            gdn_failure_clear();
            assert_false(checkpoint_any(folder));
        }
        share_free(s);
    }
    free(folder);
}

static int set_up(void) {
    TRY(world_create());
    for (int i = 0; i < SPOTS; i++) make_mesh(&spots[i], &meshes_of_spots[i]);
    return 0;
}

static void tear_down(void) {
    for (int i = 0; i < SPOTS; i++)
        if (on(&spots[i])) mesh_free(&meshes_of_spots[i]);
    world_free();
}

int rank_main(void) {
    every_pair = test_argument(1) && !strcmp(test_argument(1), "all");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_to_any),
        cmocka_unit_test(whole_on_every_rank),
        cmocka_unit_test(not_a_partition),
    };
    return run_on_ranks(tests, set_up, tear_down);
}
