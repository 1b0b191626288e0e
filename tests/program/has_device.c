/* has_device NAME: leaves with 0 where this build and machine have the device, else prints what is missing
 * and leaves with 77, a skipped test (of the emulated device: with 1, since it needs nothing of the
 * machine). */
#include <stdio.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/base/status.h"

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    if (ops_find(argv[1])) return 0;
    fprintf(stderr, "skipped: %s\n", gdn_failure());
    return strcmp(argv[1], "emulated") ? 77 : 1;
}
