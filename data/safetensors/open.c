/* One safetensors file, and reading from it. */
#include "data/safetensors/header.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/base/status.h"

int safetensors_open(const char *path, struct safetensors *out) {
    *out = (struct safetensors){.path = strdup(path)};
    int status = out->path ? GDN_OK : gdn_fail(GDN_INTERNAL, "out of memory for a path");
    if (!status) status = mapping_open(path, &out->map);
    if (!status) status = header_read(out);
    if (status) safetensors_close(out);
    return status;
}

void safetensors_close(struct safetensors *file) {
    mapping_close(&file->map);
    free(file->tensor);
    free(file->names);
    free(file->path);
    *file = (struct safetensors){0};
}

/* Pages that lie wholly in [from, to). */
static void let_go(const uint8_t *from, const uint8_t *to) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)from + page - 1) / page * page, end = (uintptr_t)to / page * page;
    if (first < end) madvise((void *)first, end - first, MADV_DONTNEED);
}

void safetensors_read(const struct stored_tensor *tensor, size_t first, size_t n, real *out) {
    const uint8_t *from = tensor->elements + first * tensor->dtype->bytes;
    tensor->dtype->load(from, n, out);
    let_go(from, from + n * tensor->dtype->bytes);
}
