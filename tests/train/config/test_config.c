/* Configurations that are right: defaults, all ways to write a value, --set, the round trip through text, and
 * what a resume compares. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/format.h"
#include "dist/checkpoint/checkpoint.h"
#include "dist/layout/layout.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "tests/train/config/config_fixture.h"
#include "tests/support/unit.h"
#include "train/config/keys.h"
#include "train/config/number.h"

/* `list` has exactly these paths; NULL ends them. */
static void assert_paths(const struct path_list *list, ...) {
    va_list paths;
    va_start(paths, list);
    int count = 0;
    for (const char *path; (path = va_arg(paths, const char *)); count++) {
        assert_true(count < list->count);
        assert_string_equal(list->paths[count], path);
    }
    va_end(paths);
    assert_int_equal(list->count, count);
}

static void defaults(void **state) {
    (void)state;
    struct config c = right("{}", NULL, NULL);
    assert_int_equal(c.model.vocab_size, 256);
    assert_int_equal(c.model.hidden_size, 64);
    assert_int_equal(c.model.num_layers, 6);
    assert_int_equal(c.model.num_heads, 4);
    assert_int_equal(c.model.num_kv_heads, 4); /* 0 is resolved */
    assert_int_equal(c.model.head_dim, 0);
    assert_int_equal(c.model.intermediate_size, 176);
    assert_true(c.model.rope_theta == 10000 && c.model.norm_eps == 1e-5 && !c.model.tie_embeddings);
    const struct delta_config *d = &c.model.delta;
    assert_int_equal(d->num_distances, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(d->distances[i], i + 1);
    assert_true(!d->embedding_source && d->kind == KIND_BOTTLENECK && d->hidden == 32 &&
                d->gate_hidden == 16);
    assert_true(d->distance_scale == SCALE_RECIPROCAL && d->decay == 0.1 && !d->normalize &&
                d->epsilon == 1e-3);
    assert_true(d->temperature == 1 && d->aggregate == AGGREGATE_LEARNED && d->attention_dim == 16 &&
                d->attention_heads == 4);
    assert_true(d->stage_steps == 0 && d->regularizer == REGULARIZER_NONE);
    assert_true(d->sparsity_weight == 0.01 && d->entropy_weight == 0.001 && d->l1_weight == 0);
    assert_true(c.model.logit_softcap == 0 && c.train.z_loss == 0);
    const struct train_config *t = &c.train;
    assert_true(t->steps == 20 && t->batch_size == 4 && t->micro_batch_size == 0 && t->sequence_length == 32);
    assert_true(t->lr == 1e-3 && t->min_lr_ratio == 0.1 && t->warmup_steps == 5 && t->beta1 == 0.9 &&
                t->beta2 == 0.95);
    assert_true(t->adam_eps == 1e-8 && t->weight_decay == 0.1 && t->grad_clip == 1 && t->seed == 1);
    assert_true(t->schedule == LR_COSINE && t->precision == PRECISION_FP32 && t->recompute == RECOMPUTE_NONE);
    assert_true(t->eval_interval == 0 && t->eval_batches == 0 && t->gate_interval == 0 && t->stop_at == 0);
    assert_true(c.mesh.size[AXIS_DATA] == 0 && c.mesh.size[AXIS_TENSOR] == 1 &&
                c.mesh.size[AXIS_PIPELINE] == 1 && c.mesh.interleave == 1 &&
                c.mesh.schedule == SCHEDULE_1F1B);
    assert_true(c.mesh.delta == DELTA_CHANNEL && !c.mesh.sequence_parallel && c.mesh.overlap &&
                c.mesh.narrow_sources);
    assert_true(c.mesh.bucket == 4194304 && c.mesh.small == 8192);
    assert_int_equal(c.checkpoint.files, FILES_ONE);
    assert_int_equal(c.data.train.count, 0);
    assert_int_equal(c.data.validation.count, 0);
    assert_true(c.data.validation_fraction == 0 && c.data.num_sources == 0);
    assert_true(token_format_of(c.data.format) == &text_format && c.data.order == ORDER_SHUFFLE);
    assert_true(c.checkpoint.interval == 0 && c.checkpoint.interval_minutes == 30 && c.checkpoint.keep == 3);
    assert_int_equal(c.checkpoint.asynchronous, SAVE_AUTO);
    assert_string_equal(c.checkpoint.init_from, "");
    assert_int_equal(c.device, DEVICE_AUTO); /* until a run has looked */
    config_free(&c);
}

static void forms_of_values(void **state) {
    (void)state;
    /* As Python's json.dumps writes it, which is YAML too. */
    struct config c =
        right("{\"model\": {\"norm_eps\": 1e-05, \"tie_embeddings\": true, \"delta\": {\"distances\": [], "
              "\"epsilon\": 0.001}}, \"train\": {\"lr\": 1, \"grad_clip\": 0, \"adam_eps\": 1e-08, \"seed\": "
              "18446744073709551615}}",
              NULL, NULL);
    assert_true(c.model.norm_eps == 1e-5 && c.model.tie_embeddings && c.model.delta.num_distances == 0);
    assert_true(c.train.lr == 1 && c.train.grad_clip == 0 && c.train.adam_eps == 1e-8 &&
                c.train.seed == UINT64_MAX);
    config_free(&c);

    c = right("%YAML 1.2\n---\ntrain:\n  lr: .5\n  min_lr_ratio: 1.\n  weight_decay: +2.5E-1 # a comment\n  "
              "steps: +7\n"
              "data:\n  train: no\n  format: 'llmc'\n  sources: []\nmodel: {tie_embeddings: True, delta: "
              "{}}\n...\n",
              NULL, NULL);
    assert_true(c.train.lr == 0.5 && c.train.min_lr_ratio == 1 && c.train.weight_decay == 0.25 &&
                c.train.steps == 7);
    assert_paths(&c.data.train, "no", NULL); /* text in YAML 1.2 */
    assert_true(token_format_of(c.data.format) == &llmc_format && c.model.tie_embeddings &&
                c.model.delta.num_distances == 4);
    config_free(&c);

    c = right("\xef\xbb\xbftrain:\r\n  lr: &rate 0.25\r\n  min_lr_ratio: *rate\r\n"
              "data:\n  format: hdf5\n  sources:\n  - path: '*.h5'\n    weight: 2\n  - {path: \"\\u00e9\"}\n",
              NULL, NULL);
    assert_true(c.train.lr == 0.25 && c.train.min_lr_ratio == 0.25 && c.data.num_sources == 2);
    assert_paths(&c.data.sources[0].path, "*.h5", NULL);
    assert_paths(&c.data.sources[1].path, "é", NULL);
    assert_true(c.data.sources[0].weight == 2 && c.data.sources[1].weight == 1);
    assert_string_equal(c.data.sources[0].name, "source_0");
    assert_string_equal(c.data.sources[1].name, "source_1");
    config_free(&c);
}

static void overrides(void **state) {
    (void)state;
    struct config c = right("train: {lr: 1, seed: 3}", "train.lr=2", "train.lr=3"); /* the later wins */
    assert_true(c.train.lr == 3 && c.train.seed == 3);
    config_free(&c);
    c = right("train: {lr: 1, seed: 3}", "train={lr: 2, steps: 9}",
              "device=cpu"); /* a mapping merges into the section */
    assert_true(c.train.lr == 2 && c.train.steps == 9 && c.train.seed == 3);
    config_free(&c);
    c = right("{}", "model.delta.distances=[2, 5]", "model.delta.kind=full");
    assert_true(c.model.delta.num_distances == 2 && c.model.delta.distances[1] == 5 &&
                c.model.delta.kind == KIND_FULL);
    config_free(&c);
    c = right("model: {delta: {distances: [2]}}", "model.delta={kind: full}", "model.delta.distances=[]");
    assert_true(c.model.delta.num_distances == 0 && c.model.delta.kind == KIND_FULL);
    config_free(&c);
    c = right("{data: {format: hdf5, train: x}}", "data.train=a=b.h5", "checkpoint.init_from=golden.h5");
    assert_paths(&c.data.train, "a=b.h5", NULL);
    assert_string_equal(c.checkpoint.init_from, "golden.h5");
    config_free(&c);
    c = right("data:\n  format: hdf5\n  validations:\n    books: 'b/*.h5'\n    5-_A: c.h5\n", NULL, NULL);
    assert_int_equal(c.data.num_validations, 2);
    assert_string_equal(c.data.validations[0].name, "books");
    assert_paths(&c.data.validations[0].path, "b/*.h5", NULL);
    assert_string_equal(c.data.validations[1].name, "5-_A");
    config_free(&c);
    c = right("{data: {format: hdf5, validations: {a: b}}}", "data.validations={}", NULL);
    assert_int_equal(c.data.num_validations, 0);
    config_free(&c);
    c = right("{data: {format: hdf5, train: x}}", "data.sources=[{path: a}, {path: b, weight: 0.5}]",
              "data.train=''");
    assert_int_equal(c.data.num_sources, 2);
    config_free(&c);
}

/* What does not matter is not checked: a plain transformer's delta section. */
static void plain_ignores_delta(void **state) {
    (void)state;
    struct config c = right("model: {delta: {distances: [], kind: adaptive, gate_hidden: 1, aggregate: "
                            "multihead, attention_heads: 5}}",
                            NULL, NULL);
    config_free(&c);
    c = right("model: {delta: {attention_heads: 5}}", NULL, NULL); /* of other aggregates */
    config_free(&c);
}

/* Meshes that fit the default model (4 heads, MLP width 176, 6 layers, bottleneck connections). */
static void meshes(void **state) {
    (void)state;
    struct config c =
        right("mesh: {tensor: 4, pipeline: 3, interleave: 2, delta: connection, bucket: 1000}", NULL, NULL);
    assert_true(c.mesh.size[AXIS_TENSOR] == 4 && c.mesh.size[AXIS_PIPELINE] == 3 && c.mesh.interleave == 2);
    assert_true(c.mesh.delta == DELTA_CONNECTION && c.mesh.bucket == 1000);
    config_free(&c);
    /* What the width of a bottleneck does not bind. */
    c = right("mesh: {tensor: 2}\nmodel: {delta: {hidden: 31}}", "mesh.delta=connection", NULL);
    config_free(&c);
    c = right("mesh: {tensor: 2}\nmodel: {delta: {hidden: 31}}", "model.delta.kind=full", NULL);
    config_free(&c);
    c = right("mesh: {tensor: 2}\nmodel: {delta: {hidden: 31}}", "model.delta.distances=[]", NULL);
    config_free(&c);
    /* Harmless on one tensor rank. */
    c = right("mesh: {sequence_parallel: true, delta: connection}", NULL, NULL);
    config_free(&c);
}

/* --help-config names every key with its default. */
static void help(void **state) {
    (void)state;
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    config_help(out);
    fclose(out);
    for (int k = 0; k < CONFIG_KEYS; k++) {
        char line[128];
        snprintf(line, sizeof line, "\n%s: %s\n", config_keys[k].path, config_keys[k].value);
        if (!strstr(text, line)) fail_msg("--help-config does not say:%s", line);
        assert_true(config_keys[k].help && strlen(config_keys[k].help) > 5);
    }
    free(text);
}

/* One path or several, in their order, and ~/ for the home directory; what is written is read the same. */
static void paths(void **state) {
    (void)state;
    setenv("HOME", "/home/me", 1);
    struct config c = right("{data: {format: hdf5, train: [b.txt, \"~/a/*.txt\", 'a b'], validation: ~/v}}",
                            "checkpoint.init_from=~/w.h5", NULL);
    assert_paths(&c.data.train, "b.txt", "/home/me/a/*.txt", "a b", NULL);
    assert_paths(&c.data.validation, "/home/me/v", NULL);
    assert_string_equal(c.checkpoint.init_from, "/home/me/w.h5");
    char *text = config_text(&c);
    assert_non_null(strstr(text, "train: [\"b.txt\", \"/home/me/a/*.txt\", \"a b\"]\n"));
    assert_non_null(strstr(text, "validation: \"/home/me/v\"\n")); /* one is a text, as ever */
    setenv("HOME", "/home/another", 1);
    struct config again;
    assert_int_equal(config_parse(text, "written", NULL, 0, &again), GDN_OK);
    assert_paths(&again.data.train, "b.txt", "/home/me/a/*.txt", "a b", NULL);
    assert_int_equal(config_match_ranks(&c, text), GDN_OK);
    config_free(&again);
    config_free(&c);
    free(text);

    c = right("{data: {format: hdf5, sources: [{path: [a, ~/b]}, {path: c~}]}}", "data.train=[]", NULL);
    assert_paths(&c.data.sources[0].path, "a", "/home/another/b", NULL);
    assert_paths(&c.data.sources[1].path, "c~", NULL);
    assert_int_equal(c.data.train.count, 0);
    config_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),  cmocka_unit_test(forms_of_values),
        cmocka_unit_test(paths),     cmocka_unit_test(forms_of_values),
        cmocka_unit_test(overrides), cmocka_unit_test(plain_ignores_delta),
        cmocka_unit_test(meshes),    cmocka_unit_test(help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
