#include "train/command/prune_layers.h"

#include "kernels/base/status.h"
#include "train/command/json_line.h"
#include "train/loop/loop.h"
#include "train/records/reading.h"

#include <math.h>
#include <string.h>

static int validate(const struct subject *subject, const struct prune_layers_wish *wish) {
    const struct model_config *model = &subject->saved.config.model;
    if (wish->less >= model->num_layers)
        return gdn_fail(GDN_INPUT, "--layers %d: the model has %d layers, of which one at least stays", wish->less,
                        model->num_layers);
    if (model->num_rules)
        return gdn_fail(GDN_INPUT, "--layers: a model with model.rules says by number which layers they enter; a model "
                                   "without is expected");
    if (model->exit.num_layers)
        return gdn_fail(GDN_INPUT, "--layers: a model with model.exit says by number which layers have an exit; a model "
                                   "without is expected");
    if (!subject->ops->device->host)
        return gdn_fail(GDN_INPUT, "--layers is measured on the cpu alone; give --set device=cpu");
    return 0;
}

static void tell(void *context, int done, int all) {
    reading_tell_each(context, "evaluations", done, all);
}

static void print(const struct subject *subject, const struct prune_layers_wish *wish, const struct prune_layers *p) {
    printf("checkpoint   %s, after %ld steps\n", subject->saved.path, subject->saved.step);
    printf("data         %ld sequences, %.0f tokens\n", validation_sequences(&subject->validation, 0),
           subject->evaluation.result[0].counted);
    printf("layers       %d, of which %d are kept\n", p->count, p->count - wish->less);
    printf("loss         %.9g nats a token with all, %.9g with those kept (%+.2f%%)\n", p->loss, p->kept_loss,
           100 * (p->kept_loss / p->loss - 1));
    if (wish->output) printf("written      %s: checkpoint.h5, config.yaml\n", wish->output);
    printf("\n  layer     angle%s\n", wish->by == LAYERS_LEAVE_ONE_OUT ? "    without it" : "");
    for (int i = 0; i < p->count; i++) {
        const struct prune_layer *layer = &p->layer[i];
        printf("  %5d  %8.5f", layer->layer, layer->angle);
        if (!isnan(layer->increase)) printf("  %+12.6g", layer->increase);
        printf("  %s\n", layer->kept ? "kept" : "-");
    }
}

static int print_json(const struct subject *subject, const struct prune_layers_wish *wish,
                      const struct prune_layers *p) {
    json_t *layers = json_array();
    for (int i = 0; i < p->count; i++)
        json_array_append_new(layers, json_pack("{s:i, s:o, s:o, s:b}", "layer", p->layer[i].layer, "angle",
                                                json_finite(p->layer[i].angle), "increase",
                                                json_finite(p->layer[i].increase), "kept", p->layer[i].kept));
    if (json_array_size(layers) != (size_t)p->count) {
        json_decref(layers);
        return gdn_fail(GDN_INTERNAL, "out of memory for the output as JSON");
    }
    const char *path = subject->saved.path;
    return json_print_line(json_pack(
        "{s:o, s:I, s:I, s:I, s:o, s:s, s:i, s:o, s:o, s:o}", "checkpoint", json_bytes(path, strlen(path)), "step",
        (json_int_t)subject->saved.step, "sequences", (json_int_t)validation_sequences(&subject->validation, 0), "tokens",
        (json_int_t)subject->evaluation.result[0].counted, "loss", json_finite(p->loss), "by", prune_layers_by_words[wish->by], "kept",
        p->count - wish->less, "kept_loss", json_finite(p->kept_loss), "output",
        wish->output ? json_bytes(wish->output, strlen(wish->output)) : json_null(), "layers", layers));
}

/* On rank 0. */
static int give(const struct subject *subject, const struct prune_layers_wish *wish, const struct prune_layers_job *job,
                const struct prune_layers *layers, struct outcome *outcome) {
    if (wish->output) TRY(prune_layers_write(layers, job, subject->saved.path, outcome));
    if (wish->json) return print_json(subject, wish, layers);
    print(subject, wish, layers);
    return 0;
}

int prune_layers_command(struct subject *subject, const struct prune_layers_wish *wish, struct outcome *outcome) {
    const struct saved_model *saved = &subject->saved;
    const struct mesh *mesh = &subject->mesh;
    struct reading_progress progress;
    struct prune_layers layers;
    TRY(mesh_agree(mesh, validate(subject, wish)));
    const struct prune_layers_job job = {.evaluation = &subject->evaluation,
                                         .active = loop_active(&saved->config, &subject->evaluation.pipeline, saved->step),
                                         .config = &saved->config,
                                         .table = &saved->table,
                                         .state = &saved->state,
                                         .ops = subject->ops,
                                         .by = wish->by,
                                         .less = wish->less,
                                         .tell = tell,
                                         .context = &progress};
    reading_begin(&progress, mesh->rank == 0 ? stderr : NULL);
    int status = prune_layers_measure(&job, &layers);
    reading_end(&progress);
    if (!status)
        status = mesh_agree(mesh, mesh->rank == 0 ? give(subject, wish, &job, &layers, outcome) : GDN_OK);
    prune_layers_free(&layers);
    return gdn_fail_in(status, "%s", saved->path);
}
