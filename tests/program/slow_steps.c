/* Preloaded, makes every step and every round of an evaluation take SLOW_STEPS seconds more on rank 0, on a
 * machine of any speed: it waits where the file RUN/stop is looked for, and adds a line to the file SLOW_LOG.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int access(const char *path, int mode) {
    const char *seconds = getenv("SLOW_STEPS"), *log = getenv("SLOW_LOG"), *name = strrchr(path, '/');
    if (seconds && name && !strcmp(name, "/stop")) {
        FILE *out = log ? fopen(log, "a") : NULL;
        if (out) fprintf(out, "%s\n", path);
        if (out) fclose(out);
        double time = atof(seconds);
        struct timespec left = {(time_t)time, (long)(1e9 * (time - (double)(time_t)time))};
        while (nanosleep(&left, &left)) continue;
    }
    return faccessat(AT_FDCWD, path, mode, 0);
}
