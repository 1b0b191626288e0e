#include "data/safetensors/write.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/output.h"
#include "kernels/base/status.h"

enum { BLOCK = 1 << 18, /* elements converted at a time */ FILE_NAME = 64 };

struct writer {
    const struct safetensors_content *content;
    const char *directory;
    int *order; /* [count] entries by name */
    int *first; /* [files + 1] places in `order` where files begin */
    int files;
    char *block; /* [BLOCK] elements as stored */

    /* The tensor that is being written. */
    struct output *output;
    const char *path;
    const struct tensor_entry *entry;
    size_t left; /* elements */
};

static size_t elements_of(const struct tensor_entry *entry) {
    size_t n = 1;
    for (int d = 0; d < entry->ndim; d++) n *= (size_t)entry->shape[d];
    return n;
}

static int64_t bytes_of(const struct writer *w, int place) {
    const struct safetensors_content *c = w->content;
    return (int64_t)(elements_of(&c->entry[w->order[place]]) * c->dtype->bytes);
}

static void file_name(const struct writer *w, int file, char name[FILE_NAME]) {
    if (w->files == 1)
        snprintf(name, FILE_NAME, "model.safetensors");
    else
        snprintf(name, FILE_NAME, "model-%05d-of-%05d.safetensors", file + 1, w->files);
}

/* ------------------------------------------------------------------------------------------- elements */

static int put_block(struct writer *w, const real *values, size_t n) {
    const struct dtype *dtype = w->content->dtype;
    if (dtype->store(values, n, w->block))
        return gdn_fail(GDN_INPUT,
                        "%s cannot be written: tensor %s has numbers beyond the largest of %s; bfloat16 and "
                        "float32 reach further than float16",
                        w->path, w->entry->name, dtype->word);
    return output_write(w->output, w->block, n * dtype->bytes);
}

static int put(void *sink, const real *values, size_t n) {
    struct writer *w = sink;
    if (n > w->left) return gdn_fail(GDN_INTERNAL, "tensor %s has too many elements", w->entry->name);
    w->left -= n;
    for (size_t at = 0; at < n; at += BLOCK) TRY(put_block(w, values + at, n - at < BLOCK ? n - at : BLOCK));
    return GDN_OK;
}

static int write_tensor(struct writer *w, int entry) {
    const struct safetensors_content *c = w->content;
    w->entry = &c->entry[entry];
    w->left = elements_of(w->entry);
    TRY(c->give(c->context, entry, put, w));
    if (w->left) return gdn_fail(GDN_INTERNAL, "tensor %s lacks %zu elements", w->entry->name, w->left);
    return GDN_OK;
}

/* ------------------------------------------------------------------------------------------- header */

static json_t *shape_of(const struct tensor_entry *entry) {
    json_t *shape = json_array();
    for (int d = 0; d < entry->ndim; d++) json_array_append_new(shape, json_integer(entry->shape[d]));
    return shape;
}

/* The header as text, padded with blanks so that elements begin at a multiple of 8; NULL without memory. */
static char *header_text(const struct writer *w, int file) {
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    json_int_t at = 0;
    for (int i = w->first[file]; i < w->first[file + 1]; i++) {
        const struct tensor_entry *entry = &w->content->entry[w->order[i]];
        json_int_t end = at + bytes_of(w, i);
        json_object_set_new(header, entry->name,
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype", w->content->dtype->name, "shape",
                                      shape_of(entry), "data_offsets", at, end));
        at = end;
    }
    char *text = json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER), *padded = NULL;
    bool whole = json_object_size(header) == (size_t)(w->first[file + 1] - w->first[file] + 1);
    json_decref(header);
    if (text && whole && asprintf(&padded, "%-*s", (int)((strlen(text) + 7) / 8 * 8), text) < 0)
        padded = NULL;
    free(text);
    return padded;
}

static int write_header(struct writer *w, int file) {
    char *text = header_text(w, file);
    if (!text) return gdn_fail(GDN_INTERNAL, "out of memory for the header of %s", w->path);
    uint64_t length = strlen(text);
    int status = output_write(w->output, &length, sizeof length); /* little-endian, as this machine is */
    if (!status) status = output_write(w->output, text, length);
    free(text);
    return status;
}

static int write_content(struct writer *w, int file) {
    TRY(write_header(w, file));
    for (int i = w->first[file]; i < w->first[file + 1]; i++) TRY(write_tensor(w, w->order[i]));
    return GDN_OK;
}

static int write_file(struct writer *w, int file) {
    char name[FILE_NAME], *path;
    struct output output;
    file_name(w, file, name);
    if (asprintf(&path, "%s/%s", w->directory, name) < 0)
        return gdn_fail(GDN_INTERNAL, "out of memory for a path");
    int status = output_open(path, &output);
    w->output = &output, w->path = path;
    if (!status) status = write_content(w, file);
    status = output_finish(&output, status);
    free(path);
    return status;
}

/* ------------------------------------------------------------------------------------------- the folder */

static json_t *index_of(const struct writer *w) {
    json_int_t bytes = 0, parameters = 0;
    json_t *map = json_object();
    for (int file = 0; file < w->files; file++)
        for (int i = w->first[file]; i < w->first[file + 1]; i++) {
            char name[FILE_NAME];
            file_name(w, file, name);
            json_object_set_new(map, w->content->entry[w->order[i]].name, json_string(name));
            bytes += bytes_of(w, i);
            parameters += (json_int_t)elements_of(&w->content->entry[w->order[i]]);
        }
    return json_pack("{s:{s:I, s:I}, s:o}", "metadata", "total_parameters", parameters, "total_size", bytes,
                     "weight_map", map);
}

static int write_index(const struct writer *w) {
    char *path;
    if (asprintf(&path, "%s/model.safetensors.index.json", w->directory) < 0)
        return gdn_fail(GDN_INTERNAL, "out of memory for a path");
    json_t *index = index_of(w);
    int status = output_json(path, index, 2);
    json_decref(index);
    free(path);
    return status;
}

static int compare(const void *a, const void *b, void *context) {
    const struct tensor_entry *entry = context;
    return strcmp(entry[*(const int *)a].name, entry[*(const int *)b].name);
}

/* Cuts the list of tensors into files. */
static void cut(struct writer *w) {
    int64_t bytes = 0;
    w->files = 1;
    for (int i = 0; i < w->content->count; i++) {
        int64_t more = bytes_of(w, i);
        if (i > w->first[w->files - 1] && bytes + more > w->content->shard)
            w->first[w->files++] = i, bytes = 0;
        bytes += more;
    }
    w->first[w->files] = w->content->count;
}

static int write_files(struct writer *w) {
    for (int i = 0; i < w->content->count; i++) w->order[i] = i;
    qsort_r(w->order, (size_t)w->content->count, sizeof *w->order, compare, (void *)w->content->entry);
    cut(w);
    for (int file = 0; file < w->files; file++) TRY(write_file(w, file));
    return w->files > 1 ? write_index(w) : GDN_OK;
}

int safetensors_write(const char *directory, const struct safetensors_content *content) {
    size_t count = (size_t)content->count;
    struct writer w = {.content = content,
                       .directory = directory,
                       .order = malloc((count + 1) * sizeof *w.order),
                       .first = calloc(count + 2, sizeof *w.first),
                       .block = malloc(BLOCK * content->dtype->bytes)};
    int status = w.order && w.first && w.block
                     ? write_files(&w)
                     : gdn_fail(GDN_INTERNAL, "out of memory to write %s", directory);
    free(w.order);
    free(w.first);
    free(w.block);
    return status;
}
