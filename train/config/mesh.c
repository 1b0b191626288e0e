/* What does not go together with the mesh: axes that divide the model, the pipeline's schedule, what travels.
 */
#include "dist/layout/layout.h"
#include "kernels/base/status.h"
#include "model/model.h"
#include "model/rules/rules.h"
#include "train/config/private.h"

/* Heads and channels are shared out evenly to tensor ranks. */
static int validate_tensor(const struct reading *reading) {
    const struct model_config *model = &reading->config->model;
    int tensor = reading->config->mesh.size[AXIS_TENSOR];
    TRY(possible(reading, model_conflict(model, tensor)));
    if (model->intermediate_size % tensor)
        return impossible(reading, "tensor ranks share the MLP evenly: tensor must divide intermediate_size",
                          axis_rows[AXIS_TENSOR].key, MODEL(intermediate_size));
    if (model->vocab_size < tensor)
        return impossible(reading, "each tensor rank needs at least one token of the vocabulary",
                          axis_rows[AXIS_TENSOR].key, MODEL(vocab_size));
    int sharing = reading->config->mesh.delta == DELTA_CHANNEL ? tensor : 1;
    return possible_rules(reading, tensor, sharing);
}

/* A stage that has some of the first layer's tensors has not all that Muon takes as one matrix with them. */
static int validate_borrowed(const struct reading *reading) {
    const struct config *config = reading->config;
    if (config->train.optimizer != OPTIMIZER_MUON || config->train.muon.split != MUON_WHOLE ||
        config->mesh.size[AXIS_PIPELINE] == 1 || !rules_borrow(&config->model))
        return GDN_OK;
    return impossible(
        reading,
        "a rule between layers has later stages hold the first layer's v_proj without q_proj and "
        "k_proj, with which it is one matrix to muon: expected is split qkv or head, or one stage",
        "model.rules", TRAIN(muon.split), axis_rows[AXIS_PIPELINE].key);
}

static int validate_schedule(const struct reading *reading) {
    const struct mesh_config *mesh = &reading->config->mesh;
    if (mesh->schedule == SCHEDULE_1F1B && mesh->schedule_memory > 0)
        return impossible(reading, "schedule_memory is for what waits in zero_bubble or zero_bubble_v",
                          MESH(schedule_memory), MESH(schedule));
    if (mesh->schedule == SCHEDULE_1F1B) return GDN_OK;
    if (reading->config->train.memory > 0 && mesh->schedule_memory > reading->config->train.memory)
        return impossible(reading, "what training takes is a part of what a rank may use",
                          MESH(schedule_memory), TRAIN(memory));
    bool v = mesh->schedule == SCHEDULE_ZERO_BUBBLE_V;
    if (mesh->size[AXIS_PIPELINE] == 1)
        return impossible(reading,
                          "zero_bubble fills what pipeline ranks wait: with one, the schedule is 1f1b",
                          MESH(schedule), axis_rows[AXIS_PIPELINE].key);
    if (mesh->interleave > 1)
        return impossible(
            reading,
            v ? "zero_bubble_v has two stages on each pipeline rank: interleave 1 is expected, or 1f1b"
              : "zero_bubble has one stage on each pipeline rank: interleave 1 is expected, or 1f1b",
            MESH(schedule), MESH(interleave));
    if (reading->config->train.precision == PRECISION_FP8)
        return impossible(
            reading,
            "scales of fp8 follow the order of products, which zero_bubble changes: another precision is "
            "expected, or 1f1b",
            MESH(schedule), TRAIN(precision));
    if (v && 2L * mesh->size[AXIS_PIPELINE] > reading->config->model.num_layers)
        return impossible(reading, "each of zero_bubble_v's 2 x pipeline stages needs at least one layer",
                          MESH(schedule), axis_rows[AXIS_PIPELINE].key, MODEL(num_layers));
    return GDN_OK;
}

static int validate_pieces(const struct reading *reading) {
    const struct config *config = reading->config;
    const struct mesh_config *mesh = &config->mesh;
    if (mesh->tensor_pieces == 1) return GDN_OK;
    if (mesh->sequence_parallel)
        return impossible(reading,
                          "sums of rows that tensor ranks share are not cut into pieces: 1 is expected, or "
                          "sequence_parallel false",
                          MESH(tensor_pieces), MESH(sequence_parallel));
    if (config->train.precision == PRECISION_FP8)
        return impossible(reading,
                          "fp8 scales a product's rows together, which pieces are not: 1 is expected, or "
                          "another precision",
                          MESH(tensor_pieces), TRAIN(precision));
    return GDN_OK;
}

int validate_mesh(const struct reading *reading) {
    const struct mesh_config *mesh = &reading->config->mesh;
    TRY(validate_tensor(reading));
    TRY(validate_pieces(reading));
    TRY(validate_schedule(reading));
    if (!reading->trained) TRY(validate_context(reading));
    if (mesh->interleave > 1 && mesh->size[AXIS_PIPELINE] == 1)
        return impossible(reading,
                          "stages are interleaved on two or more pipeline ranks: with one, interleave is 1",
                          MESH(interleave), axis_rows[AXIS_PIPELINE].key);
    if (mesh->compress_boundary > 0 && mesh->size[AXIS_PIPELINE] == 1)
        return impossible(reading,
                          "compress_boundary is for what crosses stages: it needs two or more pipeline ranks",
                          MESH(compress_boundary), axis_rows[AXIS_PIPELINE].key);
    if (mesh->wire == WIRE_FP32 && sizeof(real) != sizeof(float) && !reading->trained)
        return impossible(
            reading, "this program stores " GDN_REAL_NAME ", which travels as stored or as bf16", MESH(wire));
    if ((long)mesh->size[AXIS_PIPELINE] * mesh->interleave > reading->config->model.num_layers)
        return impossible(reading, "each of pipeline x interleave stages needs at least one layer",
                          axis_rows[AXIS_PIPELINE].key, MESH(interleave), MODEL(num_layers));
    return validate_borrowed(reading);
}
