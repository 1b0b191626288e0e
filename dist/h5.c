/* Files, reasons, and the walk over datasets. */
#include "dist/h5.h"
#include "kernels/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void h5_quiet(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *words) {
    if (n == 0) snprintf(words, 256, "%s", error->desc ? error->desc : "");
    return 0;
}

void h5_reason(char words[256]) {
    words[0] = 0;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, words);
    /* A failed system call is described with times and addresses; the system's words among them are what
     * helps. */
    char *system = strstr(words, "error message = '");
    if (system) {
        system += strlen("error message = '");
        char *end = strchr(system, '\'');
        if (end) *end = 0;
        memmove(words, system, strlen(system) + 1);
    }
    if (!words[0]) strcpy(words, "HDF5 gives no reason");
}

int h5_fail(int status, const char *path, const char *format, ...) {
    char reason[256], what[512];
    h5_reason(reason);
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    return gdn_fail(status, "%s: %s (%s)", path, what, reason);
}

hid_t h5_access(void) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    /* Locks fail on some network file systems; a file here is never written and read at once. */
    H5Pset_file_locking(access, false, true);
    return access;
}

int h5_open(const char *path, hid_t *file) {
    /* Asked of the system first, whose reasons are clearer than HDF5's. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait where it is a pipe */
    if (fd < 0) return gdn_fail(GDN_INPUT, "%s cannot be opened: %s", path, strerror(errno));
    close(fd);
    h5_quiet();
    hid_t access = h5_access();
    *file = H5Fopen(path, H5F_ACC_RDONLY, access);
    int status = 0;
    if (*file < 0) status = h5_fail(GDN_INPUT, path, "is not an HDF5 file, or is cut short or damaged");
    H5Pclose(access);
    return status;
}

int h5_exists(hid_t file, const char *path, const char *name, bool *there) {
    char part[1024];
    htri_t exists = 1;
    for (const char *end = name; *end && exists > 0;) { /* H5Lexists wants every group on the way to exist */
        end = strchrnul(end + 1, '/');
        snprintf(part, sizeof part, "%.*s", (int)(end - name), name);
        exists = H5Lexists(file, part, H5P_DEFAULT);
    }
    *there = exists > 0;
    return exists < 0 ? h5_fail(GDN_INPUT, path, "the group of /%s cannot be read", name) : 0;
}

struct walk {
    hid_t file;
    const char *path;
    h5_take_name *take;
    void *context;
    int status;
};

static herr_t visit(hid_t root, const char *name, const H5O_info_t *info, void *context) {
    (void)root;
    struct walk *walk = context;
    if (info->type != H5O_TYPE_DATASET) return 0;
    walk->status = walk->take(walk->context, walk->file, walk->path, name);
    return walk->status ? 1 : 0;
}

int h5_each_name(hid_t file, const char *path, h5_take_name *take, void *context) {
    struct walk walk = {.file = file, .path = path, .take = take, .context = context};
    herr_t rc = H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, visit, &walk, H5O_INFO_BASIC);
    if (walk.status) return walk.status;
    if (rc < 0) return h5_fail(GDN_INPUT, path, "its list of datasets cannot be read");
    return 0;
}
