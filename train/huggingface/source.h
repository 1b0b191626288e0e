/* The tensors of a folder, under gdn's names. Private to this folder. */
#ifndef GDN_HUGGINGFACE_SOURCE_H
#define GDN_HUGGINGFACE_SOURCE_H

#include "data/safetensors/safetensors.h"
#include "dist/checkpoint/weights.h"
#include "model/params/config.h"

struct source {
    struct safetensors_folder folder;
    const char *whose;
    struct weight_source weights; /* to read from; its context is this struct, which may not move */
};

/* Opens the tensors and holds them against the table of the whole model: each that both have is of its shape
 * and of a dtype of weights, and there is none that the model does not have. `whose` says what describes the
 * model: "config.json". GDN_INPUT; then nothing is open. */
int source_open(const char *directory, const struct model_config *model, const char *whose,
                const struct table *global, struct source *out);
void source_close(struct source *source);

#endif
