/* Importance of layers, and the loss without those that go. */
#include "train/prune/layers.h"

#include "kernels/base/status.h"
#include "model/params/find.h"
#include "model/table/params.h"
#include "train/memory/state.h"

#include <math.h>
#include <stdlib.h>

const char *const prune_layers_by_words[] = {[LAYERS_LEAVE_ONE_OUT] = "leave-one-out", [LAYERS_ANGLE] = "angle", NULL};

/* What the work is done with. */
struct work {
    const struct prune_layers_job *job;
    struct prune_layers *out;
    int done, all;
};

/* A model in memory, made of the weights of another. */
struct smaller {
    struct cut cut;
    struct config config;
    struct table table;
    struct state_memory memory;
    struct state state;
    struct evaluation evaluation;
};

static void tell(struct work *w) {
    w->done++;
    if (w->job->tell) w->job->tell(w->job->context, w->done, w->all);
}

/* Every weight from where it was. */
static int copy_weights(const struct prune_layers_job *job, struct smaller *s) {
    for (int i = 0; i < s->table.rows; i++) {
        const struct row *row = &s->table.row[i];
        char name[sizeof row->name + 16];
        double factor;
        cut_name(&s->cut, &s->config.model, row->name, name, sizeof name, &factor);
        const struct row *from = params_find(job->table, name);
        if (!from || from->count != row->count)
            return gdn_fail(GDN_INTERNAL, "tensor %s would be %s, which is not there", row->name, name);
        for (long k = 0; k < row->count; k++)
            s->state.weight[row->offset + k] = (real)(factor * (double)job->state->weight[from->offset + k]);
    }
    return 0;
}

static int make_smaller(const struct prune_layers_job *job, const bool *gone, struct smaller *s) {
    TRY(cut_create(job->config, &job->evaluation->pipeline.edges, job->active, gone, &s->cut, &s->config));
    TRY(params_create(&s->config.model, NULL, &s->table));
    TRY(state_reserve(&s->memory, NULL, 0, &s->table, STATE_WEIGHTS, NULL, &s->state));
    return copy_weights(job, s);
}

/* The loss of the model without those layers. Collective. */
static int loss_without(struct work *w, const bool *gone, double *loss) {
    const struct prune_layers_job *job = w->job;
    struct mesh *mesh = job->evaluation->mesh;
    struct smaller *s = calloc(1, sizeof *s);
    int status = mesh_agree(mesh, s ? make_smaller(job, gone, s) : gdn_fail(GDN_INTERNAL, "out of memory for a model"));
    if (!status)
        status = evaluation_create(mesh, &s->config, &s->table, &s->state, job->ops, job->evaluation->validation,
                                   &s->evaluation);
    if (!status) status = evaluation_loss(&s->evaluation, NULL, NULL, NULL, loss);
    if (s) {
        evaluation_free(&s->evaluation);
        state_free(&s->memory);
        params_free(&s->table);
        cut_free(&s->cut);
    }
    free(s);
    if (!status) tell(w);
    return status;
}

/* ------------------------------------------------------------------------------------------- importance */

static int measure_angles(struct work *w) {
    const struct prune_layers_job *job = w->job;
    const struct evaluation_subject subject = {&job->config->model, job->table, job->state, job->ops};
    const int layers = job->config->model.num_layers;
    double *angle = calloc((size_t)layers + 1, sizeof *angle);
    int status = mesh_agree(job->evaluation->mesh,
                            angle ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for %d layers", layers));
    if (!status) status = evaluation_angles(job->evaluation, &subject, job->active, angle);
    for (int l = 0; !status && l < layers; l++)
        w->out->layer[l] = (struct prune_layer){.layer = l, .angle = angle[l], .increase = NAN, .kept = true};
    free(angle);
    if (!status) tell(w);
    return status;
}

static int leave_out_each(struct work *w) {
    struct prune_layers *out = w->out;
    for (int l = 0; l < out->count; l++) {
        double loss;
        out->gone[l] = true;
        TRY(loss_without(w, out->gone, &loss));
        out->gone[l] = false;
        out->layer[l].increase = isnan(loss) ? INFINITY : loss - out->loss;
    }
    return 0;
}

static double importance(const struct prune_layer *layer) {
    return isnan(layer->increase) ? layer->angle : layer->increase;
}

static int by_importance(const void *a, const void *b) {
    const double x = importance(a), y = importance(b);
    return x != y ? (x < y) - (x > y) : ((const struct prune_layer *)a)->layer - ((const struct prune_layer *)b)->layer;
}

static int measure(struct work *w) {
    const struct prune_layers_job *job = w->job;
    struct prune_layers *out = w->out;
    TRY(measure_angles(w));
    TRY(evaluation_loss(job->evaluation, job->active, NULL, NULL, &out->loss));
    tell(w);
    TRY(evaluation_tells(out->loss));
    if (job->by == LAYERS_LEAVE_ONE_OUT) TRY(leave_out_each(w));
    qsort(out->layer, (size_t)out->count, sizeof *out->layer, by_importance);
    for (int i = out->count - job->less; i < out->count; i++) {
        out->layer[i].kept = false;
        out->gone[out->layer[i].layer] = true;
    }
    return loss_without(w, out->gone, &out->kept_loss);
}

int prune_layers_measure(const struct prune_layers_job *job, struct prune_layers *out) {
    const size_t layers = (size_t)job->config->model.num_layers;
    *out = (struct prune_layers){.count = (int)layers,
                                 .layer = calloc(layers, sizeof *out->layer),
                                 .gone = calloc(layers, sizeof *out->gone),
                                 .kept_loss = NAN};
    struct work w = {job, out, 0, 3 + (job->by == LAYERS_LEAVE_ONE_OUT ? (int)layers : 0)};
    TRY(mesh_agree(job->evaluation->mesh,
                   out->layer && out->gone ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for %zu layers", layers)));
    return measure(&w);
}

void prune_layers_free(struct prune_layers *layers) {
    free(layers->layer);
    free(layers->gone);
    *layers = (struct prune_layers){0};
}
