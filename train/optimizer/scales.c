#include "train/optimizer/scales.h"

#include <stdlib.h>

#include "model/model.h"

int scales_create(const struct ops *ops, const struct model_config *model, struct scales *out) {
    const struct device *device = ops->device;
    size_t bytes = 0;
    *out = (struct scales){.device = device};
    if (ops->precision != PRECISION_FP8) return 0;
    device->scales(&bytes);
    long sites = model_sites(model);
    if (sites > device->sites)
        return gdn_fail(GDN_INPUT,
                        "model.num_layers %d: in train.precision fp8 device %s has scales for %d layers",
                        model->num_layers, device->name, device->sites / (int)(sites / model->num_layers));
    out->words = (long)(bytes / sizeof *out->word) / device->sites * sites;
    out->word = calloc((size_t)out->words, sizeof *out->word);
    return out->word ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the scales of fp8");
}

void scales_free(struct scales *scales) {
    free(scales->word);
    scales->word = NULL;
}

static size_t bytes_of(const struct scales *scales) {
    return (size_t)scales->words * sizeof *scales->word;
}

int scales_agree(struct scales *scales, const struct mesh *mesh) {
    if (!scales->word) return 0;
    size_t all;
    scales->device->download(scales->word, scales->device->scales(&all), bytes_of(scales));
    TRY(mesh_reduce(mesh, scales->word, (int)scales->words, MPI_UINT32_T, MPI_MAX));
    scales_restore(scales);
    return 0;
}

void scales_restore(const struct scales *scales) {
    size_t all;
    if (scales->word) scales->device->upload(scales->device->scales(&all), scales->word, bytes_of(scales));
}
