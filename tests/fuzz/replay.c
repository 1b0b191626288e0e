/* Runs a fuzzer's harness on files, without libFuzzer: replay PATH…, each a file or a folder of files, in
 * name order. For the test suite, and to look at what a fuzzer has found. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"

static int run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return perror(path), 2;
    struct stat about;
    fuzz_check(!fstat(fileno(file), &about), path);
    size_t size = (size_t)about.st_size;
    uint8_t *bytes = malloc(size ? size : 1); /* not a byte more, for the sanitizer to notice */
    fuzz_check(bytes && fread(bytes, 1, size, file) == size, path);
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last one printed is the one that failed */
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return 0;
}

static int not_hidden(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static int run_path(const char *path, int *count) {
    struct dirent **entry;
    struct stat about;
    if (stat(path, &about)) return perror(path), 2;
    if (!S_ISDIR(about.st_mode)) return ++*count, run_file(path);
    int entries = scandir(path, &entry, not_hidden, alphasort), status = 0;
    for (int i = 0; i < entries; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name);
        if (!status) status = run_path(name, count);
        free(entry[i]);
    }
    if (entries >= 0) free(entry);
    return status;
}

int main(int argc, char **argv) {
    int count = 0;
    for (int i = 1; i < argc; i++) {
        int status = run_path(argv[i], &count);
        if (status) return status;
    }
    fprintf(stderr, "%d inputs\n", count);
    return count ? 0 : 2; /* a folder that is empty tests nothing */
}
