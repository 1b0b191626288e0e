#include "dist/layout/axes.h"

#include "kernels/base/append.h"

const struct axis_row axis_rows[AXES] = {
    [AXIS_DATA] = {.name = "data",
                   .key = "mesh.data",
                   .divides = "the sequences of a batch",
                   .gradients = true,
                   .rest = true},
    [AXIS_TENSOR] = {.name = "tensor", .key = "mesh.tensor", .divides = "each layer's heads and channels"},
    [AXIS_PIPELINE] = {.name = "pipeline", .key = "mesh.pipeline", .divides = "the layers"},
};

const enum mesh_axis axis_order[AXES] = {AXIS_TENSOR, AXIS_DATA, AXIS_PIPELINE};
const enum mesh_axis axis_sum_order[AXES] = {AXIS_TENSOR, AXIS_PIPELINE, AXIS_DATA};

struct axis_sizes axes_of(int data, int tensor, int pipeline) {
    struct axis_sizes sizes;
    for (int a = 0; a < AXES; a++) sizes.size[a] = 1;
    sizes.size[AXIS_DATA] = data, sizes.size[AXIS_TENSOR] = tensor, sizes.size[AXIS_PIPELINE] = pipeline;
    return sizes;
}

long axes_ranks(const int size[AXES]) {
    long ranks = 1;
    for (int a = 0; a < AXES; a++) ranks *= size[a];
    return ranks;
}

long axes_stride(const int size[AXES], enum mesh_axis axis) {
    long stride = 1;
    for (int i = 0; axis_order[i] != axis; i++) stride *= size[axis_order[i]];
    return stride;
}

void axes_place(const int size[AXES], long rank, int index[AXES]) {
    for (int i = 0; i < AXES; i++) {
        enum mesh_axis a = axis_order[i];
        index[a] = (int)(rank % size[a]);
        rank /= size[a];
    }
}

long axes_rank(const int size[AXES], const int index[AXES]) {
    long rank = 0;
    for (int i = AXES - 1; i >= 0; i--) rank = rank * size[axis_order[i]] + index[axis_order[i]];
    return rank;
}

enum mesh_axis axes_rest(void) {
    int a = 0;
    while (!axis_rows[a].rest) a++;
    return (enum mesh_axis)a;
}

long axes_each(const int size[AXES]) {
    long ranks = 1;
    for (int a = 0; a < AXES; a++)
        if (!axis_rows[a].rest) ranks *= size[a];
    return ranks;
}

const char *axes_others(const int size[AXES], char text[AXES_TEXT]) {
    size_t used = 0;
    int left = AXES - 1;
    for (int a = 0; a < AXES; a++) {
        if (axis_rows[a].rest) continue;
        const char *between = used == 0 ? "" : left == 1 ? " and " : ", ";
        used = text_append(text, AXES_TEXT, used, "%s%s: %d", between, axis_rows[a].key, size[a]);
        left--;
    }
    return text;
}

const char *axes_text(const int size[AXES], char text[AXES_TEXT]) {
    size_t used = 0;
    for (int a = 0; a < AXES; a++)
        used = text_append(text, AXES_TEXT, used, "%s%s %d", a ? " x " : "", axis_rows[a].name, size[a]);
    return text;
}
