/* A smaller checkpoint: the weights of another one without those of connections that are not kept. */
#include "train/prune/layers.h"
#include "train/prune/prune.h"

#include "dist/checkpoint/weights.h"
#include "kernels/base/status.h"
#include "kernels/base/utf8.h"
#include "model/params/edges.h"
#include "model/table/params.h"
#include "train/optimizer/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tensors of a checkpoint, of which one is in memory at a time. */
struct tensors {
    struct weights weights;
    char name[sizeof((struct row *)0)->name]; /* of that one; "": none */
    real *value;
    size_t filled, room;
    const struct cut *cut; /* tensors are of other layers, as this has it; NULL: of their own */
    const struct model_config *config;
};

static bool has(void *context, const struct row *row) {
    (void)context, (void)row;
    return true; /* weights_read says what is missing */
}

static int take(void *context, const real *values, size_t n) {
    struct tensors *t = context;
    memcpy(t->value + t->filled, values, n * sizeof *values);
    t->filled += n;
    return 0;
}

static int fetch(struct tensors *t, const struct row *row) {
    size_t count = (size_t)(row->shape[0] * row->shape[1]);
    if (!strcmp(t->name, row->name)) return 0;
    t->name[0] = 0, t->filled = 0;
    if (count > t->room) {
        free(t->value);
        t->room = 0;
        t->value = malloc(count * sizeof *t->value);
        if (!t->value) return gdn_fail(GDN_INTERNAL, "out of memory for %s", row->name);
        t->room = count;
    }
    TRY(weights_read(&t->weights, row, take, t));
    snprintf(t->name, sizeof t->name, "%s", row->name);
    return 0;
}

static int read_lines(void *context, const struct row *row, long first, long n, real *out) {
    struct tensors *t = context;
    struct row from = *row;
    double factor = 1;
    if (t->cut) cut_name(t->cut, t->config, row->name, from.name, sizeof from.name, &factor);
    TRY(fetch(t, &from));
    const real *value = t->value + first * row->shape[1];
    for (long i = 0; i < n * row->shape[1]; i++) out[i] = (real)(factor * (double)value[i]);
    return 0;
}

/* What is left is trained as it is: defaults. */
static void prune_never(struct config *config) {
    config->train.prune = (struct prune_config){.keep = 0.5, .interval = 100, .batches = 4};
}

/* Lists the connections kept in place of distances. */
static int list_kept(const struct prune *prune, struct config *config) {
    struct delta_config *delta = &config->model.delta;
    delta->num_distances = delta->num_edges = delta->stage_steps = 0;
    delta->embedding_source = false;
    prune_never(config);
    for (int i = 0; i < prune->count; i++) {
        const struct prune_edge *edge = &prune->edge[i];
        if (!edge->kept) continue;
        if (delta->num_edges == MAX_EDGES)
            return gdn_fail(GDN_INPUT, "more than %d connections are kept: model.delta.edges can list %d",
                            MAX_EDGES, MAX_EDGES);
        delta->edges[delta->num_edges++] = (struct delta_edge){edge->target, edge->source};
    }
    delta_edges_sort(delta);
    return 0;
}

/* Where no connection is left that differences are stored of, none are. */
static void keep_store(const struct delta_config *delta, struct delta_store_config *store) {
    const struct delta_edge *first;
    bool any = delta->num_edges && !store->num_layers;
    for (int i = 0; i < store->num_layers; i++)
        any = any || delta_edges_into(delta, store->layers[i], &first);
    if (!any) store->interval = 0;
}

/* The configuration of what is left as text that can be read again; free() it. */
static int describe(const struct config *config, char **text) {
    struct config read;
    *text = config_text(config);
    if (!*text) return gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
    int status = config_parse(*text, "the configuration of what is kept", NULL, 0, &read);
    if (!status) config_free(&read);
    return status;
}

static int write_checkpoint(const char *path, struct config *config, struct tensors *tensors) {
    struct table table;
    TRY(params_create(&config->model, NULL, &table));
    groups_keep_named(&config->train, &table);
    struct checkpoint_info info = tensors->weights.checkpoint.info; /* borrowed */
    info.pruning = NULL; /* the connections that are there are all used */
    struct weight_source source = {"the checkpoint", has, read_lines, tensors};
    int status = describe(config, &info.config);
    if (!status) status = weights_write(path, &table, &info, &source);
    free(info.config);
    params_free(&table);
    return status;
}

