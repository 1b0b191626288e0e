/* Weights that a rank holds, from where they come tensor by tensor. */
#include "dist/checkpoint/file_group.h"
#include "dist/checkpoint/parts.h"
#include "dist/checkpoint/weights.h"

#include <string.h>

/* Lines of a part, whole, of which the rank may hold some columns. */
static int load_lines(void *context, const struct row *row, long first, long n, real *lines) {
    const struct part *part = context;
    const struct rectangle *where = &part->where;
    long width = row->shape[1], columns = where->size[1];
    if (columns < width)
        for (long r = 0; r < n; r++)
            memmove(lines + r * columns, lines + r * width + where->at[1], (size_t)columns * sizeof *lines);
    rows_unpack(where, lines, first - where->at[0], n, part->memory);
    return 0;
}

/* All ranks look at all tensors, so that what is missing is found by all alike. */
static int load_parts(const struct weight_source *source, const struct parts *parts, int *missing) {
    int next = 0;
    for (int i = 0; i < parts->datasets; i++) {
        const struct row *row = parts_row(parts, i);
        bool there = source->has(source->context, row);
        if (!row->distance && !row->select) TRY(weight_source_need(source, row));
        *missing += !there;
        for (; next < parts->count && parts->part[next].dataset == i; next++) {
            struct part *part = &parts->part[next];
            if (there)
                TRY(weight_source_each(source, row, part->where.at[0], part->where.size[0], load_lines,
                                       part));
        }
    }
    return 0;
}

int weights_load(const struct mesh *mesh, const struct checkpoint_content *content,
                 const struct weight_source *source, int *missing) {
    struct state weights = {.weight = content->state->weight};
    struct checkpoint_content alone = {.global = content->global, .table = content->table, .state = &weights};
    struct parts parts;
    *missing = 0;
    int status = mesh_agree(mesh, parts_create(mesh, &alone, PARTS_READ, &parts));
    if (!status) status = mesh_agree(mesh, load_parts(source, &parts, missing));
    parts_free(&parts);
    return status;
}
