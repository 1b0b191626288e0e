/* The table of token mixers, and what a model keeps of those that its layers have. */
#include "model/mixer/mixer.h"
#include "kernels/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 16 };

static const struct mixer *row[MAX_ROWS] = {&mixer_attention};
static int rows = 1;

int mixer_register(const struct mixer *another) {
    if (rows == MAX_ROWS) abort();
    row[rows] = another;
    return rows++;
}

/* Its number in the table. */
static int row_of(const struct model_config *config, int layer) {
    return config->num_mixers ? config->mixers[layer % config->num_mixers] : 0;
}

const struct mixer *mixer_of(const struct model_config *config, int layer) {
    return row[row_of(config, layer)];
}

/* Layers until the rows begin again. */
static int turn_of(const struct model_config *config) {
    int turn = config->num_mixers ? config->num_mixers : 1;
    return turn < config->num_layers ? turn : config->num_layers;
}

const struct conflict *model_conflict(const struct model_config *config, int tensor) {
    const struct conflict *found = NULL;
    for (int l = 0; !found && l < turn_of(config); l++) found = mixer_of(config, l)->conflict(config, tensor);
    return found;
}

int model_validate_device(const struct model_config *config, const char *device) {
    for (int l = 0; l < turn_of(config); l++)
        if (mixer_of(config, l)->validate_device) TRY(mixer_of(config, l)->validate_device(config, device));
    return 0;
}

int mixer_weights_below(const struct model_config *config, int layer) {
    int turn = turn_of(config), one = 0, rest = 0;
    for (int l = 0; l < turn; l++) {
        one += mixer_of(config, l)->weights;
        if (l < layer % turn) rest += mixer_of(config, l)->weights;
    }
    return layer / turn * one + rest;
}

int mixers_validate_documents(const struct model *m) {
    for (int l = 0; m->documents && l < turn_of(&m->config); l++)
        if (!mixer_of(&m->config, l)->documents)
            return gdn_fail(GDN_INPUT,
                            "data.documents: mask: layers with token mixer %s see all documents of a "
                            "sample; join is expected",
                            mixer_of(&m->config, l)->name);
    return 0;
}

int mixers_validate_pieces(const struct model *m) {
    for (int l = 0; m->context->size > 1 && l < turn_of(&m->config); l++)
        if (!mixer_of(&m->config, l)->pieces)
            return gdn_fail(GDN_INPUT,
                            "mesh.context: %d: layers with token mixer %s need whole sequences; 1 is expected",
                            m->context->size, mixer_of(&m->config, l)->name);
    return 0;
}

bool mixers_create(struct model *m) {
    m->mixers = calloc((size_t)rows, sizeof *m->mixers);
    return m->mixers;
}

void mixers_free(struct model *m) {
    for (int i = 0; m->mixers && i < rows; i++) {
        free(m->mixers[i].common);
        free(m->mixers[i].own);
    }
    free(m->mixers);
}

/* What layers with the same row share of it. */
static struct mixing *shared_of(const struct model *m, int layer) {
    return &m->mixers[row_of(&m->config, layer)];
}

bool mixing_create(struct model *m, int layer, int weight, struct mixing *out) {
    struct mixing *shared = shared_of(m, layer);
    const struct mixer *mixer = mixer_of(&m->config, layer);
    if (!shared->row)
        *shared = (struct mixing){
            .row = mixer, .own = calloc(1, mixer->own_bytes), .common = calloc(1, mixer->common_bytes)};
    *out = (struct mixing){.row = mixer,
                           .layer = layer,
                           .weight = weight,
                           .own = calloc(1, mixer->own_bytes),
                           .common = shared->common};
    return shared->own && shared->common && out->own;
}

void mixing_free(struct mixing *x) {
    free(x->own);
    free(x->decode);
}

void mixing_copy(struct mixing *to, const struct mixing *from) {
    to->policy = from->policy;
    memcpy(to->own, from->own, from->row->own_bytes);
}

void lay_out_mixers_scratch(struct model *m, long T, long positions) {
    for (int i = 0; i < rows; i++)
        if (m->mixers[i].row) m->mixers[i].row->lay_out_scratch(m, m->mixers[i].common, T, positions);
}

void lay_out_mixing(struct model *m, const struct mixing *x, long T) {
    x->row->lay_out(m, x, shared_of(m, x->layer)->own, T);
}

void mixing_share(struct model *m, const struct mixing *x) {
    struct mixing *shared = shared_of(m, x->layer);
    shared->policy = (int)largest(shared->policy, x->policy);
}

void lay_out_shared_mixers(struct model *m, long T) {
    for (int i = 0; i < rows; i++)
        if (m->mixers[i].row) m->mixers[i].row->lay_out(m, &m->mixers[i], m->mixers[i].own, T);
}

int fill_mixers(struct model *m, long positions) {
    for (int i = 0; i < rows; i++)
        if (m->mixers[i].row && m->mixers[i].row->fill)
            TRY(m->mixers[i].row->fill(m, m->mixers[i].common, positions));
    return 0;
}
