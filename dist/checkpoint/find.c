/* From what is given to the checkpoint.h5 that is meant. */
#include "dist/checkpoint/file.h"
#include "dist/checkpoint/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int out_of_memory(void) {
    return gdn_fail(GDN_INTERNAL, "out of memory for a path");
}

/* Opens `directory`/checkpoints; *folder is −1 where there is none. */
static int open_folder(const char *directory, int *folder) {
    char *path;
    if (asprintf(&path, "%s/checkpoints", directory) < 0) return out_of_memory();
    *folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = 0;
    if (*folder < 0 && errno != ENOENT)
        status = gdn_fail(GDN_INPUT, "%s cannot be read: %s", path, strerror(errno));
    free(path);
    return status;
}

/* Tries the checkpoints from the newest on. */
static int find_intact(const struct mesh *mesh, const char *directory, const int64_t *steps, int count,
                       FILE *log, struct checkpoint *out) {
    char newest[1024] = "";
    for (int i = 0; i < count; i++) {
        char name[FOLDER_NAME], *path;
        folder_step_name(steps[i], name);
        if (asprintf(&path, "%s/checkpoints/%s/%s", directory, name, CHECKPOINT_FILE) < 0) path = NULL;
        int status = mesh_agree(mesh, path ? 0 : out_of_memory());
        if (!status) status = checkpoint_open(mesh, path, out);
        free(path);
        out->skipped = i;
        if (status != GDN_INPUT) return status;
        if (log && mesh->rank == 0)
            fprintf(log, "warning: checkpoint %s is skipped: %s\n", name, gdn_failure());
        if (!*newest) snprintf(newest, sizeof newest, "%s", gdn_failure());
        gdn_failure_clear();
    }
    if (!count) return 0;
    return gdn_fail(GDN_INPUT, "none of the %d checkpoints in %s/checkpoints is whole; of the newest: %s",
                    count, directory, newest);
}

/* Warns of a line that does not name what it should. */
static void tell_doubt(int folder, const char *directory, FILE *log) {
    bool doubtful;
    int64_t step = folder_pointer(folder, "latest", &doubtful);
    if (doubtful && log)
        fprintf(log,
                "warning: %s/checkpoints/latest is damaged or was changed: step_%08" PRId64
                " is the one marked as the latest, and is taken; --resume PATH goes on from another\n",
                directory, step);
}

/* The steps that there are, on rank 0. */
static int list_here(const char *directory, FILE *log, int64_t **steps, int *count) {
    int folder = -1;
    TRY(open_folder(directory, &folder));
    if (folder < 0) return 0;
    tell_doubt(folder, directory, log);
    int error = folder_list(folder, steps, count);
    close(folder);
    return error ? gdn_fail(GDN_INPUT, "%s/checkpoints cannot be read: %s", directory, strerror(error)) : 0;
}

int checkpoint_clean_up(const char *directory) {
    int folder = -1;
    TRY(open_folder(directory, &folder));
    if (folder < 0) return 0;
    folder_clean_up(folder);
    close(folder);
    return 0;
}

int checkpoint_find(const struct mesh *mesh, const char *directory, FILE *log, struct checkpoint *out) {
    int64_t *steps = NULL;
    int count = 0;
    *out = (struct checkpoint){0};
    TRY(mesh_agree(mesh, mesh->rank == 0 ? list_here(directory, log, &steps, &count) : 0));
    int status = mesh_broadcast(mesh, &count, sizeof count);
    if (!status && mesh->rank != 0) steps = malloc((size_t)(count + 1) * sizeof *steps);
    if (!status) status = mesh_agree(mesh, steps || !count ? 0 : out_of_memory());
    if (!status) status = mesh_broadcast(mesh, steps, count * (long)sizeof *steps);
    if (!status) status = find_intact(mesh, directory, steps, count, log, out);
    free(steps);
    return status;
}

bool checkpoint_any(const char *directory) {
    int folder, count = 0;
    int64_t *steps;
    char *path;
    if (asprintf(&path, "%s/checkpoints", directory) < 0) return false;
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(path);
    if (folder < 0) return false;
    if (!folder_list(folder, &steps, &count)) free(steps);
    close(folder);
    return count > 0;
}

static bool is_kind(const char *path, mode_t kind) {
    struct stat about;
    return !stat(path, &about) && (about.st_mode & S_IFMT) == kind;
}

/* The path of the newest checkpoint in a folder `checkpoints`; NULL where there is none. */
static int newest_in(const char *checkpoints, char **path) {
    int64_t *steps;
    int count, status = 0;
    *path = NULL;
    int folder = open(checkpoints, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return 0;
    int error = folder_list(folder, &steps, &count);
    close(folder);
    if (error) return gdn_fail(GDN_INPUT, "%s cannot be read: %s", checkpoints, strerror(error));
    if (count) {
        char name[FOLDER_NAME];
        folder_step_name(steps[0], name);
        if (asprintf(path, "%s/%s/%s", checkpoints, name, CHECKPOINT_FILE) < 0)
            *path = NULL, status = out_of_memory();
    }
    free(steps);
    return status;
}

/* The checkpoint that a file `latest` or `best` names; NULL where `given` is no such file. */
static int named_by(const char *given, char **path) {
    const char *slash = strrchr(given, '/'), *pointer = slash ? slash + 1 : given;
    *path = NULL;
    if (strcmp(pointer, "latest") && strcmp(pointer, "best")) return 0;
    char *place, name[FOLDER_NAME];
    if (asprintf(&place, "%.*s.", (int)(pointer - given), given) < 0) return out_of_memory();
    int folder = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int64_t step = folder < 0 ? -1 : folder_pointer(folder, pointer, NULL);
    if (folder >= 0) close(folder);
    free(place);
    if (step < 0) return 0;
    folder_step_name(step, name);
    return asprintf(path, "%.*s%s/%s", (int)(pointer - given), given, name, CHECKPOINT_FILE) < 0
               ? out_of_memory()
               : 0;
}

int checkpoint_resolve(const char *given, char **path) {
    *path = NULL;
    if (is_kind(given, S_IFREG)) {
        TRY(named_by(given, path));
        if (!*path && !(*path = strdup(given))) return out_of_memory();
        return 0;
    }
    if (!is_kind(given, S_IFDIR))
        return gdn_fail(GDN_INPUT,
                        "%s: %s; a checkpoint.h5, a step_N directory or a run directory is expected", given,
                        access(given, F_OK) ? strerror(errno) : "is neither a file nor a directory");
    if (asprintf(path, "%s/%s", given, CHECKPOINT_FILE) < 0) return out_of_memory();
    if (is_kind(*path, S_IFREG)) return 0;
    free(*path);
    TRY(newest_in(given, path)); /* the folder `checkpoints` itself */
    if (*path) return 0;
    char *checkpoints;
    if (asprintf(&checkpoints, "%s/checkpoints", given) < 0) return out_of_memory();
    int status = newest_in(checkpoints, path);
    free(checkpoints);
    if (status || *path) return status;
    return gdn_fail(GDN_INPUT,
                    "%s has no checkpoint: neither %s/checkpoint.h5 nor %s/checkpoints/step_N is there",
                    given, given, given);
}
