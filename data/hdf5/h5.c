/* Files, reasons, and the walk over datasets. */
#include "data/hdf5/h5.h"
#include "data/hdf5/lock.h"
#include "data/hdf5/source.h"
#include "kernels/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void h5_quiet(void) {
    HDF5_HOLD();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *text) {
    if (n == 0) snprintf(text, 256, "%s", error->desc ? error->desc : "");
    return 0;
}

void h5_reason(char text[256]) {
    HDF5_HOLD();
    text[0] = 0;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, text);
    /* A failed system call is described with times and addresses; the system's words among them are what
     * helps. */
    char *system = strstr(text, "error message = '");
    if (system) {
        system += strlen("error message = '");
        char *end = strchr(system, '\'');
        if (end) *end = 0;
        memmove(text, system, strlen(system) + 1);
    }
    if (!text[0]) strcpy(text, "HDF5 gives no reason");
}

int h5_fail(int status, const char *path, const char *format, ...) {
    HDF5_HOLD();
    char reason[256], what[512];
    h5_reason(reason);
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    return gdn_fail(status, "%s: %s (%s)", path, what, reason);
}

hid_t h5_access(void) {
    HDF5_HOLD();
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
    struct stat is;
    const bool folder = !fstat(fd, &is) && S_ISDIR(is.st_mode);
    close(fd);
    if (folder) return gdn_fail(GDN_INPUT, "%s is a folder, and an HDF5 file is expected", path);
    HDF5_HOLD();
    h5_quiet();
    hid_t access = h5_access();
    H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST); /* those are for writing */
    *file = hdf5_source_select(access) < 0 ? H5I_INVALID_HID : H5Fopen(path, H5F_ACC_RDONLY, access);
    int status = 0;
    if (*file < 0) status = h5_fail(GDN_INPUT, path, "is not an HDF5 file, or is cut short or damaged");
    H5Pclose(access);
    return status;
}

int h5_exists(hid_t file, const char *path, const char *name, bool *there) {
    HDF5_HOLD();
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

void h5_close(hid_t file) {
    HDF5_HOLD();
    H5Fclose(file);
}

/* Names one after the other, each with its final zero. */
struct names {
    char *text;
    size_t length, room;
    bool full;           /* memory was short */
    const char *problem; /* why the walk has ended early; NULL: it has not, or HDF5 knows */
    char path[512];      /* of the group that the walk is in, with a final '/'; "" for the root */
    int groups, depth;
};

/* Far beyond any checkpoint: groups may hold each other. */
enum { MAX_GROUPS = 1 << 20, MAX_DEPTH = 32 };

static herr_t stop(struct names *names, const char *problem) {
    names->problem = problem;
    return -1;
}

static herr_t note_name(struct names *names, const char *name) {
    size_t before = strlen(names->path), length = before + strlen(name) + 1;
    if (names->length + length > names->room) {
        size_t room = 2 * names->room + length + 4096;
        char *grown = realloc(names->text, room);
        names->full = !grown;
        if (!grown) return -1;
        names->text = grown, names->room = room;
    }
    memcpy(names->text + names->length, names->path, before);
    memcpy(names->text + names->length + before, name, length - before);
    names->length += length;
    return 0;
}

static herr_t walk_group(hid_t group, struct names *names);

/* Messages show names, and each is a line. */
static bool is_plain(const char *name) {
    for (; *name; name++)
        if ((unsigned char)*name < 0x20 || *name == 0x7f) return false;
    return true;
}

static herr_t walk_link(hid_t parent, const char *name, const H5L_info_t *link, void *context) {
    struct names *names = context;
    H5O_info_t info;
    if (link->type != H5L_TYPE_HARD) return 0;
    if (H5Oget_info_by_name2(parent, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) return -1;
    if (!is_plain(name)) return stop(names, "one has control characters");
    if (info.type == H5O_TYPE_DATASET) return note_name(names, name);
    if (info.type != H5O_TYPE_GROUP) return 0;
    size_t before = strlen(names->path);
    if (before + strlen(name) + 2 > sizeof names->path) return stop(names, "one is too long");
    hid_t group = H5Gopen2(parent, name, H5P_DEFAULT);
    if (group < 0) return -1;
    sprintf(names->path + before, "%s/", name);
    herr_t rc = walk_group(group, names);
    names->path[before] = 0;
    if (rc >= 0) H5Gclose(group); /* or HDF5 forgets the reason; closing the file closes it */
    return rc;
}

/* HDF5 1.10 has a walk of its own, which frees what it has not allocated where an entry of a group cannot be
 * read. Looking for one that is not there reads them all, without that. */
static herr_t walk_group(hid_t group, struct names *names) {
    if (++names->groups > MAX_GROUPS || names->depth >= MAX_DEPTH)
        return stop(names, "groups hold each other");
    if (H5Lexists(group, "\1", H5P_DEFAULT) < 0) return -1;
    names->depth++;
    herr_t rc = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, walk_link, names);
    names->depth--;
    return rc;
}

static int find_names(hid_t file, const char *path, struct names *names) {
    HDF5_HOLD();
    hid_t root = H5Gopen2(file, "/", H5P_DEFAULT);
    herr_t rc = root < 0 ? -1 : walk_group(root, names);
    int status = 0;
    if (names->full)
        status = gdn_fail(GDN_INTERNAL, "out of memory for the names of datasets in %s", path);
    else if (names->problem)
        status = gdn_fail(GDN_INPUT, "%s: its list of datasets cannot be read: %s", path, names->problem);
    else if (rc < 0)
        status = h5_fail(GDN_INPUT, path, "its list of datasets cannot be read");
    if (root >= 0) H5Gclose(root);
    return status;
}

int h5_names(hid_t file, const char *path, char **text, size_t *length) {
    struct names names = {.text = calloc(1, 1)};
    int status = names.text ? find_names(file, path, &names)
                            : gdn_fail(GDN_INTERNAL, "out of memory for the names of datasets in %s", path);
    if (status) free(names.text);
    *text = status ? NULL : names.text;
    *length = status ? 0 : names.length;
    return status;
}

int h5_each_name(hid_t file, const char *path, h5_take_name *take, void *context) {
    char *text;
    size_t length;
    int status = h5_names(file, path, &text, &length);
    for (size_t at = 0; at < length && !status; at += strlen(text + at) + 1)
        status = take(context, file, path, text + at);
    free(text);
    return status;
}
