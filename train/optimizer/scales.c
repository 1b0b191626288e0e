#include "train/optimizer/scales.h"

#include <stdlib.h>

#include "model/model.h"

int scales_create(const struct ops *ops, const struct model_config *model, struct scales *out) {
    const struct device *device = ops->device;
    size_t bytes = 0;
    *out = (struct scales){.device = device};
    if (ops->precision != PRECISION_FP8) return 0;
    out->on_device = device->scales(&bytes);
    long weight_ids = model_weight_ids(model);
    if (weight_ids > device->weight_ids)
        return gdn_fail(
            GDN_INPUT, "model.num_layers %d: in train.precision fp8 device %s has scales for %d layers",
            model->num_layers, device->name, device->weight_ids / (int)(weight_ids / model->num_layers));
    out->count = (long)(bytes / sizeof *out->word) / device->weight_ids * weight_ids;
    out->word = calloc((size_t)out->count, sizeof *out->word);
    return out->word ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the scales of fp8");
}

void scales_free(struct scales *scales) {
    free(scales->word);
    scales->word = NULL;
}

static size_t bytes_of(const struct scales *scales) {
    return (size_t)scales->count * sizeof *scales->word;
}

int scales_agree(struct scales *scales, const struct mesh *mesh) {
    if (!scales->word) return 0;
    scales->device->download(scales->word, scales->on_device, bytes_of(scales));
    TRY(mesh_reduce(mesh, scales->word, (int)scales->count, MPI_UINT32_T, MPI_MAX));
    scales->device->upload(scales->on_device, scales->word, bytes_of(scales));
    return 0;
}

void scales_restore(const struct scales *scales) {
    size_t all;
    if (scales->word) scales->device->upload(scales->device->scales(&all), scales->word, bytes_of(scales));
}
