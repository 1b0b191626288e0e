/* What cannot go together. Each value alone was checked when it was read. */
#include "train/config/private.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "data/format.h"
#include "kernels/base/status.h"
#include "model/model.h"
#include "model/params/edges.h"
#include "model/params/stream.h"

/* Whether the user has given the key a value. */
static bool given(const struct reading *reading, const char *path) {
    const struct place *place = &reading->place[key_find(path) - config_keys];
    return place->file || place->set;
}

/* Connections that are listed stand in place of what distances say. */
static int validate_edges(const struct reading *reading) {
    struct delta_config *delta = &reading->config->model.delta;
    if (!delta->num_edges) return GDN_OK;
    if (!given(reading, DELTA(distances))) delta->num_distances = 0;
    if (delta->num_distances)
        return impossible(reading,
                          "connections are listed by edges, or follow from distances; of the two one is "
                          "expected, the other left out or []",
                          DELTA(edges), DELTA(distances));
    if (delta->embedding_source)
        return impossible(reading,
                          "edges say themselves what reads the embedding, whose number as a source is -1; "
                          "embedding_source is expected to be false",
                          DELTA(edges), DELTA(embedding_source));
    if (delta->stage_steps)
        return impossible(reading,
                          "distances are introduced one after the other, edges are all there from the start; "
                          "stage_steps is expected to be 0",
                          DELTA(edges), DELTA(stage_steps));
    return edges_validate(&reading->config->model, key_place(reading, DELTA(edges)));
}

static int validate_exits(const struct reading *reading) {
    const struct model_config *model = &reading->config->model;
    const struct exit_config *exit = &model->exit;
    const int n = exit->num_layers;
    if (n != exit->num_weights)
        return impossible(reading, "each exit's loss has a weight: as many weights as layers are expected",
                          MODEL(exit.layers), MODEL(exit.weights));
    if (!n && exit->curriculum != CURRICULUM_NONE)
        return impossible(reading, "there are no exits to choose of: curriculum none is expected, or exit.layers",
                          MODEL(exit.layers), MODEL(exit.curriculum));
    if (!n) return GDN_OK;
    if (n > MAX_EXITS) return impossible(reading, "at most 16 exits are allowed", MODEL(exit.layers));
    if (exit->layers[n - 1] >= model->num_layers - 1)
        return impossible(reading, "layers are counted from 0, and an exit is below the last one: numbers to num_layers - 2 are expected",
                          MODEL(exit.layers), MODEL(num_layers));
    if (stream_count(model) > 1)
        return impossible(reading, "an exit reads one residual stream, but a rule between layers has several",
                          MODEL(exit.layers), MODEL(rules));
    if (reading->config->train.compress_sources > 0)
        return impossible(reading, "an exit reads outputs that are kept whole: compress_sources 0 is expected",
                          MODEL(exit.layers), TRAIN(compress_sources));
    return GDN_OK;
}

static int validate_model(const struct reading *reading) {
    struct model_config *model = &reading->config->model;
    if (model->num_kv_heads == 0) model->num_kv_heads = model->num_heads;
    if ((long)model->head_dim * model->num_heads == model->hidden_size) model->head_dim = 0; /* the same */
    if (model->logit_softcap > 0 && model->logit_softcap < FLT_MIN)
        return impossible(reading, "logits cannot be divided by so small a cap", MODEL(logit_softcap));
    TRY(possible(reading, model_conflict(model, 1)));
    TRY(validate_edges(reading));
    TRY(validate_exits(reading));
    return possible_rules(reading, 1, 1);
}

/* A ramp's last batch is the one that stays: batch_size. */
static int validate_ramp(const struct reading *reading) {
    struct train_config *train = &reading->config->train;
    long last = train->batch_ramp[train->num_ramp - 1][RAMP_SIZE];
    int micro_batch = train->micro_batch_size, ranks = axes_batch(reading->config->mesh.size, 0).parts;
    if (!given(reading, TRAIN(batch_size))) train->batch_size = (int)last;
    if (train->batch_size != last)
        return impossible(reading, "batch_size must be the last of batch_ramp, or be left out",
                          TRAIN(batch_size), TRAIN(batch_ramp));
    for (int i = 0; i < train->num_ramp; i++) {
        long size = train->batch_ramp[i][RAMP_SIZE], at_once = (long)(micro_batch ? micro_batch : 1) * ranks;
        char why[128];
        if (size % at_once == 0) continue;
        snprintf(why, sizeof why, "batch_ramp[%d], %ld, must be a multiple of data ranks x micro_batch_size",
                 i, size);
        return impossible(reading, why, TRAIN(batch_ramp), axis_rows[axes_rest()].key,
                          TRAIN(micro_batch_size));
    }
    return GDN_OK;
}

