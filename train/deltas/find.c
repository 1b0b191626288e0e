/* Which stored differences there are, by name: folders step_N with files layer_N.h5. Other names are none of
 * ours, as those of files that are being written. */
#include "train/deltas/list.h"

#include "kernels/base/status.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
    const struct delta_choice *choice; /* NULL: everything */
    struct delta_found *found;
    int count, room;
};

static int no_memory(void) {
    return gdn_fail(GDN_INTERNAL, "out of memory for a list of stored differences");
}

/* The number of "step_%08d" or "layer_%03d.h5", −1 where the name is another. */
static int64_t number_of(const char *name, const char *format, const char *prefix) {
    char right[64];
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) || strlen(name) >= sizeof right) return -1;
    errno = 0;
    int64_t number = strtoll(name + length, NULL, 10);
    if (errno || number < 0 || number > (1LL << 62)) return -1;
    snprintf(right, sizeof right, format, number);
    return strcmp(name, right) ? -1 : number;
}

static int64_t step_of(const char *name) {
    return number_of(name, "step_%08" PRId64, "step_");
}

static int layer_of(const char *name) {
    int64_t layer = number_of(name, "layer_%03" PRId64 ".h5", "layer_");
    return layer > INT32_MAX ? -1 : (int)layer;
}

static int add(struct search *search, const char *folder, int64_t step, const char *name) {
    int layer = layer_of(name);
    if (layer < 0) return 0;
    if (search->choice && !ranges_have(&search->choice->layer, layer)) return 0;
    if (search->count == search->room) {
        int room = search->room ? 2 * search->room : 64;
        struct delta_found *more = realloc(search->found, (size_t)room * sizeof *more);
        if (!more) return no_memory();
        search->found = more, search->room = room;
    }
    struct delta_found *f = &search->found[search->count];
    *f = (struct delta_found){.step = step, .layer = layer};
    if (asprintf(&f->path, "%s/%s", folder, name) < 0) return no_memory();
    search->count++;
    return 0;
}

static int unreadable(const char *folder) {
    return gdn_fail(GDN_INPUT, "%s cannot be read: %s", folder, strerror(errno));
}

static int search_step(struct search *search, const char *folder, int64_t step) {
    DIR *stream = opendir(folder);
    if (!stream) return unreadable(folder);
    int status = 0;
    for (struct dirent *item; !status && (errno = 0, item = readdir(stream));)
        status = add(search, folder, step, item->d_name);
    if (!status && errno) status = unreadable(folder);
    closedir(stream);
    return status;
}

static int search_folder(struct search *search, const char *folder, DIR *stream) {
    int status = 0;
    for (struct dirent *item; !status && (errno = 0, item = readdir(stream));) {
        int64_t step = step_of(item->d_name);
        char *path;
        if (step < 0 || (search->choice && !ranges_have(&search->choice->step, step))) continue;
        if (asprintf(&path, "%s/%s", folder, item->d_name) < 0) return no_memory();
        status = search_step(search, path, step);
        free(path);
    }
    return !status && errno ? unreadable(folder) : status;
}

/* RUN/deltas, or that folder itself. */
static int search_run(struct search *search, const char *run) {
    char *folder;
    if (asprintf(&folder, "%s/deltas", run) < 0) return no_memory();
    DIR *stream = opendir(folder);
    if (!stream && errno == ENOENT) {
        strcpy(folder, run); /* shorter */
        stream = opendir(folder);
    }
    int status;
    if (stream) {
        status = search_folder(search, folder, stream);
        closedir(stream);
    } else {
        status = gdn_fail(GDN_INPUT, "%s: %s; a run directory, or its folder deltas, is expected", run,
                          strerror(errno));
    }
    free(folder);
    return status;
}

static int by_place(const void *a, const void *b) {
    const struct delta_found *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (x->layer > y->layer) - (x->layer < y->layer);
}

int delta_find(const char *run, const struct delta_choice *choice, struct delta_found **found, int *count) {
    struct search search = {.choice = choice};
    int status = search_run(&search, run);
    if (!status && search.count) qsort(search.found, (size_t)search.count, sizeof *search.found, by_place);
    *found = search.found, *count = search.count;
    if (status) delta_found_free(*found, *count), *found = NULL, *count = 0;
    return status;
}

void delta_found_free(struct delta_found *found, int count) {
    for (int i = 0; i < count; i++) free(found[i].path);
    free(found);
}
