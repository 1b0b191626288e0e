#include "tests/dist/checkpoint/saved.h"

#include <string.h>
#include <unistd.h>

struct mesh mesh;

int set_up(void) {
    return mesh_create(axes_of(1, test_ranks, 1).size, &mesh);
}

void tear_down(void) {
    mesh_free(&mesh);
}

void barrier(void) {
    MPI_Barrier(mesh.world);
}

void save(const char *directory, const struct sample *sample, int64_t step, double loss, double best,
          int keep) {
    struct checkpoint_info info = sample_info(step, loss, best);
    int status = sample_save(&mesh, directory, sample, &info, keep);
    assert_string_equal(gdn_failure(), "");
    assert_int_equal(status, 0);
}

bool there(const char *path) {
    return !access(path, F_OK);
}

const char *file_of(const char *directory, int step) {
    return format("%s/checkpoints/step_%08d/checkpoint.h5", directory, step);
}

int load_initial(const char *path, struct sample *sample, int *missing) {
    struct checkpoint_content content = sample_content(sample);
    return checkpoint_load_initial(&mesh, path, &content, missing);
}

void assert_refused(int status, const char *word) {
    assert_int_equal(status, GDN_INPUT);
    if (!strstr(gdn_failure(), word)) fail_msg("'%s' is not in: %s", word, gdn_failure());
    gdn_failure_clear();
}
