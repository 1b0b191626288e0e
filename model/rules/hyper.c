/* Hyper-connections (Zhu et al. 2025; model.md, 12): the residual stream is n streams, which begin as copies
 * of the embedding's output. A layer's blocks, its mixer and its MLP, each read a weighted sum of them, and
 * what a block adds enters each of them by a number, after they have been mixed. The numbers are a block's
 * own (form `static`), or each token's, those and what small maps make of the normalised streams (`dynamic`).
 * At the start the b-th block reads stream b mod n, writes by 1 and mixes nothing: all streams are what the
 * one would be. Mixing may be kept doubly stochastic (Xie et al. 2025).
 *
 * The rule has no edges: it is around the blocks (struct streams of model/layer/layer.h), and its layers'
 * streams are what chunks and stages pass on. */
#include "kernels/base/streams.h"
#include "model/params/stream.h"
#include "model/rules/rules.h"

enum form { STATIC, DYNAMIC };

/* Of a block. A token has `numbers` = n·(n + 2): see kernels/delta_operations.h. */
struct around {
    struct tensor
        weight; /* [numbers]: what reading, writing and mixing differ by from the start, in this order */
    struct tensor maps;  /* [n + 2, D]: of reading, of writing, of mixing into each stream */
    struct tensor scale; /* [3] of what the maps say: reading, writing, mixing */
    /* Saved, and so little that it is never computed again: */
    real *numbers; /* [R, numbers], static [numbers] */
    real *mapped;  /* [R, n, n + 2] maps of each stream, before the norm's scale */
    real *rstd;    /* [R, n] */
    real *added;   /* [R, D] what the block has added */
};

struct hyper {
    int policy;
    struct around block[BLOCKS];
};

/* Scratch of the backward pass. */
struct common {
    real *dnumbers, *dmapped; /* [R, numbers] */
    real *drstd, *k;          /* [R, n], and the factor of a stream in its gradient */
    real *dscale;             /* [R, 3] */
    real *sum;                /* [numbers] */
};

static bool is_dynamic(const struct rule_config *settings) {
    return settings->form == DYNAMIC;
}

static long numbers_of(const struct rule_config *settings) {
    return settings->streams * (settings->streams + 2L);
}

/* ------------------------------------------------------------------------------------- of a configuration */

enum { READ, WRITE, MIXING, MAPS, SCALE, LEAVES };
static const char *const leaf_name[BLOCKS][LEAVES] = {
    [BLOCK_MIXER] = {"mixer.read", "mixer.write", "mixer.mixing", "mixer.maps.weight", "mixer.scale"},
    [BLOCK_MLP] = {"mlp.read", "mlp.write", "mlp.mixing", "mlp.maps.weight", "mlp.scale"}};

/* Reading, writing and mixing lie in memory as one. */
static int leaves(const struct model_config *config, const struct rule_config *settings, struct leaf *leaf) {
    long n = settings->streams;
    int count = 0;
    for (int b = 0; b < BLOCKS; b++) {
        const char *const *name = leaf_name[b];
        struct leaf *of = leaf + count;
        of[READ] = leaf_vector(name[READ], SPLIT_NONE, n, 0);
        of[WRITE] = leaf_vector(name[WRITE], SPLIT_NONE, n, 0);
        of[MIXING] = leaf_vector(name[MIXING], SPLIT_NONE, n * n, 0);
        of[WRITE].joined = of[MIXING].joined = true;
        of[MAPS] = leaf_matrix(name[MAPS], SPLIT_NONE, n + 2, config->hidden_size, 0);
        of[MAPS].decays = false;
        of[SCALE] = leaf_vector(name[SCALE], SPLIT_NONE, 3, 0.01);
        for (int i = 0; i < LEAVES; i++)
            if (i != MAPS) of[i].lr_scale = settings->lr_scale;
        count += is_dynamic(settings) ? LEAVES : MAPS;
    }
    return count;
}

/* Of both blocks: reading, mixing and writing, and maps. */
static double flops(const struct model_config *config, const struct rule_config *settings, int sources) {
    double n = settings->streams, maps = is_dynamic(settings) ? n * (n + 2) : 0;
    (void)sources;
    return BLOCKS * 2 * (2 * n + n * n + maps) * (double)config->hidden_size;
}

static int edges(const struct model_config *config, const struct rule_config *settings, int layer,
                 struct edge *edge) {
    (void)config, (void)settings, (void)layer, (void)edge;
    return 0;
}

