#include "train/command/commands.h"

int main(int argc, char **argv) {
    return gdn_main(argc, argv);
}
