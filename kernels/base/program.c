#include "kernels/base/program.h"

#include <string.h>
#include <unistd.h>

void program_folder(char folder[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = 0;
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
}
