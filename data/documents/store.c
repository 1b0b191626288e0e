#include "data/documents/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/output.h"
#include "kernels/base/status.h"

int store_name(const char *output, struct store *out) {
    char *file = output_followed(output);
    const char *slash = file ? strrchr(file, '/') : NULL;
    int folder = slash ? (int)(slash + 1 - file) : 0;
    *out = (struct store){.descriptor = -1};
    if (!file || asprintf(&out->folder, "%.*s.%s.pieces", folder, file, file + folder) < 0)
        out->folder = NULL;
    free(file);
    return out->folder ? GDN_OK : gdn_fail(GDN_INTERNAL, "%s: no memory", output);
}

static bool ends_in(const char *name, const char *suffix) {
    size_t length = strlen(name), n = strlen(suffix);
    return length >= n && !strcmp(name + length - n, suffix);
}

/* Removes the files whose names end so. */
static void clear(const struct store *store, const char *suffix) {
    DIR *folder = opendir(store->folder);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (ends_in(entry->d_name, suffix)) unlinkat(dirfd(folder), entry->d_name, 0); /* not . and .. */
    if (folder) closedir(folder);
}

int store_take(struct store *store) {
    bool made = !mkdir(store->folder, 0777) || errno == EEXIST;
    if (made) store->descriptor = open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->descriptor < 0)
        return gdn_fail(GDN_INPUT, "%s, where what is done is kept, cannot be made: %s", store->folder,
                        strerror(errno));
    /* a file system without locks goes without */
    if (flock(store->descriptor, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        close(store->descriptor);
        store->descriptor = -1;
        return gdn_fail(GDN_INPUT, "another process is writing the same output: it works in %s",
                        store->folder);
    }
    clear(store, ".partial");
    return GDN_OK;
}

char *store_path(const struct store *store, const struct piece *piece) {
    char *path;
    return asprintf(&path, "%s/%s", store->folder, piece->name) < 0 ? NULL : path;
}

void store_remove(const struct store *store) {
    clear(store, "");
}

bool store_keeps(const struct store *store) {
    DIR *folder = opendir(store->folder);
    bool keeps = false;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        keeps |= entry->d_name[0] != '.'; /* a partial file is hidden */
    if (folder) closedir(folder);
    return keeps;
}

void store_close(struct store *store) {
    if (store->descriptor >= 0) {
        rmdir(store->folder);
        close(store->descriptor);
    }
    free(store->folder);
    *store = (struct store){.descriptor = -1};
}
