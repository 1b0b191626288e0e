#include "train/run/tokenized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/documents/cache.h"
#include "data/documents/conversation.h"
#include "data/format.h"
#include "dist/mpi/activity.h"
#include "train/evaluation/data_part.h"
#include "train/records/reading.h"

struct maker {
    const struct mesh *mesh;
    FILE *log; /* NULL: silent */
    struct cache_options options;
    struct reading_progress progress;
    int hosts, first; /* of this host the lowest rank */
};

static void progress(void *input, long done, long all) {
    struct maker *maker = input;
    activity_renew();
    if (all) reading_tell(&maker->progress, done, all);
}

/* One list of files, on a rank that makes the cache where it is missing. */
static int need(struct maker *maker, const char *name, const char *key) {
    char *path;
    bool made, damaged;
    reading_begin(&maker->progress, maker->log);
    if (maker->log) fflush(maker->log);
    int status = cache_need(&maker->options, key, &path, &made, &damaged);
    reading_end(&maker->progress);
    if (!status && made && maker->log)
        fprintf(maker->log, "gdn: note: %s: %s %s\n", name,
                damaged ? "the tokens kept were not whole, and were made anew:"
                        : "text was made tokens, kept in",
                path);
    free(path);
    return status;
}

static int see(const char *path) {
    if (!access(path, R_OK)) return 0;
    return gdn_fail(GDN_INPUT,
                    "data.cache: this rank cannot read %s, which another rank of its node has made: %s", path,
                    strerror(errno));
}

/* Rank 0 first, for all that see what it writes; then the first rank of every other node, which finds that or
 * has a file system of its own. */
static int make(struct maker *maker, const char *name, const char *key) {
    const struct mesh *mesh = maker->mesh;
    TRY(mesh_agree_late(mesh, mesh->rank ? 0 : need(maker, name, key)));
    const bool another = maker->hosts > 1 && mesh->rank && maker->first == mesh->rank;
    return maker->hosts > 1 ? mesh_agree_late(mesh, another ? need(maker, name, key) : 0) : 0;
}

/* Puts the cache's file in the place of a list of text files. */
static int replace(struct maker *maker, struct path_list *list) {
    char key[CACHE_KEY] = "", name[256], *path = NULL;
    path_list_name(list, name, sizeof name);
    maker->options.inputs = *list;
    TRY(mesh_agree_late(maker->mesh, maker->mesh->rank ? 0 : cache_key(&maker->options, key)));
    TRY(mesh_broadcast(maker->mesh, key, sizeof key));
    TRY(make(maker, name, key));
    int status = cache_path(maker->options.folder, key, &path);
    if (!status) status = see(path);
    path_list_free(list);
    if (!status) status = path_list_add(list, path);
    if (!status && !(list->made_of = strdup(name)))
        status = gdn_fail(GDN_INTERNAL, "%s: no memory for its name", name);
    free(path);
    return mesh_agree(maker->mesh, status);
}

/* ---------------------------------------------------------------------------------- the configuration */

static int copy_list(const struct path_list *from, struct path_list *to) {
    *to = (struct path_list){0};
    for (int i = 0; i < from->count; i++) TRY(path_list_add(to, from->paths[i]));
    return 0;
}

static int copy_sets(const struct source_config *from, int count, struct source_config **to) {
    *to = calloc((size_t)count + 1, sizeof **to);
    if (!*to) return gdn_fail(GDN_INTERNAL, "out of memory for %d sets of data", count);
    for (int i = 0; i < count; i++) {
        (*to)[i] = from[i];
        TRY(copy_list(&from[i].path, &(*to)[i].path));
    }
    return 0;
}

/* Paths of its own; names stay the given configuration's. */
static int copy_paths(const struct data_config *from, struct data_config *to) {
    int status = copy_list(&from->train, &to->train), next = copy_list(&from->validation, &to->validation);
    if (!status) status = next;
    next = copy_sets(from->sources, from->num_sources, &to->sources);
    if (!status) status = next;
    next = copy_sets(from->validations, from->num_validations, &to->validations);
    return status ? status : next;
}

static int replace_all(struct maker *maker, enum tokenized_sets sets, struct data_config *data) {
    if (sets == TOKENIZED_ALL || data_held_out(data) > 0) {
        if (data->train.count) TRY(replace(maker, &data->train));
        for (int i = 0; i < data->num_sources; i++) TRY(replace(maker, &data->sources[i].path));
    }
    if (data->validation.count) TRY(replace(maker, &data->validation));
    for (int i = 0; i < data->num_validations; i++) TRY(replace(maker, &data->validations[i].path));
    return 0;
}

int tokenized_open(const struct config *config, const struct run_tokenizer *tokenizer,
                   const struct mesh *mesh, enum tokenized_sets sets, FILE *log, struct tokenized *out) {
    const struct token_format *format = token_format_of(config->data.format);
    *out = (struct tokenized){.config = *config};
    if (!format->documents && (!format->text || !tokenizer->carried.file)) return 0;
    const struct conversation_template *template = conversation_template_chosen(config->data.messages);
    struct maker maker = {.mesh = mesh,
                          .log = mesh->rank ? NULL : log,
                          .options = {.folder = config->data.cache,
                                      .tokenizer = &tokenizer->carried,
                                      .lines = format->documents,
                                      .field = config->data.field,
                                      .messages = template ? template->name : NULL,
                                      .progress = progress,
                                      .input = &maker},
                          .hosts = 1};
    if (maker.log && tokenizer->bytes.separator < 0)
        fprintf(
            maker.log,
            "gdn: note: no token stands between documents: no tokenizer_config.json with an eos_token came "
            "with %s\n",
            tokenizer->carried.name);
    out->owned = true;
    out->config.data.format = token_format_number(&hdf5_format);
    TRY(mesh_agree(mesh, copy_paths(&config->data, &out->config.data)));
    int index;
    if (mesh->size > 1) TRY(mesh_hosts(mesh, &maker.first, &index, &maker.hosts));
    return replace_all(&maker, sets, &out->config.data);
}

static void free_sets(struct source_config *set, int count) {
    for (int i = 0; set && i < count; i++) path_list_free(&set[i].path);
    free(set);
}

void tokenized_free(struct tokenized *tokenized) {
    struct data_config *data = &tokenized->config.data;
    if (tokenized->owned) {
        path_list_free(&data->train);
        path_list_free(&data->validation);
        free_sets(data->sources, data->num_sources);
        free_sets(data->validations, data->num_validations);
    }
    *tokenized = (struct tokenized){.owned = false};
}
