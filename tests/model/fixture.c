#include "tests/model/fixture.h"
#include "kernels/base/random.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void fixture_create(struct fixture *f, const struct model_config *config, const struct ops *ops, long batch,
                    long length, uint64_t seed, double noise) {
    f->config = *config;
    assert(!params_create(config, &f->table));
    size_t n = (size_t)f->table.total;
    f->state = (struct state){.weight = calloc(n, sizeof(real)), .gradient = calloc(n, sizeof(real))};
    for (int i = 0; i < f->table.rows; i++) {
        const struct row *row = &f->table.row[i];
        real *w = f->state.weight + row->offset;
        params_init(config, row, seed, w);
        for (long j = 0; j < row->count; j++)
            w[j] += (real)(noise * random_normal(seed + 1, random_name(row->name), (uint64_t)j));
    }
    assert(!model_create(config, &f->table, &f->state, ops, batch, length, true, &f->model));
}

void fixture_free(struct fixture *f) {
    model_free(f->model);
    free(f->state.weight);
    free(f->state.gradient);
    params_free(&f->table);
}

struct model_config small_model(void) {
    return (struct model_config){.vocab_size = 13,
                                 .hidden_size = 12,
                                 .num_layers = 4,
                                 .num_heads = 2,
                                 .num_kv_heads = 1,
                                 .intermediate_size = 10,
                                 .rope_theta = 10000,
                                 .norm_eps = 1e-5,
                                 .delta = {.distances = {1, 2, 3},
                                           .num_distances = 3,
                                           .hidden = 5,
                                           .gate_hidden = 3,
                                           .decay = 0.1,
                                           .epsilon = 1e-3,
                                           .temperature = 1,
                                           .attention_dim = 3,
                                           .attention_heads = 2}};
}

double fixture_loss(struct fixture *f, const int32_t *rows, long batch, long length,
                    const struct loss_options *options, bool train, struct loss_sums *sums) {
    if (train) {
        memset(f->state.gradient, 0, (size_t)f->table.total * sizeof(real));
        model_train(f->model, rows, batch, length, options, sums);
    } else {
        model_loss(f->model, rows, batch, length, options, sums);
    }
    double tokens = (double)(batch * length),
           each = sums->connections ? tokens * (double)sums->connections : 1;
    return sums->ce / tokens + options->sparsity_weight * sums->sparsity / each -
           options->entropy_weight * sums->entropy / each;
}
