#include "dist/layout/axes.h"

#include <stdlib.h>

#include "kernels/base/append.h"

static int count = AXES_OF_GDN;

static struct axis_row rows[AXES] = {
    [AXIS_DATA] = {.name = "data",
                   .key = "mesh.data",
                   .divides = "the sequences of a batch",
                   .gradients = true,
                   .batch = true,
                   .rest = true},
    [AXIS_TENSOR] = {.name = "tensor", .key = "mesh.tensor", .divides = "each layer's heads and channels"},
    [AXIS_PIPELINE] = {.name = "pipeline", .key = "mesh.pipeline", .divides = "the layers"},
    [AXIS_CONTEXT] = {.name = "context",
                      .key = "mesh.context",
                      .divides = "each sequence",
                      .gradients = true,
                      .pieces = true},
};

static enum mesh_axis order[AXES] = {AXIS_TENSOR, AXIS_CONTEXT, AXIS_DATA, AXIS_PIPELINE};
static enum mesh_axis sum_order[AXES] = {AXIS_TENSOR, AXIS_PIPELINE, AXIS_DATA, AXIS_CONTEXT};

const struct axis_row *const axis_rows = rows;
const enum mesh_axis *const axis_order = order, *const axis_sum_order = sum_order;

int axes_count(void) {
    return count;
}

int axes_register(const struct axis_row *row) {
    if (count == AXES) abort();
    rows[count] = *row;
    order[count] = sum_order[count] = (enum mesh_axis)count;
    return count++;
}

struct axis_sizes axes_of(int data, int tensor, int pipeline) {
    struct axis_sizes sizes;
    for (int a = 0; a < count; a++) sizes.size[a] = 1;
    sizes.size[AXIS_DATA] = data, sizes.size[AXIS_TENSOR] = tensor, sizes.size[AXIS_PIPELINE] = pipeline;
    return sizes;
}

long axes_ranks(const int size[AXES]) {
    long ranks = 1;
    for (int a = 0; a < count; a++) ranks *= size[a];
    return ranks;
}

long axes_stride(const int size[AXES], enum mesh_axis axis) {
    long stride = 1;
    for (int i = 0; axis_order[i] != axis; i++) stride *= size[axis_order[i]];
    return stride;
}

void axes_place(const int size[AXES], long rank, int index[AXES]) {
    for (int i = 0; i < count; i++) {
        enum mesh_axis a = axis_order[i];
        index[a] = (int)(rank % size[a]);
        rank /= size[a];
    }
}

long axes_rank(const int size[AXES], const int index[AXES]) {
    long rank = 0;
    for (int i = count - 1; i >= 0; i--) rank = rank * size[axis_order[i]] + index[axis_order[i]];
    return rank;
}

/* ------------------------------------------------------------------------------------- several as one */

struct axis_sizes axes_joined(const int size[AXES]) {
    struct axis_sizes joined;
    int copies = 1;
    for (int a = 0; a < count; a++) {
        joined.size[a] = axis_rows[a].gradients ? 1 : size[a];
        if (axis_rows[a].gradients) copies *= size[a];
    }
    joined.size[AXIS_COPIES] = copies;
    return joined;
}

void axes_place_joined(const int size[AXES], long rank, int joined[AXES]) {
    int copies = 1, copy = 0;
    axes_place(size, rank, joined);
    for (int i = 0; i < count; i++) {
        const enum mesh_axis a = axis_order[i];
        if (!axis_rows[a].gradients) continue;
        copy += copies * joined[a];
        copies *= size[a];
        joined[a] = 0;
    }
    joined[AXIS_COPIES] = copy;
}

long axes_rank_joined(const int size[AXES], const int joined[AXES]) {
    int index[AXES], copy = joined[AXIS_COPIES];
    for (int i = 0; i < count; i++) {
        const enum mesh_axis a = axis_order[i];
        index[a] = joined[a];
        if (!axis_rows[a].gradients) continue;
        index[a] = copy % size[a];
        copy /= size[a];
    }
    return axes_rank(size, index);
}

struct batch_part axes_batch(const int size[AXES], long rank) {
    struct batch_part part = {.parts = 1};
    for (int i = 0; i < count; i++) {
        const enum mesh_axis a = axis_order[i];
        const int ranks = size[a] ? size[a] : 1;
        if (axis_rows[a].batch) {
            part.index += part.parts * (int)(rank % ranks);
            part.parts *= ranks;
        }
        rank /= ranks;
    }
    return part;
}

long axes_batch_first(const int size[AXES], long rank) {
    int index[AXES];
    axes_place(size, rank, index);
    for (int a = 0; a < count; a++)
        if (!axis_rows[a].batch) index[a] = 0;
    return axes_rank(size, index);
}

/* --------------------------------------------------------------------------------- in the configuration */

enum mesh_axis axes_rest(void) {
    int a = 0;
    while (!axis_rows[a].rest) a++;
    return (enum mesh_axis)a;
}

long axes_each(const int size[AXES]) {
    long ranks = 1;
    for (int a = 0; a < count; a++)
        if (!axis_rows[a].rest) ranks *= size[a];
    return ranks;
}

bool axes_shown(const int size[AXES], enum mesh_axis axis) {
    return !axis_rows[axis].pieces || size[axis] > 1;
}

const char *axes_others(const int size[AXES], char text[AXES_TEXT]) {
    size_t used = 0;
    int left = -1;
    for (int a = 0; a < count; a++) left += axes_shown(size, (enum mesh_axis)a);
    for (int a = 0; a < count; a++) {
        if (axis_rows[a].rest || !axes_shown(size, (enum mesh_axis)a)) continue;
        const char *between = used == 0 ? "" : left == 1 ? " and " : ", ";
        used = text_append(text, AXES_TEXT, used, "%s%s: %d", between, axis_rows[a].key, size[a]);
        left--;
    }
    return text;
}

const char *axes_text(const int size[AXES], char text[AXES_TEXT]) {
    size_t used = 0;
    for (int a = 0; a < count; a++)
        if (axes_shown(size, (enum mesh_axis)a))
            used = text_append(text, AXES_TEXT, used, "%s%s %d", a ? " x " : "", axis_rows[a].name, size[a]);
    return text;
}
