/* A model's tensors in one file or several. */
#include "data/safetensors/safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/base/status.h"

#define SINGLE "model.safetensors"
#define INDEX "model.safetensors.index.json"

enum { FILE_NAME_LONGEST = 128 };

static int no_memory(const char *directory) {
    return gdn_fail(GDN_INTERNAL, "out of memory for the tensors of %s", directory);
}

/* A plain name of a file in the folder. */
static bool is_plain(const char *name) {
    size_t length = name ? strlen(name) : 0;
    if (!length || length > FILE_NAME_LONGEST || name[0] == '.') return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] <= 0x20 || name[i] == 0x7f || name[i] == '/') return false;
    return true;
}

/* The number of the file in the folder, which is opened where that is the first time; −1: `status`. */
static int file_of(struct safetensors_folder *folder, const char *directory, const char *name, int *status) {
    size_t skip = strlen(directory) + 1;
    for (int i = 0; i < folder->files; i++)
        if (!strcmp(folder->file[i].path + skip, name)) return i;
    char *path;
    struct safetensors *grown = realloc(folder->file, ((size_t)folder->files + 1) * sizeof *grown);
    if (grown) folder->file = grown;
    if (!grown || asprintf(&path, "%s/%s", directory, name) < 0) return *status = no_memory(directory), -1;
    *status = safetensors_open(path, &folder->file[folder->files]);
    free(path);
    return *status ? -1 : folder->files++;
}

static int compare(const void *a, const void *b) {
    return strcmp((*(const struct stored_tensor *const *)a)->name,
                  (*(const struct stored_tensor *const *)b)->name);
}

/* Puts the tensors of all files in one list. */
static int join(struct safetensors_folder *folder, const char *directory) {
    int total = 0;
    for (int i = 0; i < folder->files; i++) total += folder->file[i].count;
    folder->tensor = malloc(((size_t)total + 1) * sizeof *folder->tensor);
    if (!folder->tensor) return no_memory(directory);
    for (int i = 0; i < folder->files; i++)
        for (int t = 0; t < folder->file[i].count; t++)
            folder->tensor[folder->count++] = &folder->file[i].tensor[t];
    qsort(folder->tensor, (size_t)total, sizeof *folder->tensor, compare);
    for (int i = 1; i < total; i++)
        if (!strcmp(folder->tensor[i - 1]->name, folder->tensor[i]->name))
            return gdn_fail(GDN_INPUT, "%s: tensor %s is in two files, %s and %s", directory,
                            folder->tensor[i]->name, folder->tensor[i - 1]->path, folder->tensor[i]->path);
    return GDN_OK;
}

/* Each tensor of the files is where the index says, and no other is there. */
static int verify_index(const struct safetensors_folder *folder, const char *directory, const char *path,
                        json_t *map) {
    size_t skip = strlen(directory) + 1;
    for (int i = 0; i < folder->count; i++) {
        const struct stored_tensor *tensor = folder->tensor[i];
        const char *file = json_string_value(json_object_get(map, tensor->name));
        if (!file || strcmp(file, tensor->path + skip))
            return gdn_fail(GDN_INPUT, "%s does not name tensor %s, which %s has", path, tensor->name,
                            tensor->path);
    }
    if ((size_t)folder->count == json_object_size(map)) return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s names %zu tensors, but the files have %d of these", path,
                    json_object_size(map), folder->count);
}

static int open_map(struct safetensors_folder *folder, const char *directory, const char *path, json_t *map) {
    const char *name;
    json_t *value;
    int status = GDN_OK;
    if (!json_is_object(map)) return gdn_fail(GDN_INPUT, "%s has no object weight_map", path);
    json_object_foreach(map, name, value) {
        const char *file = json_string_value(value);
        if (!is_plain(file))
            return gdn_fail(GDN_INPUT, "%s: its weight_map names a file that is none in this folder", path);
        if (file_of(folder, directory, file, &status) < 0) return status;
    }
    TRY(join(folder, directory));
    return verify_index(folder, directory, path, map);
}

static int open_index(struct safetensors_folder *folder, const char *directory, const char *path) {
    json_error_t error;
    json_t *index = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!index) return gdn_fail(GDN_INPUT, "%s is no JSON, in line %d", path, error.line);
    int status = open_map(folder, directory, path, json_object_get(index, "weight_map"));
    json_decref(index);
    return status;
}

int safetensors_folder_open(const char *directory, struct safetensors_folder *out) {
    char *index;
    int status = GDN_OK;
    *out = (struct safetensors_folder){0};
    if (asprintf(&index, "%s/%s", directory, INDEX) < 0) return no_memory(directory);
    if (!access(index, F_OK))
        status = open_index(out, directory, index);
    else if (file_of(out, directory, SINGLE, &status) >= 0)
        status = join(out, directory);
    free(index);
    if (status) safetensors_folder_close(out);
    return status;
}

void safetensors_folder_close(struct safetensors_folder *folder) {
    for (int i = 0; i < folder->files; i++) safetensors_close(&folder->file[i]);
    free(folder->file);
    free(folder->tensor);
    *folder = (struct safetensors_folder){0};
}

static int compare_name(const void *name, const void *tensor) {
    return strcmp(name, (*(const struct stored_tensor *const *)tensor)->name);
}

const struct stored_tensor *safetensors_find(const struct safetensors_folder *folder, const char *name) {
    const struct stored_tensor *const *found =
        bsearch(name, folder->tensor, (size_t)folder->count, sizeof *folder->tensor, compare_name);
    return found ? *found : NULL;
}
