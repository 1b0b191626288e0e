#include "data/outcome.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/output.h"
#include "kernels/base/status.h"

static int cannot_write(const struct outcome *outcome) {
    return gdn_fail(GDN_INPUT, "%s cannot be written: %s", outcome->path, strerror(errno));
}

/* Removes a folder of files. */
static void remove_files(const char *path) {
    DIR *stream = opendir(path);
    if (!stream) return;
    for (struct dirent *entry; (entry = readdir(stream));)
        if (entry->d_type != DT_DIR) unlinkat(dirfd(stream), entry->d_name, 0);
    closedir(stream);
    rmdir(path);
}

/* Whether `path` can be made, or is an empty folder, which a rename replaces; it replaces no link to one. */
static int verify_free(const struct outcome *outcome) {
    int folder = open(outcome->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), entries = 0;
    DIR *stream = folder < 0 ? NULL : fdopendir(folder);
    if (!stream && errno == ENOENT) return GDN_OK;
    if (!stream) return cannot_write(outcome);
    for (struct dirent *entry; (entry = readdir(stream));)
        entries += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(stream);
    return entries ? gdn_fail(GDN_INPUT, "%s is there already and not empty", outcome->path) : GDN_OK;
}

/* "/a/.b.partial" of "/a/b" and of "/a/b/". */
static int set_names(const char *path, struct outcome *out) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    out->path = strndup(path, length);
    const char *slash = out->path ? strrchr(out->path, '/') : NULL;
    int before = slash ? (int)(slash + 1 - out->path) : 0;
    /* a rename takes no `.`, and who stands in the folder would be left in the old one */
    if (out->path && !strcmp(out->path + before, "."))
        return gdn_fail(GDN_INPUT, "%s cannot become a complete folder: name it from outside of it", path);
    if (out->path && asprintf(&out->partial, "%.*s.%s.partial", before, out->path, out->path + before) >= 0)
        return GDN_OK;
    out->partial = NULL;
    return gdn_fail(GDN_INTERNAL, "out of memory for a path");
}

int outcome_open(const char *path, struct outcome *out) {
    *out = (struct outcome){0};
    if (!*path) return gdn_fail(GDN_INPUT, "the folder to write is '': a name is expected");
    TRY(set_names(path, out));
    TRY(verify_free(out));
    remove_files(out->partial); /* left by one that was killed */
    return mkdir(out->partial, 0777) ? cannot_write(out) : GDN_OK;
}

int outcome_write(const struct outcome *outcome, const char *name, const char *text) {
    char *path;
    if (!text || asprintf(&path, "%s/%s", outcome->partial, name) < 0)
        return gdn_fail(GDN_INTERNAL, "out of memory for %s", name);
    int status = output_text(path, text, strlen(text));
    free(path);
    return status;
}

int outcome_finish(struct outcome *outcome) {
    if (rename(outcome->partial, outcome->path)) return cannot_write(outcome);
    free(outcome->partial);
    outcome->partial = NULL;
    return GDN_OK;
}

void outcome_close(struct outcome *outcome) {
    if (outcome->partial) remove_files(outcome->partial);
    free(outcome->partial);
    free(outcome->path);
    *outcome = (struct outcome){0};
}
