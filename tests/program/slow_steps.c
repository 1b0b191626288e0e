/* Preloaded, makes a run slow on a machine of any speed. Before each wait it adds the path in question to the
 * file SLOW_LOG, a line each, by which a script knows how far the run has come. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void note(const char *path) {
    const char *log = getenv("SLOW_LOG");
    FILE *out = log ? fopen(log, "a") : NULL;
    if (!out) return;
    fprintf(out, "%s\n", path);
    fclose(out);
}

static void rest(double seconds) {
    struct timespec left = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    while (nanosleep(&left, &left)) continue;
}

/* Every step and every round of an evaluation takes SLOW_STEPS seconds more on rank 0, which looks for the
 * file RUN/stop before each that is a second after the last. */
int access(const char *path, int mode) {
    const char *seconds = getenv("SLOW_STEPS"), *name = strrchr(path, '/');
    if (seconds && name && !strcmp(name, "/stop")) {
        note(path);
        rest(atof(seconds));
    }
    return faccessat(AT_FDCWD, path, mode, 0);
}

/* The directory WAIT_WITH is made once there is a file WAIT_FOR. */
int mkdir(const char *path, mode_t mode) {
    const char *held = getenv("WAIT_WITH"), *file = getenv("WAIT_FOR");
    if (held && file && !strcmp(path, held)) {
        note(path);
        while (faccessat(AT_FDCWD, file, F_OK, 0)) rest(0.01);
    }
    return mkdirat(AT_FDCWD, path, mode);
}
