/* Checkpoints and other HDF5 files with weights. An input is a file, with or without the 512 bytes that hold
 * the digest.
 *
 * As it is, it is a file of starting weights (checkpoint.init_from) and one to compare. The digest stops
 * nearly everything else, so it is made anew, as somebody who means harm would; then the file is the
 * checkpoint of a run that is listed, verified, resumed from and compared. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dist/checkpoint/checkpoint.h"
#include "dist/checkpoint/file_group.h"
#include "dist/checkpoint/digest.h"
#include "h5_mutate.h"
#include "harness.h"
#include "tiny_model.h"
#include "train/config/config.h"

#define STEP "run/checkpoints/step_00000007/"
#define PART "part_00000.h5" /* what a checkpoint in one file a node joins */

enum { LINES = 5, MATCH_LINES = 100 };

static struct mesh mesh;

static void copy(const char *from, const char *name) {
    char bytes[1 << 16];
    FILE *file = fopen(from, "rb");
    fuzz_check(file != NULL, from);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    fuzz_write(name, bytes, size);
}

static void set_up(void) {
    static const char *const folders[] = {"run", "run/checkpoints", STEP};
    mesh = mesh_alone();
    for (int i = 0; i < 3; i++) fuzz_check(!mkdir(fuzz_path(folders[i]), 0700), folders[i]);
    copy(FUZZ_SEEDS "/" PART, STEP PART);
    copy(FUZZ_SEEDS "/checkpoint/one", "reference.h5");
}

/* As a run that resumes does, and one that generates. */
static void read_configuration(const char *text) {
    static struct config defaults;
    static bool known;
    struct config config;
    if (!known)
        fuzz_check(!config_parse("train: {steps: 1}", "default", NULL, 0, &defaults), "a configuration");
    known = true;
    fuzz_status(config_match_resume(&defaults, text), MATCH_LINES, "config_match_resume");
    if (fuzz_status(config_parse(text, "saved", NULL, 0, &config), LINES, "config_parse"))
        config_free(&config);
}

static void load_initial(const char *path) {
    struct checkpoint_content content = tiny_model();
    int missing = 0;
    fuzz_status(checkpoint_load_initial(&mesh, path, &content, &missing), 1, "checkpoint_load_initial");
}

static void resume(void) {
    struct checkpoint checkpoint;
    struct checkpoint_content content = tiny_model();
    if (!fuzz_status(checkpoint_find(&mesh, fuzz_path("run"), fuzz_nowhere(), &checkpoint), 1,
                     "checkpoint_find"))
        return;
    fuzz_check(checkpoint.path && checkpoint.info.config, "checkpoint_find finds nothing");
    fuzz_status(checkpoint_load(&mesh, &checkpoint, &content), 1, "checkpoint_load");
    read_configuration(checkpoint.info.config);
    checkpoint_close(&checkpoint);
}

static int look_at(void *context, const struct checkpoint_entry *entry) {
    (void)context;
    fuzz_check(!entry->info != !entry->damage, "an entry is whole or damaged");
    return 0;
}

static void compare(const char *a, const char *b) {
    bool same;
    fuzz_status(checkpoint_diff(a, b, &same, fuzz_nowhere()), 1, "checkpoint_diff");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char zeros[DIGEST_BYTES];
    char hash[DIGEST_HASH], *file;
    bool with_digest = size >= DIGEST_BYTES && !memcmp(data, "gdn checkpoint\n", 15);
    if (!mesh.size) set_up();

    fuzz_write(STEP "given.h5", data, size);
    load_initial(fuzz_path(STEP "given.h5"));
    compare(fuzz_path(STEP "given.h5"), fuzz_path("reference.h5"));

    size_t left = with_digest ? size - DIGEST_BYTES : size;
    struct file_group group = file_group_all(&mesh);
    const char *path = fuzz_path(STEP "checkpoint.h5");
    if (with_digest) { /* the digest itself is read */
        fuzz_write(STEP "checkpoint.h5", data, size);
        resume();
    }
    file = malloc(left + DIGEST_BYTES);
    fuzz_check(file != NULL, "memory");
    memcpy(file, zeros, DIGEST_BYTES);
    memcpy(file + DIGEST_BYTES, data + size - left, left);
    fuzz_write(STEP "checkpoint.h5", file, left + DIGEST_BYTES);
    free(file);
    fuzz_check(!digest_write(&group, path, hash), "digest_write");
    resume();
    fuzz_status(checkpoint_verify(path, fuzz_nowhere()), 1, "checkpoint_verify");
    fuzz_status(checkpoint_each(fuzz_path("run"), look_at, NULL), 1, "checkpoint_each");
    load_initial(path);
    compare(fuzz_path("reference.h5"), path);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
    bool with_digest = size > DIGEST_BYTES && !memcmp(data, "gdn checkpoint\n", 15);
    if (!with_digest) return h5_mutate(data, size, max, seed);
    if (seed % 4 == 0 || max <= DIGEST_BYTES) return h5_mutate_plainly(data, size, max);
    return DIGEST_BYTES + h5_mutate(data + DIGEST_BYTES, size - DIGEST_BYTES, max - DIGEST_BYTES, seed / 4);
}
