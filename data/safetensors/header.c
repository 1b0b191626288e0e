/* The header of a safetensors file, which others have made: nothing of it is believed. */
#include "data/safetensors/header.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

enum { LENGTH_BYTES = 8 };

/* A name as messages have it: no control characters, not endless. */
static bool printable(const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) return false;
    return length > 0 && length <= TENSOR_NAME;
}

/* A whole number from 0 on. */
static bool whole(const json_t *value, int64_t *out) {
    *out = json_is_integer(value) ? json_integer_value(value) : -1;
    return *out >= 0;
}

static int bad(const struct safetensors *file, const char *name, const char *what) {
    return gdn_fail(GDN_INPUT, "%s is damaged: tensor %s %s", file->path, name, what);
}

/* The product of the shape and the element's size; false where it is beyond all files. */
static bool bytes_of(const struct stored_tensor *tensor, int64_t *out) {
    *out = (int64_t)tensor->dtype->bytes;
    for (int d = 0; d < tensor->ndim; d++)
        if (__builtin_mul_overflow(*out, tensor->shape[d], out)) return false;
    return true;
}

static int read_shape(const struct safetensors *file, const json_t *shape, struct stored_tensor *out) {
    if (!json_is_array(shape)) return bad(file, out->name, "has no shape that is a list");
    size_t ndim = json_array_size(shape);
    if (ndim > TENSOR_DIMENSIONS) return bad(file, out->name, "has more than 8 dimensions");
    out->ndim = (int)ndim;
    for (int d = 0; d < out->ndim; d++) {
        int64_t length;
        if (!whole(json_array_get(shape, (size_t)d), &length))
            return bad(file, out->name, "has a shape of other than whole numbers from 0 on");
        out->shape[d] = length;
    }
    return GDN_OK;
}

/* `begin`: of the elements in the file. */
static int read_offsets(const struct safetensors *file, const json_t *offsets, size_t begin,
                        struct stored_tensor *out) {
    int64_t from, to, bytes;
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !whole(json_array_get(offsets, 0), &from) || !whole(json_array_get(offsets, 1), &to))
        return bad(file, out->name, "has no data_offsets of two whole numbers");
    if (from > to || (uint64_t)to > file->map.size - begin)
        return gdn_fail(GDN_INPUT,
                        "%s is damaged: tensor %s lies at bytes %" PRId64 " to %" PRId64
                        " of the %zu that follow the header",
                        file->path, out->name, from, to, file->map.size - begin);
    if (!bytes_of(out, &bytes) || bytes != to - from)
        return gdn_fail(GDN_INPUT,
                        "%s is damaged: tensor %s has %" PRId64 " bytes, which its shape and dtype %s do not",
                        file->path, out->name, to - from, out->dtype->name);
    if ((begin + (size_t)from) % out->dtype->bytes)
        return gdn_fail(
            GDN_INPUT,
            "%s: tensor %s is not aligned: it begins at byte %zu, no multiple of its elements' %zu",
            file->path, out->name, begin + (size_t)from, out->dtype->bytes);
    out->elements = file->map.bytes + begin + from;
    out->bytes = (size_t)bytes;
    return GDN_OK;
}

/* One entry; out->name is set. */
static int read_tensor(const struct safetensors *file, const json_t *entry, size_t begin,
                       struct stored_tensor *out) {
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    if (!json_is_object(entry) || json_object_size(entry) != 3)
        return bad(file, out->name, "has other entries than dtype, shape and data_offsets");
    for (int k = 0; k < 3; k++)
        if (!json_object_get(entry, keys[k]))
            return bad(file, out->name, "lacks one of dtype, shape and data_offsets");
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    out->dtype = dtype ? dtype_named(dtype) : NULL;
    if (!out->dtype) return bad(file, out->name, "has a dtype that is not known");
    out->path = file->path;
    TRY(read_shape(file, json_object_get(entry, "shape"), out));
    return read_offsets(file, json_object_get(entry, "data_offsets"), begin, out);
}

