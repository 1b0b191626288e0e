#include "data/elements.h"

#include <string.h>

#include "kernels/base/status.h"

static const struct {
    size_t size;
    const char *name;
} elements[NUM_ELEMENTS] = {
    [ELEMENT_UINT8] = {1, "uint8"},   [ELEMENT_INT8] = {1, "int8"},     [ELEMENT_UINT16] = {2, "uint16"},
    [ELEMENT_INT16] = {2, "int16"},   [ELEMENT_UINT32] = {4, "uint32"}, [ELEMENT_INT32] = {4, "int32"},
    [ELEMENT_UINT64] = {8, "uint64"}, [ELEMENT_INT64] = {8, "int64"},
};

size_t element_size(enum element element) {
    return elements[element].size;
}

const char *element_name(enum element element) {
    return elements[element].name;
}

static int too_large(const char *path, long position, __int128 value) {
    if (value < 0)
        return gdn_fail(GDN_INPUT, "%s: token %ld is %lld, which does not fit a 32-bit token id", path,
                        position, (long long)value);
    return gdn_fail(GDN_INPUT, "%s: token %ld is %llu, which does not fit a 32-bit token id", path, position,
                    (unsigned long long)value);
}

/* The one loop for every type. The 128-bit value holds uint64 and int64 alike, so that one comparison serves
 * all. */
#define READ_AS(type)                                                                                        \
    for (long i = 0; i < count; i++) {                                                                       \
        type value;                                                                                          \
        memcpy(&value, (const char *)raw + (size_t)i * sizeof value, sizeof value);                          \
        const __int128 wide = value;                                                                         \
        if (wide < INT32_MIN || wide > INT32_MAX) return too_large(path, position + i, wide);                \
        out[i] = (int32_t)value;                                                                             \
    }                                                                                                        \
    return GDN_OK

int elements_read(const char *path, long position, enum element element, const void *raw, long count,
                  int32_t *out) {
    switch (element) {
    case ELEMENT_UINT8:
        READ_AS(uint8_t);
    case ELEMENT_INT8:
        READ_AS(int8_t);
    case ELEMENT_UINT16:
        READ_AS(uint16_t);
    case ELEMENT_INT16:
        READ_AS(int16_t);
    case ELEMENT_UINT32:
        READ_AS(uint32_t);
    case ELEMENT_INT32:
        READ_AS(int32_t);
    case ELEMENT_UINT64:
        READ_AS(uint64_t);
    case ELEMENT_INT64:
        READ_AS(int64_t);
    case NUM_ELEMENTS:
        break;
    }
    return gdn_fail(GDN_INTERNAL, "%s: element type %d does not exist", path, (int)element);
}