/* The path that the checkpoint will have, from wherever a run starts. */
static char *final_path(const char *directory) {
    char *path, *here = directory[0] == '/' ? NULL : getcwd(NULL, 0);
    if (asprintf(&path, "%s%s%s/checkpoint.h5", here ? here : "", here ? "/" : "", directory) < 0)
        path = NULL;
    free(here);
    return path;
}

int prune_verify_folder(const char *directory) {
    char *path = final_path(directory);
    if (!path) return gdn_fail(GDN_INTERNAL, "out of memory for a path");
    size_t length = strlen(path), i = 0, width = 1;
    for (; i < length && width; i += width) width = utf8_bytes(path + i, length - i);
    free(path);
    if (width) return 0;
    return gdn_fail(GDN_INPUT,
                    "--output %s: config.yaml names the folder by its whole path, in which UTF-8 is expected",
                    directory);
}

static int write_config(const struct outcome *outcome, struct config *config) {
    free(config->checkpoint.init_from);
    config->checkpoint.init_from = final_path(outcome->path);
    if (!config->checkpoint.init_from) return gdn_fail(GDN_INTERNAL, "out of memory for a path");
    char *text;
    int status = describe(config, &text);
    if (!status) status = outcome_write(outcome, "config.yaml", text);
    free(text);
    return status;
}

static int fill(const struct outcome *outcome, struct config *config, struct tensors *tensors) {
    char *path;
    if (asprintf(&path, "%s/checkpoint.h5", outcome->partial) < 0)
        return gdn_fail(GDN_INTERNAL, "out of memory for a path");
    int status = write_checkpoint(path, config, tensors);
    free(path);
    return status ? status : write_config(outcome, config);
}

/* A pipeline that has more stages than layers are left has one. */
static void fit_stages(int layers, struct mesh_config *mesh) {
    if ((long)mesh->size[AXIS_PIPELINE] * mesh_chunks(mesh) <= layers) return;
    mesh->size[AXIS_PIPELINE] = mesh->interleave = 1;
    mesh->schedule = SCHEDULE_1F1B;
    mesh->schedule_memory = mesh->compress_boundary = 0;
}

/* What is kept of a configuration: connections, or layers and theirs. */
struct kept {
    const struct prune *prune;
    const struct cut *cut;
};

static int keep(const struct kept *kept, struct config *config) {
    struct delta_config *delta = &config->model.delta;
    if (kept->prune) return list_kept(kept->prune, config);
    config->model.num_layers = kept->cut->num_layers;
    config->delta_store.num_layers = 0; /* numbers of others */
    fit_stages(kept->cut->num_layers, &config->mesh);
    cut_groups(kept->cut, &config->train);
    prune_never(config);
    delta->num_distances = delta->stage_steps = 0;
    delta->embedding_source = false;
    delta->num_edges = kept->cut->edges;
    for (int i = 0; i < delta->num_edges; i++) delta->edges[i] = kept->cut->edge[i].now;
    return 0;
}

static int fill_folder(const struct kept *kept, const char *path, const struct outcome *outcome) {
    struct config config;
    struct config_asked asked;
    struct tensors tensors = {.name = "", .cut = kept->cut, .config = &config.model};
    TRY(weights_open(path, &tensors.weights));
    int status = config_parse_trained(tensors.weights.checkpoint.info.config, path, NULL, 0, &config, &asked);
    if (!status) {
        status = keep(kept, &config);
        keep_store(&config.model.delta, &config.delta_store);
        if (!status) status = fill(outcome, &config, &tensors);
        config_free(&config);
    }
    weights_close(&tensors.weights);
    free(tensors.value);
    return status;
}

int prune_write(const struct prune *prune, const char *path, struct outcome *outcome) {
    TRY(fill_folder(&(struct kept){.prune = prune}, path, outcome));
    return outcome_finish(outcome);
}

int prune_layers_write(const struct prune_layers *layers, const struct prune_layers_job *job, const char *path,
                       struct outcome *outcome) {
    struct cut cut;
    struct config *config = malloc(sizeof *config); /* what it would be of the model as it was opened */
    int status = config ? cut_create(job->config, &job->evaluation->pipeline.edges, job->active, layers->gone, &cut, config)
                        : gdn_fail(GDN_INTERNAL, "out of memory for a configuration");
    if (!status) status = fill_folder(&(struct kept){.cut = &cut}, path, outcome);
    if (config) cut_free(&cut);
    free(config);
    return status ? status : outcome_finish(outcome);
}