static const struct conflict *conflict(const struct model_config *config, const struct rule_config *settings,
                                       int tensor, int sharing) {
    static const struct conflict streams = {"hyper has 2, 4 or 8 streams", {"model.rules[].streams"}};
    int n = settings->streams;
    (void)config, (void)tensor, (void)sharing;
    return n == 2 || n == 4 || n == 8 ? NULL : &streams;
}

/* ------------------------------------------------------------------------------------------------ creation
 */

static void find(struct model *m, const struct rule_layer *x) {
    struct hyper *hyper = x->own;
    for (int b = 0; b < BLOCKS; b++) {
        hyper->block[b].weight = rule_find_shared(m, x, leaf_name[b][READ]);
        if (!is_dynamic(x->entry->settings)) continue;
        hyper->block[b].maps = rule_find_shared(m, x, leaf_name[b][MAPS]);
        hyper->block[b].scale = rule_find_shared(m, x, leaf_name[b][SCALE]);
    }
}

static void lay_out(struct model *m, const struct rule_layer *x, void *shared_of_all, long T) {
    struct hyper *h = x->own, *shared = shared_of_all;
    const struct rule_config *settings = x->entry->settings;
    long R = m->rows_max, numbers = numbers_of(settings);
    (void)T;
    h->policy = x->policy;
    for (int b = 0; b < BLOCKS; b++) {
        SAVE(m, h, shared, block[b].numbers, is_dynamic(settings) ? R * numbers : numbers,
             POLICY_NO_BACKWARD);
        if (m->training)
            SAVE_BF16(m, h, shared, block[b].added, R * m->config.hidden_size, POLICY_NO_BACKWARD);
        if (!is_dynamic(settings)) continue;
        SAVE_BF16(m, h, shared, block[b].mapped, R * numbers, POLICY_NO_BACKWARD);
        SAVE(m, h, shared, block[b].rstd, R * settings->streams, POLICY_NO_BACKWARD);
    }
}

static void lay_out_scratch(struct model *m, const struct model_rule *rule, long T, int n) {
    const struct rule_config *settings = rule->entry.settings;
    struct common *c = rule->common;
    long R = m->rows_max, numbers = numbers_of(settings);
    (void)T, (void)n;
    if (!m->training) return;
    c->dnumbers = take(&m->scratch, R * numbers);
    c->sum = take(&m->scratch, numbers);
    if (!is_dynamic(settings)) return;
    c->dmapped = take(&m->scratch, R * numbers);
    c->drstd = take(&m->scratch, R * settings->streams);
    c->k = take(&m->scratch, R * settings->streams);
    c->dscale = take(&m->scratch, R * 3);
}

/* -------------------------------------------------------------------------------------------------- passes
 */

/* A block of a layer in the pass. */
struct at {
    const struct rule_config *settings;
    const struct common *common;
    const struct around *around;
    bool dynamic;
    long n, D, numbers, ld; /* ld: between tokens' numbers */
    double began;
};

/* Begins work that `done` ends, for model_connection_seconds. */
static struct at at_block(const struct model *m, int l, enum block block) {
    const struct rule_layer *x = &m->activation_set->rule[m->rules->streams][l];
    const struct rule_config *settings = x->entry->settings;
    const struct hyper *hyper = x->own;
    bool dynamic = is_dynamic(settings);
    long numbers = numbers_of(settings);
    return (struct at){.settings = settings,
                       .common = rule_common(m, x),
                       .around = &hyper->block[block],
                       .dynamic = dynamic,
                       .n = settings->streams,
                       .D = m->config.hidden_size,
                       .numbers = numbers,
                       .ld = dynamic ? numbers : 0,
                       .began = rule_clock(m)};
}

static void done(struct model *m, const struct at *at) {
    m->rules->seconds += rule_clock(m) - at->began;
}

static void begin(struct model *m, int l, enum block block, const real *x) {
    const struct at at = at_block(m, l, block);
    const struct around *a = at.around;
    long rows = m->rows * at.n, maps = at.n + 2;
    if (at.dynamic) {
        m->ops->row_rstd(rows, at.D, x, m->config.norm_eps, a->rstd);
        m->ops->gemm('N', 'T', rows, maps, at.D, 1, x, at.D, a->maps.w, at.D, 0, a->mapped, maps);
    }
    m->ops->stream_weights(at.dynamic ? m->rows : 1, at.n, BLOCKS * l + (int)block, at.settings->mixing,
                           a->weight.w, a->scale.w, a->mapped, a->rstd, a->numbers);
    done(m, &at);
}

