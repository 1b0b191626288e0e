/* What the system knows of this process (proc(5)). */
#include "train/monitor/private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The file as text; "" where it cannot be read. Without streams, which allocate. */
static void read_text(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : read(file, text, size - 1);
    text[n < 0 ? 0 : n] = 0;
    if (file >= 0) close(file);
}

int64_t monitor_resident(void) {
    char text[256], *end;
    read_text("/proc/self/statm", text, sizeof text);
    strtoll(text, &end, 10); /* all pages, then those in memory */
    return strtoll(end, NULL, 10) * sysconf(_SC_PAGESIZE);
}

double monitor_age(void) {
    char text[1024];
    struct timespec now;
    read_text("/proc/self/stat", text, sizeof text);
    char *at = strrchr(text, ')'); /* behind the name, which may hold anything, comes field 3 */
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    if (!at || clock_gettime(CLOCK_BOOTTIME, &now)) return 0;
    double age = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec -
                 (double)strtoll(at, NULL, 10) / (double)sysconf(_SC_CLK_TCK);
    return age > 0 ? age : 0;
}