static int validate_train(const struct reading *reading) {
    const struct train_config *train = &reading->config->train;
    int micro_batch = train->micro_batch_size, ranks = axes_batch(reading->config->mesh.size, 0).parts;
    if (train->num_ramp) return validate_ramp(reading);
    if (micro_batch > 0 && train->batch_size % micro_batch)
        return impossible(reading, "batch_size must be a multiple of micro_batch_size", TRAIN(batch_size),
                          TRAIN(micro_batch_size));
    long at_once = (long)(micro_batch > 0 ? micro_batch : 1) * ranks;
    if (train->batch_size % at_once)
        return impossible(reading, "batch_size must be a multiple of data ranks x micro_batch_size",
                          TRAIN(batch_size), axis_rows[axes_rest()].key, TRAIN(micro_batch_size));
    return GDN_OK;
}

/* What follows from single connections has nothing to look at in layers that a step leaves out. */
static int validate_layer_dropout(const struct reading *reading) {
    static const char why[] = "steps leave layers out with their connections, of which nothing is known then: "
                              "layer 0 is expected, or the other off";
    const struct config *config = reading->config;
    if (!(config->model.dropout.layer > 0)) return GDN_OK;
    if (config->train.prune.by != PRUNING_NONE)
        return impossible(reading, why, "train.dropout.layer", TRAIN(prune.by));
    if (config->delta_store.interval)
        return impossible(reading, why, "train.dropout.layer", STORE(interval));
    return GDN_OK;
}

static int validate_memory(const struct reading *reading) {
    static const char every[] =
        "every n-th layer is computed again by selective or full, one of which is expected: none "
        "computes nothing again, and auto chooses the layers itself";
    const struct train_config *train = &reading->config->train;
    bool layers = train->recompute == RECOMPUTE_SELECTIVE || train->recompute == RECOMPUTE_FULL;
    bool delta = train->recompute_delta == RECOMPUTE_SAME ? layers
                                                          : train->recompute_delta == RECOMPUTE_SELECTIVE ||
                                                                train->recompute_delta == RECOMPUTE_FULL;
    if (train->recompute_every > 1 && !layers && !delta)
        return impossible(reading, every, TRAIN(recompute_every), TRAIN(recompute));
    if (train->recompute_delta_every > 0 && !delta)
        return impossible(reading, every, TRAIN(recompute_delta_every), TRAIN(recompute_delta),
                          TRAIN(recompute));
    return GDN_OK;
}

/* Does a connection lead into the layer? */
static bool leads_into(const struct delta_config *delta, int layer) {
    const struct delta_edge *first;
    if (delta->num_edges) return delta_edges_into(delta, layer, &first) > 0;
    return layer + delta->embedding_source >= delta->distances[0];
}

static int validate_store(const struct reading *reading) {
    const struct delta_store_config *store = &reading->config->delta_store;
    const struct model_config *model = &reading->config->model;
    if (!store->interval) return GDN_OK;
    if ((store->ratio > 0) == (store->tolerance > 0))
        return impossible(reading,
                          store->ratio > 0 ? "differences are stored by ratio or by tolerance, not both"
                                           : "a store of differences needs a ratio above 0 and at most 1, or "
                                             "a tolerance above 0 and below 1",
                          STORE(interval), STORE(ratio), STORE(tolerance));
    if (!delta_connects(&model->delta))
        return impossible(reading, "a model without delta connections has no differences to store",
                          STORE(interval), DELTA(distances), DELTA(edges));
    if (store->num_layers && store->layers[store->num_layers - 1] >= model->num_layers)
        return impossible(reading, "layers are counted from 0 and must be below num_layers", STORE(layers),
                          MODEL(num_layers));
    bool any = !store->num_layers;
    for (int i = 0; i < store->num_layers && !any; i++) any = leads_into(&model->delta, store->layers[i]);
    if (any) return GDN_OK;
    if (model->delta.num_edges)
        return impossible(reading, "no connection leads into these layers", STORE(layers), DELTA(edges));
    return impossible(reading, "no connection leads into these layers: no distance reaches back from them",
                      STORE(layers), DELTA(distances));
}

