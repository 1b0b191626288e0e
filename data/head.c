#include "data/head.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct head head_read(const char *path) {
    struct head head = {.length = 0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return head;
    ssize_t length = read(descriptor, head.bytes, sizeof head.bytes);
    close(descriptor);
    if (length > 0) head.length = (size_t)length;
    return head;
}

bool head_has(const struct head *head, size_t at, const void *mark, size_t size) {
    return at + size <= head->length && !memcmp(head->bytes + at, mark, size);
}
