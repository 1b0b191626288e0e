#include "kernels/base/write_whole.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

static int go_on(int file, const char *bytes, size_t count, int64_t at) {
    for (size_t done = 0; done < count;) {
        ssize_t n = at < 0 ? write(file, bytes + done, count - done)
                           : pwrite(file, bytes + done, count - done, at + (int64_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? errno : ENOSPC;
        done += (size_t)n;
    }
    return 0;
}

int write_whole(int file, const void *bytes, size_t count) {
    return go_on(file, bytes, count, -1);
}

int write_whole_or_none(int file, const void *bytes, size_t count) {
    const off_t before = lseek(file, 0, SEEK_END); /* -1: it has no positions, and nothing is cut */
    const int reason = write_whole(file, bytes, count);
    const bool part = reason && lseek(file, 0, SEEK_END) > before;
    return part && ftruncate(file, before) ? errno : reason;
}

int write_whole_at(int file, const void *bytes, size_t count, int64_t at) {
    return go_on(file, bytes, count, at);
}