/* `true` is a demand, which a run refuses to start without memory for; where no interval was asked for there
 * is nothing to demand it for, and configurations of the time when there were none by default go on to
 * fit. */
static void resolve_saving(struct reading *reading) {
    struct checkpoint_config *checkpoint = &reading->config->checkpoint;
    const struct place *minutes =
        &reading->place[key_find(KEY_PATH(checkpoint.interval_minutes)) - config_keys];
    if (checkpoint->asynchronous == SAVE_BACKGROUND && !checkpoint->interval && !minutes->file &&
        !minutes->set)
        checkpoint->asynchronous = SAVE_AUTO;
}

static int validate_spikes(const struct reading *reading) {
    long window = reading->config->spikes.window;
    if (!window || window >= SPIKE_MIN) return GDN_OK;
    return impossible(reading,
                      "a mean and deviation of fewer than 8 steps tell nothing; 8 or more are expected, "
                      "or 0 for none",
                      KEY_PATH(spikes.window));
}

/* Sources, then validations. */
static const char *set_name(const struct data_config *data, int i) {
    return i < data->num_sources ? data->sources[i].name : data->validations[i - data->num_sources].name;
}

/* Gives sources without a name one; then no two sets that are evaluated may be called alike. */
static int name_sets(const struct reading *reading) {
    struct data_config *data = &reading->config->data;
    for (int k = 0; k < data->num_sources; k++) {
        char **name = &data->sources[k].name;
        if (*name && (*name)[0]) continue;
        free(*name);
        if (asprintf(name, "source_%d", k) < 0) {
            *name = NULL;
            return gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
        }
    }
    bool held_out = data->validation.count || data->validation_fraction > 0;
    int sets = data->num_sources + data->num_validations;
    for (int i = 0; i < sets; i++) {
        const char *name = set_name(data, i);
        bool taken = held_out && !strcmp(name, VALIDATION_NAME);
        for (int j = 0; j < i; j++) taken = taken || !strcmp(name, set_name(data, j));
        if (!taken) continue;
        char why[256];
        snprintf(why, sizeof why,
                 "two validation sets would be called '%s': other names are expected (" VALIDATION_NAME
                 " is that of data.validation and data.validation_fraction)",
                 name);
        return impossible(reading, why, KEY_PATH(data.sources), KEY_PATH(data.validations));
    }
    return GDN_OK;
}

bool config_tokens_are_bytes(const struct config *config) {
    const struct token_format *format = token_format_of(config->data.format);
    const char *tokenizer = config->data.tokenizer;
    return (format->text || format->documents) && (!tokenizer[0] || !strcmp(tokenizer, "bytes"));
}

/* Lines of messages have these under `messages`, where nothing else is said. What a model was trained on says
 * nothing of data of another format that it is used on. */
static int validate_messages(const struct reading *reading) {
    struct data_config *data = &reading->config->data;
    const struct place *field = key_place(reading, KEY_PATH(data.field));
    const bool lines = token_format_of(data->format)->documents;
    if (!lines && reading->trained && !key_place(reading, KEY_PATH(data.messages))->set) data->messages = 0;
    if (!data->messages) return GDN_OK;
    if (!lines)
        return impossible(reading, "messages are lines of JSON; format jsonl is expected",
                          KEY_PATH(data.messages), KEY_PATH(data.format));
    if (!strcmp(data->tokenizer, "bytes"))
        return impossible(reading, "a tokenizer.json that has the template's special tokens is expected",
                          KEY_PATH(data.messages), KEY_PATH(data.tokenizer));
    if (field->file || field->set) return GDN_OK;
    free(data->field);
    data->field = strdup("messages");
    return data->field ? GDN_OK : gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
}