static void read(struct model *m, int l, enum block block, const real *x, real *h) {
    const struct at at = at_block(m, l, block);
    m->ops->streams_read(m->rows, at.n, at.D, at.around->numbers, at.ld, x, h);
    done(m, &at);
}

static void write(struct model *m, int l, enum block block, const real *x, const real *f, real *out) {
    const struct at at = at_block(m, l, block);
    m->ops->streams_mix(m->rows, at.n, at.D, at.settings->mixing, at.around->numbers, at.ld, x, f, out);
    if (at.around->added) m->ops->copy(m->rows * at.D, f, at.around->added);
    done(m, &at);
}

static void write_back(struct model *m, int l, enum block block, const real *x, real *df) {
    const struct at at = at_block(m, l, block);
    m->ops->streams_mix_back(m->rows, at.n, at.D, at.settings->mixing, at.around->numbers, at.ld, x,
                             at.around->added, stream_rows(m, m->g), df, at.common->dnumbers);
    done(m, &at);
}

/* From the gradients of numbers that are the same for all tokens, this rank's terms. */
static void weights_back(struct model *m, const struct at *at, struct row_range terms) {
    const struct ops *ops = m->ops;
    const struct common *c = at->common;
    long own = terms.first - m->row0;
    ops->zero(at->numbers, c->sum);
    ops->add_column_sums(terms.count, at->numbers, c->dnumbers + own * at->numbers, at->numbers, c->sum);
    ops->stream_weights_back(1, at->n, at->settings->mixing, at->around->weight.w, NULL, NULL, NULL, c->sum,
                             NULL, NULL, NULL);
    ops->add(at->numbers, c->sum, at->around->weight.g);
}

/* From those of each token: by this rank's terms those of weights, and what comes by way of the streams,
 * which each rank adds to all of its rows. */
static void maps_back(struct model *m, const struct at *at, struct row_range terms, const real *x) {
    const struct ops *ops = m->ops;
    const struct common *c = at->common;
    const struct around *a = at->around;
    long own = terms.first - m->row0, numbers = at->numbers, D = at->D, maps = at->n + 2,
         rows = m->rows * at->n;
    real *dx = stream_rows(m, m->g);
    ops->stream_weights_back(m->rows, at->n, at->settings->mixing, a->weight.w, a->scale.w, a->mapped,
                             a->rstd, c->dnumbers, c->dmapped, c->drstd, c->dscale);
    ops->add_column_sums(terms.count, numbers, c->dnumbers + own * numbers, numbers, a->weight.g);
    ops->add_column_sums(terms.count, 3, c->dscale + own * 3, 3, a->scale.g);
    weight_gradient(m, NO_WEIGHT_ID, maps, D, terms.count * at->n, 1, c->dmapped + own * numbers, maps,
                    x + own * m->stream, D, a->maps.g, D);
    ops->gemm('N', 'N', rows, D, maps, 1, c->dmapped, maps, a->maps.w, D, 1, dx, D);
    ops->row_rstd_back(rows, D, a->rstd, c->drstd, c->k);
    ops->add_scaled_rows(rows, D, c->k, x, dx);
}

static void read_back(struct model *m, int l, enum block block, const real *x, const real *dh) {
    const struct at at = at_block(m, l, block);
    m->ops->streams_read_back(m->rows, at.n, at.D, at.around->numbers, at.ld, x, dh, stream_rows(m, m->g),
                              at.common->dnumbers);
    if (at.dynamic)
        maps_back(m, &at, rule_terms(m), x);
    else
        weights_back(m, &at, rule_terms(m));
    done(m, &at);
}

static const struct streams streams = {begin, read, write, write_back, read_back};

enum { SETTINGS = 1u << SETTING_STREAMS | 1u << SETTING_MIXING | 1u << SETTING_LR_SCALE };
static const struct rule_form forms[] = {[STATIC] = {"static", SETTINGS}, [DYNAMIC] = {"dynamic", SETTINGS}};

const struct rule rule_hyper = {.name = "hyper",
                                .places = 1u << PLACE_AROUND,
                                .forms = forms,
                                .num_forms = 2,
                                .defaults = {.place = PLACE_AROUND, .streams = 4, .lr_scale = 5},
                                .edges = edges,
                                .layer_leaves = leaves,
                                .flops = flops,
                                .conflict = conflict,
                                .own_bytes = sizeof(struct hyper),
                                .common_bytes = sizeof(struct common),
                                .find = find,
                                .lay_out = lay_out,
                                .lay_out_scratch = lay_out_scratch,
                                .streams = &streams};
