/* gdn with the test-only rows. */
#include "rows.h"
#include "train/command/commands.h"

int main(int argc, char **argv) {
    rows_register();
    return gdn_main(argc, argv);
}