/* By place; where tensors without elements begin at the same byte as others, these come first. */
static int by_place(const void *a, const void *b) {
    const struct stored_tensor *x = *(const struct stored_tensor *const *)a,
                               *y = *(const struct stored_tensor *const *)b;
    if (x->elements != y->elements) return x->elements < y->elements ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Every byte behind the header belongs to one tensor. */
static int verify_cover(const struct safetensors *file, const uint8_t *begin, struct stored_tensor **order) {
    const uint8_t *end = file->map.bytes + file->map.size, *at = begin;
    const char *before = "";
    qsort(order, (size_t)file->count, sizeof *order, by_place);
    for (int i = 0; i < file->count; i++) {
        if (order[i]->elements < at)
            return gdn_fail(GDN_INPUT, "%s is damaged: tensors %s and %s overlap", file->path, before,
                            order[i]->name);
        if (order[i]->elements > at)
            return gdn_fail(GDN_INPUT, "%s is damaged: %td bytes before tensor %s belong to none", file->path,
                            order[i]->elements - at, order[i]->name);
        at += order[i]->bytes, before = order[i]->name;
    }
    if (at < end)
        return gdn_fail(GDN_INPUT, "%s is damaged: its last %td bytes belong to no tensor", file->path,
                        end - at);
    return GDN_OK;
}

static int verify_places(const struct safetensors *file, size_t begin) {
    struct stored_tensor **order = malloc(((size_t)file->count + 1) * sizeof *order);
    if (!order) return gdn_fail(GDN_INTERNAL, "out of memory for the tensors of %s", file->path);
    for (int i = 0; i < file->count; i++) order[i] = &file->tensor[i];
    int status = verify_cover(file, file->map.bytes + begin, order);
    free(order);
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct stored_tensor *)a)->name, ((const struct stored_tensor *)b)->name);
}

/* Bytes of all names with their zeros; 0 where one cannot be printed. */
static size_t names_size(json_t *header) {
    size_t size = 1;
    const char *name;
    json_t *entry;
    json_object_foreach(header, name, entry) {
        if (!printable(name)) return 0;
        size += strlen(name) + 1;
    }
    return size;
}

static int read_entries(struct safetensors *file, json_t *header, size_t begin) {
    const char *name;
    json_t *entry;
    char *place = file->names;
    json_object_foreach(header, name, entry) {
        if (!strcmp(name, HEADER_METADATA)) continue;
        struct stored_tensor *tensor = &file->tensor[file->count];
        tensor->name = strcpy(place, name);
        place += strlen(name) + 1;
        TRY(read_tensor(file, entry, begin, tensor));
        file->count++;
    }
    qsort(file->tensor, (size_t)file->count, sizeof *file->tensor, by_name);
    return verify_places(file, begin);
}

static int read_object(struct safetensors *file, json_t *header, size_t begin) {
    if (!json_is_object(header)) return gdn_fail(GDN_INPUT, "%s: its header is no JSON object", file->path);
    size_t size = names_size(header);
    if (!size)
        return gdn_fail(GDN_INPUT, "%s: a tensor's name is empty, longer than %d bytes or not printable",
                        file->path, TENSOR_NAME);
    file->names = malloc(size);
    file->tensor = calloc(json_object_size(header) + 1, sizeof *file->tensor);
    if (!file->names || !file->tensor)
        return gdn_fail(GDN_INTERNAL, "out of memory for the tensors of %s", file->path);
    return read_entries(file, header, begin);
}

int header_read(struct safetensors *file) {
    uint64_t length = 0;
    if (file->map.size < LENGTH_BYTES)
        return gdn_fail(GDN_INPUT, "%s is no safetensors file: it has %zu bytes", file->path, file->map.size);
    memcpy(&length, file->map.bytes, LENGTH_BYTES);
    if (length > HEADER_LONGEST || length > file->map.size - LENGTH_BYTES)
        return gdn_fail(GDN_INPUT,
                        "%s is no safetensors file, or damaged: its header would have %" PRIu64
                        " bytes, of a file of %zu",
                        file->path, length, file->map.size);
    json_error_t error;
    const char *text = (const char *)file->map.bytes + LENGTH_BYTES;
    json_t *header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!header) {
        bool twice = json_error_code(&error) == json_error_duplicate_key;
        return gdn_fail(GDN_INPUT,
                        twice ? "%s is damaged: its header has a name twice, before byte %d"
                              : "%s is damaged: its header is no JSON, at byte %d",
                        file->path, error.position);
    }
    int status = read_object(file, header, LENGTH_BYTES + (size_t)length);
    json_decref(header);
    return status;
}
