#include "data/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/base/status.h"
#include "kernels/base/write_whole.h"

/* Bytes of `path` up to and including its last slash. */
static int folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

/* A rename would replace whatever is there, a device or a named pipe too. `name` is what messages call it. */
static int verify_kind(const char *name, const char *path) {
    struct stat about;
    if (stat(path, &about))
        return errno == ENOENT ? GDN_OK
                               : gdn_fail(GDN_INPUT, "%s: cannot be written: %s", name, strerror(errno));
    if (S_ISREG(about.st_mode)) return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s is %s: the name of a file is expected", name,
                    S_ISDIR(about.st_mode) ? "a directory" : "not a file");
}

char *output_followed(const char *path) {
    enum { MOST = 40 }; /* links, as the kernel follows */
    char target[PATH_MAX], *name = strdup(path), *next;
    ssize_t n;
    for (int i = 0; i < MOST && name && (n = readlink(name, target, sizeof target)) > 0; i++, name = next) {
        if (asprintf(&next, "%.*s%.*s", target[0] == '/' ? 0 : folder_length(name), name, (int)n, target) < 0)
            next = NULL;
        free(name);
    }
    return name;
}

/* Both names of a file. */
static int set_names(const char *name, const char *path, struct output *out) {
    *out = (struct output){.descriptor = -1};
    TRY(verify_kind(name, path));
    out->path = output_followed(path);
    int folder = out->path ? folder_length(out->path) : 0;
    /* the dot hides it from patterns such as *.bin, which would take it for a token file after a power cut */
    if (!out->path || asprintf(&out->partial, "%.*s.%s.partial", folder, out->path, out->path + folder) < 0) {
        out->partial = NULL;
        return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    }
    return GDN_OK;
}

/* Makes a file beside the partial one, which another process may be writing, and removes it. */
static int try_folder(const char *name, const struct output *output) {
    char *beside;
    if (asprintf(&beside, "%s.XXXXXX", output->partial) < 0)
        return gdn_fail(GDN_INTERNAL, "%s: no memory", name);
    int status = GDN_OK, descriptor = mkostemp(beside, O_CLOEXEC);
    if (descriptor < 0)
        status = gdn_fail(GDN_INPUT, "%s: cannot be written: %s", name, strerror(errno));
    else {
        close(descriptor);
        unlink(beside);
    }
    free(beside);
    return status;
}

int output_verify(const char *option, const char *path) {
    struct output output;
    char *name;
    if (!*path) return gdn_fail(GDN_INPUT, "%s is '': the name of a file is expected", option);
    if (asprintf(&name, "%s %s", option, path) < 0) return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    int status = set_names(name, path, &output);
    if (!status) status = try_folder(name, &output);
    output_close(&output);
    free(name);
    return status;
}

int output_refuse_input(const char *path, const char *input, const char *what) {
    struct stat in, about;
    char *at = stat(input, &in) ? NULL : realpath(path, NULL); /* NULL too where nothing would be replaced */
    bool same = false;
    /* the file itself, then the folders that it is in */
    for (char *end = at ? strchr(at, 0) : NULL; end != at && !same; end = strrchr(at, '/')) {
        *end = 0;
        same = !stat(at, &about) && about.st_ino == in.st_ino && about.st_dev == in.st_dev;
    }
    free(at);
    if (!same) return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s is both %s and the output; choose another output", path, what);
}

int output_open(const char *path, struct output *out) {
    TRY(set_names(path, path, out));
    out->descriptor = open(out->partial, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out->descriptor < 0)
        return gdn_fail(GDN_INPUT, "%s: cannot be written: %s: %s", path, out->partial, strerror(errno));
    return GDN_OK;
}

static int cannot_write(const struct output *output) {
    return gdn_fail(GDN_INPUT, "%s: cannot be written: %s", output->path, strerror(errno));
}

int output_write(struct output *output, const void *bytes, size_t size) {
    errno = write_whole(output->descriptor, bytes, size);
    return errno ? cannot_write(output) : GDN_OK;
}

int output_try(struct output *output, long size) {
    static const char zeros[1 << 16];
    if (ftruncate(output->descriptor, size)) return cannot_write(output);
    TRY(output_write(output, zeros, sizeof zeros));
    TRY(output_sync(output)); /* some file systems find their disk only then */
    if (ftruncate(output->descriptor, 0)) return cannot_write(output);
    return output_seek(output, 0);
}

int output_seek(struct output *output, long offset) {
    return lseek(output->descriptor, offset, SEEK_SET) < 0 ? cannot_write(output) : GDN_OK;
}

int output_sync(struct output *output) {
    if (fsync(output->descriptor))
        return gdn_fail(GDN_INPUT, "%s: cannot be brought to disk: %s", output->path, strerror(errno));
    return GDN_OK;
}

/* A rename is on disk once the folder is. */
static int sync_folder(const char *path) {
    char *folder = NULL;
    if (asprintf(&folder, "%.*s.", folder_length(path), path) < 0)
        return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* EINVAL: a file system that has no such operation for folders */
    bool failed = descriptor < 0 || (fsync(descriptor) && errno != EINVAL);
    int status = GDN_OK;
    if (failed)
        status = gdn_fail(GDN_INPUT, "%s: its folder cannot be brought to disk: %s", path, strerror(errno));
    if (descriptor >= 0) close(descriptor);
    free(folder);
    return status;
}

int output_rename(struct output *output) {
    if (rename(output->partial, output->path))
        return gdn_fail(GDN_INPUT, "%s: cannot be renamed to %s: %s", output->partial, output->path,
                        strerror(errno));
    free(output->partial);
    output->partial = NULL; /* nothing to remove any more */
    return GDN_OK;
}

int output_publish(struct output *output) {
    TRY(output_rename(output));
    return sync_folder(output->path);
}

void output_close(struct output *output) {
    if (output->descriptor >= 0) {
        close(output->descriptor);
        if (output->partial) unlink(output->partial);
    }
    free(output->partial);
    free(output->path);
    *output = (struct output){.descriptor = -1};
}

int output_finish(struct output *output, int status) {
    if (!status) status = output_sync(output);
    if (!status) status = output_publish(output);
    output_close(output);
    return status;
}

int output_text(const char *path, const char *text, size_t size) {
    struct output output;
    int status = output_open(path, &output);
    if (!status) status = output_write(&output, text, size);
    return output_finish(&output, status);
}

int output_json(const char *path, const json_t *root, int indent) {
    char *text = root ? json_dumps(root, JSON_INDENT((size_t)indent) | JSON_PRESERVE_ORDER) : NULL,
         *lines = NULL;
    int length = text ? asprintf(&lines, "%s\n", text) : -1;
    free(text);
    if (length < 0) return gdn_fail(GDN_INTERNAL, "%s: no memory", path);
    int status = output_text(path, lines, (size_t)length);
    free(lines);
    return status;
}
