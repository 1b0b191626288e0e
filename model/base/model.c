/* What every folder of the model needs of it: its tensors by name, and its first failure. */
#include "model/base/base.h"
#include "model/params/find.h"

#include <stdarg.h>
#include <stdio.h>

struct tensor find_tensor(const struct model *m, const char *format, ...) {
    char name[128];
    va_list list;
    va_start(list, format);
    vsnprintf(name, sizeof name, format, list);
    va_end(list);
    const struct row *row = params_find(m->table, name);
    if (!row) return (struct tensor){NULL, NULL};
    return (struct tensor){m->state->weight + row->offset,
                           m->state->gradient ? m->state->gradient + row->offset : NULL};
}

void pass_failed(struct model *m, int status) {
    if (!m->status) m->status = status;
}
