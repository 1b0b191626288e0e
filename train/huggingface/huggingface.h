/* Models in folders as Hugging Face's programs keep them, config.json beside safetensors: taken in and given
 * out. */
#ifndef GDN_HUGGINGFACE_H
#define GDN_HUGGINGFACE_H

#include <stdint.h>
#include <stdio.h>

#include "data/tokenizer/carried.h"
#include "dist/checkpoint/checkpoint.h"
#include "train/config/config.h"

/* Whether a path is such a folder, as far as a glance tells: it has a config.json. */
bool huggingface_is(const char *path);

/* The tokenizer that lies in the folder, as its files are; name NULL where there is none, or with a note on
 * standard error where it is none that is supported. Not collective. GDN_INTERNAL. carried_free. */
int huggingface_carried(const char *directory, struct carried *out);

/* Writes the checkpoint file `path` (weights alone and the folder's tokenizer, where the model has room for
 * its tokens, step 0) from a folder, and the section `model` of a configuration that trains it to `out`.
 * Prints nothing where it fails. GDN_INPUT naming the first key, architecture or tensor that is not
 * understood, is missing or does not fit; then there is no file. One process. */
int huggingface_import(const char *directory, const char *path, FILE *out);

/* What an export is to be like. */
struct huggingface_options {
    const char *dtype; /* of the weights: "float32", "bfloat16" or "float16" */
    int64_t shard;     /* bytes of weights a file has at most */
};

/* Writes a folder from a checkpoint.h5: config.json, generation_config.json and safetensors. It appears
 * complete or not at all; one that is there must be empty. GDN_INPUT, with all as it was, where the model has
 * what no family has, a number is beyond the dtype's largest, or the folder cannot be written. One process.
 */
int huggingface_export(const char *checkpoint, const char *directory,
                       const struct huggingface_options *options);

/* Starting weights from a folder, as checkpoint_load_initial takes them from HDF5; its config.json must say
 * of the trunk what `config` does. Collective. */
int huggingface_load(const struct mesh *mesh, const char *directory, const struct config *config,
                     const struct checkpoint_content *content, int *missing);

#endif