static int validate_data(const struct reading *reading) {
    const struct config *config = reading->config;
    const struct data_config *data = &config->data;
    if (data->train.count && data->num_sources > 0)
        return impossible(reading,
                          "the training data is either data.train or the mixture data.sources, not both",
                          KEY_PATH(data.train), KEY_PATH(data.sources));
    if (data->validation.count && data->validation_fraction > 0)
        return impossible(
            reading,
            "validation data is either a file of its own or a fraction of the training data, not both",
            KEY_PATH(data.validation), KEY_PATH(data.validation_fraction));
    TRY(name_sets(reading));
    TRY(validate_messages(reading));
    bool any =
        data->train.count || data->validation.count || data->num_sources > 0 || data->num_validations > 0;
    if (!data->field[0])
        return impossible(reading, "the name of the member that has a line's text cannot be empty",
                          KEY_PATH(data.field), KEY_PATH(data.format));
    if (!data->cache[0])
        return impossible(reading, "a folder is expected, which keeps what a tokenizer has made of text",
                          KEY_PATH(data.cache), KEY_PATH(data.tokenizer));
    if (any && config_tokens_are_bytes(config) && config->model.vocab_size <= TEXT_SEPARATOR)
        return impossible(
            reading,
            "text needs a vocab_size of at least 257: bytes are tokens 0 to 255, and 256 separates documents",
            MODEL(vocab_size), KEY_PATH(data.format));
    return GDN_OK;
}

/* A trained model's precision is a wish only where an override asks for it (train/command/saved_model.h). */
static int validate_precision(const struct reading *reading) {
    const struct config *config = reading->config;
    int precision = config->train.precision;
    if (config->device != DEVICE_CPU || precision == PRECISION_FP32 || precision == PRECISION_BF16)
        return GDN_OK;
    if (reading->trained && !key_place(reading, KEY_PATH(train.precision))->set) return GDN_OK;
    return impossible(reading, "the cpu computes in fp32 or bf16; one of these is expected, or device cuda",
                      KEY_PATH(train.precision), KEY_PATH(device));
}

int validate_combinations(struct reading *reading) {
    TRY(validate_model(reading));
    TRY(validate_train(reading));
    TRY(validate_mesh(reading));
    TRY(validate_data(reading));
    TRY(validate_memory(reading));
    TRY(validate_layer_dropout(reading));
    TRY(validate_store(reading));
    TRY(validate_spikes(reading));
    TRY(validate_prune(reading));
    resolve_saving(reading);
    if (reading->config->train.graphs && reading->config->train.noise_interval > 0)
        return impossible(reading, "a measurement of the noise is no repetition of recorded passes",
                          KEY_PATH(train.graphs), KEY_PATH(train.noise_interval));
    if (reading->config->train.graphs && reading->config->mesh.size[AXIS_PIPELINE] > 1)
        return impossible(
            reading,
            "stages wait for each other's messages, so their passes cannot be recorded; one of the two is "
            "expected",
            KEY_PATH(train.graphs), axis_rows[AXIS_PIPELINE].key);
    if (reading->config->mesh.compress_boundary > 0 && reading->config->train.noise_interval > 0)
        return impossible(reading, "a measurement of the noise would change what boundaries carry over",
                          KEY_PATH(mesh.compress_boundary), KEY_PATH(train.noise_interval));
    if (reading->config->train.graphs && reading->config->train.compress_sources > 0)
        return impossible(reading,
                          "sources are factorised on the host, so passes cannot be recorded; one of the two "
                          "is expected",
                          KEY_PATH(train.graphs), KEY_PATH(train.compress_sources));
    return validate_precision(reading);
}

int config_validate_for_training(const struct config *config) {
    const struct data_config *data = &config->data;
    const bool validation = data->validation.count || data->validation_fraction > 0 || data->num_validations > 0;
    if (config->train.prune.by == PRUNING_LEAVE_ONE_OUT && !validation)
        return gdn_fail(GDN_INPUT,
                        "train.prune.by is leave_one_out, which measures on validation data, but data.validation is '', "
                        "data.validation_fraction is 0 and data.validations is {}; give one of them, or another "
                        "train.prune.by");
    if (config->train.eval_interval > 0 && !validation)
        return gdn_fail(GDN_INPUT,
                        "train.eval_interval is %ld, but data.validation is '', data.validation_fraction is "
                        "0 and data.validations is {}: there is "
                        "nothing to evaluate on; give one of them, or eval_interval 0",
                        config->train.eval_interval);
    if (!config->data.train.count && config->data.num_sources == 0)
        return gdn_fail(
            GDN_INPUT,
            "data.train is '' and data.sources is []: training needs data; give a file or a glob as "
            "data.train, or a list of {path, weight} as data.sources");
    return GDN_OK;
}
