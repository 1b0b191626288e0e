#include "rows.h"

void rows_register(void) {
    rows_of_optimizers();
    rows_of_mixers();
    rows_of_gates();
    rows_of_formats();
}
