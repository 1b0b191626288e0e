#include "train/huggingface/names.h"

#include <stdio.h>
#include <string.h>

const char *name_outside(const char *name, char out[NAME_LONGEST]) {
    snprintf(out, NAME_LONGEST, "%s%s", strcmp(name, NAME_HEAD) ? "model." : "", name);
    return out;
}
