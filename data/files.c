#include "data/files.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/likeness.h"
#include "kernels/base/status.h"

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int append(struct path_list *files, char *const *paths, size_t count) {
    if (count > (size_t)(INT32_MAX / 2 - files->count))
        return gdn_fail(GDN_INPUT, "more than %d files are named", INT32_MAX / 2);
    for (size_t i = 0; i < count; i++) TRY(path_list_add(files, paths[i]));
    return GDN_OK;
}

static int find(const char *pattern, struct path_list *files) {
    if (!strpbrk(pattern, "*?[")) return path_list_add(files, pattern);
    glob_t found;
    int failed = glob(pattern, GLOB_NOSORT, NULL, &found);
    int status;
    if (failed == GLOB_NOMATCH) {
        status = gdn_fail(GDN_INPUT, "no file matches '%s'", pattern);
    } else if (failed) {
        status = gdn_fail(GDN_INTERNAL, "the files that match '%s' cannot be listed", pattern);
    } else {
        /* by bytes, since glob's own order depends on the user's locale */
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, compare_names);
        status = append(files, found.gl_pathv, found.gl_pathc);
    }
    globfree(&found);
    return status;
}

/* Of a format whose files go by other names than the one given, as a pair's: what is none of it is told by
 * what it is, not by the file that it lacks. */
static int find_named(const char *pattern, const struct token_format *format, struct path_list *files) {
    char *name = format->name_of(pattern);
    if (!name) return gdn_fail(GDN_INTERNAL, "%s: no memory", pattern);
    int status = access(name, F_OK) ? likeness_verify(pattern, format) : GDN_OK;
    if (!status) status = find(name, files);
    free(name);
    return status;
}

/* A file, and which pattern named it. */
struct identity {
    dev_t device;
    ino_t number;
    int file, pattern;
};

static int compare_identities(const void *a, const void *b) {
    const struct identity *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->file - y->file;
}

/* `ends` says how many files there were after each pattern. */
static int refuse_twice(const struct path_list *files, const int *ends, char *const *patterns) {
    struct identity *all = calloc((size_t)files->count, sizeof *all);
    if (!all) return gdn_fail(GDN_INTERNAL, "no memory to compare %d files", files->count);
    int known = 0, status = GDN_OK;
    for (int i = 0, pattern = 0; i < files->count; i++) {
        struct stat about;
        while (i >= ends[pattern]) pattern++;
        if (!stat(files->paths[i], &about)) /* what is missing is told when it is opened */
            all[known++] = (struct identity){about.st_dev, about.st_ino, i, pattern};
    }
    qsort(all, (size_t)known, sizeof *all, compare_identities);
    for (int i = 1; i < known && !status; i++) {
        const struct identity *a = &all[i - 1], *b = &all[i];
        if (a->device == b->device && a->number == b->number && a->pattern != b->pattern)
            status = gdn_fail(GDN_INPUT,
                              "'%s' and '%s' both name %s, and a file can be in a list once; to read it more "
                              "often, give it more weight in data.sources",
                              patterns[a->pattern], patterns[b->pattern], files->paths[b->file]);
    }
    free(all);
    return status;
}

int files_find(const struct path_list *patterns, const struct token_format *format, struct path_list *out) {
    *out = (struct path_list){0};
    int count = patterns->count, *ends = calloc((size_t)count + 1, sizeof *ends), status = GDN_OK;
    if (!ends) return gdn_fail(GDN_INTERNAL, "no memory for %d names", count);
    for (int i = 0; i < count && !status; i++) {
        const char *pattern = patterns->paths[i];
        if (patterns->made_of)
            status = path_list_add(out, pattern);
        else
            status = format->name_of ? find_named(pattern, format, out) : find(pattern, out);
        ends[i] = out->count;
    }
    if (!status && count > 1) status = refuse_twice(out, ends, patterns->paths);
    free(ends);
    return status;
}
