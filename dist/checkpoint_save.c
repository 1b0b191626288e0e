/* Saving: complete or invisible. Everything is written and synced under names that begin with a dot, read
 * back and checked, and then becomes visible by renames alone, which need no space; a rename that fails takes
 * back those before. */
#include "dist/checkpoint_file.h"
#include "dist/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct save {
    const char *path; /* of the folder `checkpoints` */
    int folder;
    int64_t step;
    char name[FOLDER_NAME], prepared[FOLDER_NAME];
    bool best;
};

static int failed(const struct save *save, int error) {
    return gdn_fail(GDN_INTERNAL, "checkpoint %s/%s cannot be saved: %s", save->path, save->name,
                    strerror(error));
}

static int sync_directory(int folder, const char *name) {
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int error = fsync(fd) ? errno : 0;
    close(fd);
    return error;
}

/* Writes and checks the checkpoint in its temporary directory, and prepares the pointers. */
static int prepare(const struct save *save, const struct table *table, const struct state *state,
                   const struct checkpoint_info *info) {
    if (mkdirat(save->folder, save->prepared, 0777)) return failed(save, errno);
    char *file;
    if (asprintf(&file, "%s/%s/%s", save->path, save->prepared, CHECKPOINT_FILE) < 0)
        return failed(save, ENOMEM);
    struct file_size size;
    int status = file_write(file, table, state, info);
    if (!status) status = file_check_all(file, &size) ? GDN_INTERNAL : 0;
    free(file);
    if (status) return status;
    int error = sync_directory(save->folder, save->prepared);
    if (!error) error = folder_prepare_pointer(save->folder, "latest", save->step);
    if (!error && save->best) error = folder_prepare_pointer(save->folder, "best", save->step);
    return error ? failed(save, error) : 0;
}

/* Makes the checkpoint, `latest` and `best` visible, or nothing. */
static int publish(const struct save *save) {
    const char *names[] = {save->name, "latest", "best"};
    bool replaced[3];
    int count = save->best ? 3 : 2, done = 0, error = 0;
    for (; done < count && !error; done += !error)
        error = folder_publish(save->folder, names[done], &replaced[done]);
    if (!error && fsync(save->folder)) error = errno;
    if (!error) return 0;
    while (done-- > 0) folder_take_back(save->folder, names[done], replaced[done]);
    return failed(save, error);
}

/* Keeps the `keep` newest and those that `latest` and `best` name. One that cannot be removed is no reason to
 * stop a training whose checkpoint is safe: the next save tries again. */
static void prune(int folder, int keep) {
    int64_t *steps, latest = folder_pointer(folder, "latest"), best = folder_pointer(folder, "best");
    int count;
    if (keep <= 0 || folder_list(folder, &steps, &count)) return;
    for (int i = keep; i < count; i++)
        if (steps[i] != latest && steps[i] != best) folder_remove_step(folder, steps[i]);
    free(steps);
}

/* Opens the folder, making it where it is not there. */
static int open_folder(const char *directory, const char *path, bool *made, int *folder) {
    *made = !mkdir(path, 0777);
    if (!*made && errno != EEXIST)
        return gdn_fail(GDN_INTERNAL, "%s cannot be made: %s", path, strerror(errno));
    *folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0) return gdn_fail(GDN_INTERNAL, "%s cannot be opened: %s", path, strerror(errno));
    int error = *made ? sync_directory(AT_FDCWD, directory) : 0;
    if (!error) return 0;
    close(*folder);
    rmdir(path);
    return gdn_fail(GDN_INTERNAL, "%s cannot be synced: %s", directory, strerror(error));
}

static int save_here(const char *directory, const struct table *table, const struct state *state,
                     const struct checkpoint_info *info, int keep) {
    char *path;
    bool made;
    if (asprintf(&path, "%s/checkpoints", directory) < 0)
        return gdn_fail(GDN_INTERNAL, "out of memory for a path");
    struct save save = {.path = path, .step = info->step};
    save.best = !isnan(info->loss) && !(info->loss > info->best_loss);
    folder_step_name(info->step, save.name);
    folder_temporary(save.name, save.prepared);
    int status = open_folder(directory, path, &made, &save.folder);
    if (!status) {
        folder_clean_up(save.folder);
        status = prepare(&save, table, state, info);
        if (!status) status = publish(&save);
        if (!status) prune(save.folder, keep);
        folder_clean_up(save.folder); /* what failed, or what was replaced */
        close(save.folder);
        if (status && made) rmdir(path);
    }
    free(path);
    return status;
}

int checkpoint_save(const struct mesh *mesh, const char *directory, const struct table *table,
                    const struct state *state, const struct checkpoint_info *info, int keep) {
    return mesh_agree(mesh, mesh->rank == 0 ? save_here(directory, table, state, info, keep) : 0);
}
