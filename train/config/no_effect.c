#include "train/config/no_effect.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/wire.h"
#include "model/rules/rules.h"
#include "train/config/private.h"

/* The last layer reaches farthest: to layer 0, or to the embedding below it. */
static void print_unreachable(const struct model_config *model, FILE *out) {
    const struct delta_config *delta = &model->delta;
    int farthest = model->num_layers - 1 + (delta->embedding_source ? 1 : 0), first = 0;
    while (first < delta->num_distances && delta->distances[first] <= farthest) first++;
    if (first == delta->num_distances) return;
    fprintf(out, "note      model.delta.distances: ");
    for (int i = first; i < delta->num_distances; i++)
        fprintf(out, "%s%d", i > first ? ", " : "", delta->distances[i]);
    if (farthest > 0)
        fprintf(out, " of no effect: with %d layers, the farthest source lies %d back\n", model->num_layers,
                farthest);
    else
        fprintf(out, " of no effect: one layer has no layer to read\n");
}

/* Does no layer that the rule enters read such sources? */
static bool unread(const struct model_config *model, const struct rule_config *only) {
    struct edge edge[model->num_layers + 1];
    for (int l = 0; l < model->num_layers; l++)
        if (rules_row(only->row)->edges(model, only, l, edge)) return false;
    return true;
}

static bool among(int number, const int *numbers, int count) {
    for (int i = 0; i < count; i++)
        if (numbers[i] == number) return true;
    return false;
}

/* A kind's own sources and distances are for models of any depth: of these nobody is told. */
static void print_unread(const struct model_config *model, int entry, FILE *out) {
    const struct rule_config *rule = &model->rules[entry];
    const int sources = rule_has(rule, SETTING_SOURCES) ? rule->num_sources : 0,
              distances = rule_has(rule, SETTING_DISTANCES) ? rule->num_distances : 0;
    const struct rule_config *own = &rules_row(rule->row)->defaults;
    for (int i = 0; i < sources + distances; i++) {
        struct rule_config only = *rule;
        const bool far = i >= sources;
        only.num_sources = !far, only.num_distances = far;
        only.sources[0] = far ? 0 : rule->sources[i];
        only.distances[0] = far ? rule->distances[i - sources] : 0;
        if (far ? among(only.distances[0], own->distances, own->num_distances)
                : among(only.sources[0], own->sources, own->num_sources))
            continue;
        if (!unread(model, &only)) continue;
        fprintf(out,
                "note      model.rules[%d].%s: %d of no effect: no layer that %s enters has a source there\n",
                entry, far ? "distances" : "sources", far ? only.distances[0] : only.sources[0],
                rules_row(rule->row)->name);
    }
}

/* Distance i is introduced at step i · stage_steps (active_distances). */
static void print_late(const struct config *config, FILE *out) {
    const struct delta_config *delta = &config->model.delta;
    long steps = config->train.steps;
    if (!delta->stage_steps || !delta->num_distances) return;
    long introduced = (steps - 1) / delta->stage_steps + 1;
    if (introduced >= delta->num_distances) return;
    fprintf(out, "note      model.delta.stage_steps: %d introduces %ld of the %d distances in %ld steps\n",
            delta->stage_steps, introduced, delta->num_distances, steps);
}

/* Keys whose paths begin like this, of something that is not used. */
static void print_unused(const struct config *config, const char *beginning, const char *why, FILE *out) {
    for (int k = 0; k < CONFIG_KEYS; k++) {
        const struct key *key = &config_keys[k];
        if (strncmp(key->path, beginning, strlen(beginning)) != 0) continue;
        char *value = value_text(config, key);
        if (value && strcmp(value, key->value) != 0)
            fprintf(out, "note      %s: %s of no effect: %s\n", key->path, value, why);
        free(value);
    }
}

static void print_unused_wire(const struct mesh_config *mesh, FILE *out) {
    if (mesh->wire == WIRE_BF16 && mesh->size[AXIS_TENSOR] == 1 && mesh->size[AXIS_PIPELINE] == 1)
        fprintf(out,
                "note      mesh.wire: bf16 of no effect: there are no tensor or pipeline ranks to send to\n");
}

static void print_unused_pieces(const struct mesh_config *mesh, FILE *out) {
    if (mesh->tensor_pieces > 1 && mesh->size[AXIS_TENSOR] == 1)
        fprintf(out, "note      mesh.tensor_pieces: %d of no effect: there are no tensor ranks to sum over\n",
                mesh->tensor_pieces);
}

static void print_unused_group(int group, const int size[AXES], FILE *out) {
    if (group > 1 && group == axes_joined(size).size[AXIS_COPIES])
        fprintf(out, "note      mesh.sum_group: %d of no effect: all copies are one group\n", group);
}

void no_effect_print(const struct config *config, const int size[AXES], FILE *out) {
    const struct train_config *train = &config->train;
    print_unreachable(&config->model, out);
    for (int i = 0; i < config->model.num_rules; i++) print_unread(&config->model, i, out);
    print_late(config, out);
    if (train->optimizer != OPTIMIZER_MUON) print_unused(config, "train.muon.", "train.optimizer is not muon", out);
    if (train->prune.by != PRUNING_LEAVE_ONE_OUT)
        print_unused(config, "train.prune.batches", "train.prune.by is not leave_one_out", out);
    print_unused_wire(&config->mesh, out);
    print_unused_pieces(&config->mesh, out);
    print_unused_group(config->mesh.sum_group, size, out);
    if (!train->warmup_tokens && train->warmup_steps > train->steps)
        fprintf(out,
                "note      train.warmup_steps: %ld is beyond train.steps: %ld, so the learning rate ends at "
                "%.3g, before it has risen to train.lr\n",
                train->warmup_steps, train->steps,
                train->lr * (double)train->steps / (double)train->warmup_steps);
}
