#include "data/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/base/status.h"

static int map_descriptor(const char *path, int descriptor, struct mapping *out) {
    struct stat about;
    if (fstat(descriptor, &about)) return gdn_fail(GDN_INPUT, "%s: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode)) return gdn_fail(GDN_INPUT, "%s is not a file", path);
    if (about.st_size == 0) return gdn_fail(GDN_INPUT, "%s is empty", path);
    void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (bytes == MAP_FAILED)
        return gdn_fail(GDN_INPUT, "%s: cannot map its %lld bytes into memory: %s%s", path,
                        (long long)about.st_size, strerror(errno),
                        errno == ENOMEM ? " (one process may map vm.max_map_count files)" : "");
    *out = (struct mapping){.bytes = bytes, .size = (size_t)about.st_size};
    return GDN_OK;
}

int mapping_open(const char *path, struct mapping *out) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return gdn_fail(GDN_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    int status = map_descriptor(path, descriptor, out);
    close(descriptor); /* the mapping stays */
    return status;
}

void mapping_close(struct mapping *mapping) {
    if (mapping->bytes) munmap((void *)mapping->bytes, mapping->size);
    *mapping = (struct mapping){0};
}
