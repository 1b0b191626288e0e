/* flip_memory PID COUNT: flips the last bit of the last of COUNT floats of value 1 that follow each other,
 * wherever in the writable memory of a process there are so many: weights of norms, where training leaves
 * them as they were. Status 77 where the system does not allow it, 1 where there are none. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Flips in `bytes` of memory at `start`; returns how often. */
static long flip(FILE *memory, uint64_t start, size_t bytes, size_t count) {
    float *x = malloc(bytes);
    long found = 0;
    if (!x || fseek(memory, (long)start, SEEK_SET) || fread(x, 1, bytes, memory) != bytes) {
        free(x);
        return 0;
    }
    for (size_t i = 0, run = 0; i < bytes / sizeof *x; i++) {
        run = x[i] == 1 ? run + 1 : 0;
        if (run != count) continue;
        float other = 1 + 0x1p-23f;
        found += !fseek(memory, (long)(start + i * sizeof *x), SEEK_SET) &&
                 fwrite(&other, sizeof other, 1, memory) == 1 && !fflush(memory);
        run = 0;
    }
    free(x);
    return found;
}

int main(int argc, char **argv) {
    char path[64], line[512];
    if (argc != 3) return 2;
    snprintf(path, sizeof path, "/proc/%.20s/mem", argv[1]);
    FILE *memory = fopen(path, "r+");
    snprintf(path, sizeof path, "/proc/%.20s/maps", argv[1]);
    FILE *maps = fopen(path, "r");
    if (!memory || !maps) return 77;
    long found = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end, inode;
        char mode[8];
        if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &start, &end, mode, &inode) == 4 &&
            !strncmp(mode, "rw", 2) && !inode)
            found += flip(memory, start, end - start, (size_t)atol(argv[2]));
    }
    fclose(maps);
    fclose(memory);
    printf("%ld places\n", found);
    return !found;
}
