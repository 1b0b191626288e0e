/* made_up_deltas DIRECTORY LAYERS DISTANCES STEP…: writes stored differences for tests/program/deltas.sh. */
#include "tests/train/deltas/made_up.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    const struct made_up shape = {.batch = 2, .length = 8, .hidden = 12, .rank = 6};
    char path[4096];
    if (argc < 5) return 2;
    for (int i = 4; i < argc; i++)
        for (int layer = 0; layer < atoi(argv[2]); layer++) {
            /* layer 0 has the embedding as its only source */
            int distances = atoi(argv[3]) < layer + 1 ? atoi(argv[3]) : layer + 1;
            if (!made_up_file(argv[1], atoll(argv[i]), layer, distances, &shape, path)) {
                fprintf(stderr, "%s cannot be written\n", path);
                return 1;
            }
        }
    return 0;
}
