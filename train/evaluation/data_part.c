#include "train/evaluation/data_part.h"

#include "data/format.h"
#include "kernels/base/status.h"

#include <stdlib.h>

int data_part_open(const struct config *config, const struct path_list *files, bool shuffle, double from,
                   double to, struct sampler **out) {
    const struct data_config *data = &config->data;
    struct sampler_options options = {
        .format = token_format_of(data->format),
        .shuffle = shuffle,
        .seed = config->train.seed,
        .length = config->train.sequence_length,
        .documents = data->documents == DOCUMENTS_MASK,
        .packed = data->packing == PACKING_BEST_FIT,
        .from = from,
        .to = to,
    };
    if (files->count) {
        options.sources = &(struct sampler_source){*files, 1};
        options.num_sources = 1;
        return sampler_open(&options, out);
    }
    struct sampler_source *sources = calloc((size_t)data->num_sources, sizeof *sources);
    if (!sources) return gdn_fail(GDN_INTERNAL, "out of memory for %d data sources", data->num_sources);
    for (int i = 0; i < data->num_sources; i++)
        sources[i] = (struct sampler_source){data->sources[i].path, data->sources[i].weight};
    options.sources = sources;
    options.num_sources = data->num_sources;
    int status = sampler_open(&options, out);
    free(sources);
    return status;
}

double data_held_out(const struct data_config *data) {
    return data->validation.count ? 0 : data->validation_fraction;
}
