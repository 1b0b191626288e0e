#include "dist/checkpoint/intact.h"

#include "dist/checkpoint/file.h"
#include "dist/checkpoint/folder.h"
#include "kernels/base/status.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A file as it was when it was looked at. Of checkpoints in several files that is checkpoint.h5. */
struct known {
    dev_t device;
    ino_t file;
    struct timespec changed;
    off_t bytes;
    bool intact;
};

enum { MAX = 256 }; /* the oldest are forgotten, and verified again where asked for */

static struct known known[MAX];
static int64_t noted;
static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* the thread that saves need not be the one that opens */

static bool same(const struct known *a, const struct known *b) {
    return a->device == b->device && a->file == b->file && a->bytes == b->bytes &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static bool look(const char *path, struct known *out) {
    struct stat about;
    if (stat(path, &about)) return false;
    *out = (struct known){
        .device = about.st_dev, .file = about.st_ino, .changed = about.st_mtim, .bytes = about.st_size};
    return true;
}

static void note(const struct known *file) {
    pthread_mutex_lock(&lock);
    known[noted++ % MAX] = *file;
    pthread_mutex_unlock(&lock);
}

/* The newest note counts. */
static bool find(const struct known *file, bool *intact) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int64_t i = noted - 1; i >= 0 && i >= noted - MAX && !found; i--)
        if (same(&known[i % MAX], file)) *intact = known[i % MAX].intact, found = true;
    pthread_mutex_unlock(&lock);
    return found;
}

static bool path_of(const char *folder, int64_t step, char path[4096]) {
    char name[FOLDER_NAME];
    folder_step_name(step, name);
    int length = snprintf(path, 4096, "%s/%s/%s", folder, name, CHECKPOINT_FILE);
    return length > 0 && length < 4096;
}

void checkpoint_note_file(const char *path) {
    struct known file;
    if (!look(path, &file)) return;
    file.intact = true;
    note(&file);
}

void checkpoint_note_intact(const char *folder, int64_t step) {
    char path[4096];
    if (path_of(folder, step, path)) checkpoint_note_file(path);
}

bool checkpoint_is_intact(const char *folder, int64_t step) {
    char path[4096];
    struct known file;
    if (!path_of(folder, step, path) || !look(path, &file)) return false;
    if (find(&file, &file.intact)) return file.intact;
    struct mesh alone = mesh_alone();
    struct file_group group = file_group_all(&alone);
    file.intact = !file_verify(&group, path);
    gdn_failure_clear(); /* nothing was recorded before: this is the end of a save that succeeded */
    note(&file);
    return file.intact;
}
