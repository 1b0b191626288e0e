#include "dist/checkpoint/folder.h"

#include "kernels/base/write_whole.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void folder_step_name(int64_t step, char name[FOLDER_NAME]) {
    snprintf(name, FOLDER_NAME, "step_%08" PRId64, step);
}

int64_t folder_step(const char *name) {
    char right[FOLDER_NAME];
    if (strncmp(name, "step_", 5)) return -1;
    errno = 0;
    int64_t step = strtoll(name + 5, NULL, 10);
    if (errno || step < 0) return -1;
    folder_step_name(step, right);
    return strcmp(name, right) ? -1 : step;
}

/* The step that the line names. */
static int64_t read_pointer(int folder, const char *pointer) {
    char name[FOLDER_NAME] = {0};
    int fd = openat(folder, pointer, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -1;
    ssize_t n = read(fd, name, sizeof name - 1);
    close(fd);
    if (n <= 0) return -1;
    name[strcspn(name, "\n")] = 0;
    return folder_step(name);
}

/* A stream over the folder that does not close its descriptor. */
static DIR *open_stream(int folder) {
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !stream) close(fd);
    return stream;
}

/* ------------------------------------------------------------------------------------------------ marks */

static void mark_name(const char *directory, const char *pointer, char out[2 * FOLDER_NAME]) {
    snprintf(out, 2 * FOLDER_NAME, "%.*s/%.*s", FOLDER_NAME, directory, FOLDER_NAME - 2, pointer);
}

int folder_mark(int folder, const char *directory, const char *pointer) {
    char mark[2 * FOLDER_NAME];
    mark_name(directory, pointer, mark);
    int fd = openat(folder, mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    return fd < 0 || close(fd) ? errno : 0;
}

void folder_unmark(int folder, const char *pointer, int64_t but) {
    DIR *stream = open_stream(folder);
    char mark[2 * FOLDER_NAME];
    if (!stream) return;
    for (struct dirent *entry; (entry = readdir(stream));) {
        int64_t step = folder_step(entry->d_name);
        if (step < 0 || step == but) continue;
        mark_name(entry->d_name, pointer, mark);
        unlinkat(folder, mark, 0);
    }
    closedir(stream);
}

int64_t folder_pointer(int folder, const char *pointer, bool *doubtful) {
    int64_t named = read_pointer(folder, pointer), newest = -1;
    DIR *stream = open_stream(folder);
    bool right = false;
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        char mark[2 * FOLDER_NAME];
        int64_t step = folder_step(entry->d_name);
        if (step < 0) continue;
        mark_name(entry->d_name, pointer, mark);
        if (faccessat(folder, mark, F_OK, 0)) continue;
        right |= step == named;
        if (step > newest) newest = step;
    }
    if (stream) closedir(stream);
    if (newest < 0) right = true;
    if (doubtful) *doubtful = !right;
    return right ? named : newest;
}

/* ------------------------------------------------------------------------------------------------ order */

/* Up to `latest` descending, then the ones above it descending. */
static int newest_first(const void *a, const void *b, void *latest) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b, max = *(const int64_t *)latest;
    bool x_above = x > max, y_above = y > max;
    if (x_above != y_above) return x_above ? 1 : -1;
    return x < y ? 1 : x > y ? -1 : 0;
}

static bool is_among(int64_t step, const int64_t *steps, int count) {
    for (int i = 0; i < count; i++)
        if (steps[i] == step) return true;
    return false;
}

int folder_list(int folder, int64_t **steps, int *count) {
    *steps = NULL, *count = 0;
    DIR *stream = open_stream(folder);
    if (!stream) return errno;
    int room = 0, error = 0;
    for (struct dirent *entry; !error && (entry = readdir(stream));) {
        int64_t step = folder_step(entry->d_name);
        if (step < 0) continue;
        if (*count == room) {
            room = room ? 2 * room : 64;
            int64_t *more = realloc(*steps, (size_t)room * sizeof **steps);
            if (!more) {
                error = ENOMEM;
                break;
            }
            *steps = more;
        }
        (*steps)[(*count)++] = step;
    }
    closedir(stream);
    if (error) {
        free(*steps);
        *steps = NULL, *count = 0;
        return error;
    }
    int64_t latest = folder_pointer(folder, "latest", NULL);
    if (!is_among(latest, *steps, *count))
        latest = INT64_MAX; /* a missing or damaged pointer orders nothing */
    if (*count) qsort_r(*steps, (size_t)*count, sizeof **steps, newest_first, &latest);
    return 0;
}

