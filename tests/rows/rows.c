#include "rows.h"

void rows_register(void) {}