void folder_temporary(const char *name, char out[FOLDER_NAME]) {
    snprintf(out, FOLDER_NAME, ".%.*s.tmp", FOLDER_NAME - 6, name);
}

int folder_prepare_pointer(int folder, const char *pointer, int64_t step) {
    char temporary[FOLDER_NAME], line[FOLDER_NAME + 1];
    folder_temporary(pointer, temporary);
    folder_step_name(step, line);
    strcat(line, "\n");
    int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return errno;
    int error = write_whole(fd, line, strlen(line));
    if (!error && fsync(fd)) error = errno;
    if (close(fd) && !error) error = errno;
    return error;
}

static bool is_there(int folder, const char *name) {
    struct stat about;
    return !fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW);
}

/* Swaps two names. Not every file system can do that in one step; there, for the moment between the renames,
 * what was `name` is only to be found under the name that folder_clean_up puts back. */
static int exchange(int folder, const char *temporary, const char *name) {
    if (!renameat2(folder, temporary, folder, name, RENAME_EXCHANGE)) return 0;
    int error = errno;
    if (error != EINVAL && error != ENOSYS && error != EOPNOTSUPP) return error;
    char aside[FOLDER_NAME + 8];
    snprintf(aside, sizeof aside, ".%s.old", name);
    if (renameat(folder, name, folder, aside)) return errno;
    if (!renameat(folder, temporary, folder, name)) {
        if (!renameat(folder, aside, folder, temporary)) return 0;
        error = errno;
        renameat(folder, name, folder, temporary);
    } else {
        error = errno;
    }
    renameat(folder, aside, folder, name);
    return error;
}

int folder_publish(int folder, const char *name, bool *replaced) {
    char temporary[FOLDER_NAME];
    folder_temporary(name, temporary);
    *replaced = is_there(folder, name);
    if (*replaced) return exchange(folder, temporary, name);
    return renameat(folder, temporary, folder, name) ? errno : 0;
}

int folder_take_back(int folder, const char *name, bool replaced) {
    char temporary[FOLDER_NAME];
    folder_temporary(name, temporary);
    if (replaced) return exchange(folder, temporary, name);
    return renameat(folder, name, folder, temporary) ? errno : 0;
}

/* Removes a file, or a directory with all that is in it. */
static int remove_tree(int folder, const char *name) {
    if (!unlinkat(folder, name, 0)) return 0;
    if (errno != EISDIR && errno != EPERM) return errno;
    int inside = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = inside < 0 ? NULL : fdopendir(inside);
    if (!stream) return errno;
    int error = 0;
    for (struct dirent *entry; !error && (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            error = remove_tree(inside, entry->d_name);
    closedir(stream);
    if (!error && unlinkat(folder, name, AT_REMOVEDIR)) error = errno;
    return error;
}

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end);
}

void folder_clean_up(int folder) {
    DIR *stream = open_stream(folder);
    if (!stream) return;
    for (struct dirent *entry; (entry = readdir(stream));) {
        const char *name = entry->d_name;
        if (strncmp(name, ".step_", 6) && strncmp(name, ".latest", 7) && strncmp(name, ".best", 5)) continue;
        if (ends_with(name, ".old")) {
            char right[FOLDER_NAME];
            snprintf(right, sizeof right, "%.*s", (int)strlen(name) - 5, name + 1);
            if (is_there(folder, right) || renameat(folder, name, folder, right)) remove_tree(folder, name);
        } else if (ends_with(name, ".tmp")) {
            remove_tree(folder, name); /* what cannot be removed is tried again at the next save */
        }
    }
    closedir(stream);
}

int folder_remove_step(int folder, int64_t step) {
    char name[FOLDER_NAME], temporary[FOLDER_NAME];
    folder_step_name(step, name);
    folder_temporary(name, temporary);
    if (renameat(folder, name, folder, temporary)) return errno;
    return remove_tree(folder, temporary);
}
