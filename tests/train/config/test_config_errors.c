/* Every class of configuration error: the message names the keys, quotes the value, gives the line or the
 * --set, and says what is allowed, in at most five lines (config_fixture.c counts). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/base/status.h"
#include "tests/train/config/config_fixture.h"
#include "tests/support/unit.h"

static void unknown_keys(void **state) {
    (void)state;
    refused("model:\n  num_layer: 3\n", NULL, "run.yaml, line 2", "model.num_layer ", "'3'",
            "did you mean model.num_layers?", NULL);
    refused("modle: {num_layers: 3}", NULL, "line 1", "unknown key modle ", "did you mean model?", NULL);
    refused("model: {lr: 3}", NULL, "unknown key model.lr", "did you mean train.lr?", NULL);
    refused("num_layers: 3", NULL, "did you mean model.num_layers?", NULL);
    refused("train: {bach_size: 3}", NULL, "did you mean train.batch_size?", NULL);
    refused("model:\n  delta:\n    warp: 3", NULL, "line 3", "model.delta.warp",
            "model.delta has distances, edges, embedding_source", NULL);
    refused("xyzzy: 3", NULL,
            "a configuration has model, train, mesh, data, checkpoint, delta_store, watchdog, spikes, "
            "monitor, device",
            NULL);
    refused("model.num_layers: 3", NULL, "model.num_layers", "inside the section", NULL);
    refused("model: {<<: {num_layers: 3}}", NULL, "model.<<", NULL);
    refused("? [a, b]\n: 3", NULL, "line 1", "[a, b]", "a name is expected", NULL);
    refused("{}", "lr=3", "--set lr=3", "did you mean train.lr?", NULL);
    refused("{}", "train.lr.high=3", "--set train.lr.high=3", "unknown key", NULL);
    refused("{}", "train.=3", "--set train.=3", "unknown key", NULL);
}

static void integers(void **state) {
    (void)state;
    /* Not decimal, not whole, not plain, too great, not there, or something else altogether. */
    static const char *const wrong[] = {"1.0",        "1e3",         "0x10",
                                        "0o7",        "010",         "1_000",
                                        "1,000",      "'6'",         "\"6\"",
                                        "six",        "true",        ".inf",
                                        "-.inf",      ".nan",        "~",
                                        "null",       "[1]",         "{a: 1}",
                                        "2147483648", "-2147483649", "99999999999999999999",
                                        "0",          "-1",          "1 2",
                                        "+",          "!!int 5",     "٣"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[128], set[128];
        snprintf(text, sizeof text, "model:\n\n  num_layers: %s\n", wrong[i]);
        snprintf(set, sizeof set, "model.num_layers=%s", wrong[i]);
        refused(text, NULL, "run.yaml, line 3", "model.num_layers is ", wrong[i], NULL);
        refused("{}", set, "--set model.num_layers=", "model.num_layers is ", wrong[i], NULL);
    }
    refused("model: {num_layers: 1.0}", NULL, "an integer from 1 to 100000", NULL);
    refused("model:\n  num_layers:\n  num_heads: 4\n", NULL, "line 2", "model.num_layers is empty", NULL);
    refused("{}", "model.num_layers=", "--set model.num_layers=", "is empty", NULL);
    refused("train: {steps: 9223372036854775808}", NULL, "train.steps", "from 1 to 9223372036854775807",
            NULL);
    refused("train: {seed: 18446744073709551616}", NULL, "train.seed", "to 18446744073709551615", NULL);
    refused("train: {seed: -1}", NULL, "train.seed", "'-1'", NULL);
    refused("train: {warmup_steps: -1}", NULL, "train.warmup_steps", "from 0", NULL);
    refused("mesh: {tensor: 0}", NULL, "mesh.tensor", "'0'", "from 1", NULL);
}

static void reals(void **state) {
    (void)state;
    static const char *const wrong[] = {".inf",  "-.inf",  "+.Inf", ".nan",  "inf",   "nan",   "0x1p3",
                                        "1e999", "1e-999", "1e39",  "'0.1'", "0.1.2", "1e",    "e5",
                                        ".",     "1_0.5",  "00.5",  "0,1",   "-1",    "[0.1]", "lots"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[128];
        snprintf(text, sizeof text, "train:\n  lr: %s\n", wrong[i]);
        refused(text, NULL, "line 2", "train.lr is ", wrong[i], "a finite decimal number of at least 0",
                NULL);
    }
    refused("train: {beta1: 1}", NULL, "train.beta1", "at least 0 and below 1", NULL);
    refused("train: {beta2: -0.1}", NULL, "train.beta2", "'-0.1'", NULL);
    refused("train: {memory: 1.6e+10}", NULL, "train.memory", "'1.6e+10'", "at least 0 and at most 1e+09",
            NULL);
    refused("train: {min_lr_ratio: 1.01}", NULL, "train.min_lr_ratio", "'1.01'", "at least 0 and at most 1",
            NULL);
    refused("train: {adam_eps: 0}", NULL, "train.adam_eps", "above 0", NULL);
    refused("train: {adam_eps: 1e-46}", NULL, "train.adam_eps", "'1e-46'", "above 0", NULL);
    refused("model: {delta: {epsilon: 0}}", NULL, "model.delta.epsilon", "above 0", NULL);
    /* Whether or not the kind of connection has one. */
    refused("model: {delta: {temperature: 0}}", NULL, "model.delta.temperature", "'0'", "above 0", NULL);
    refused("model: {delta: {kind: adaptive, temperature: -1}}", NULL, "model.delta.temperature", "'-1'",
            "above 0", NULL);
    refused("model: {delta: {distances: [], temperature: -1}}", NULL, "model.delta.temperature", "'-1'",
            "above 0", NULL);
    refused("model: {delta: {decay: -0.1}}", NULL, "model.delta.decay", "'-0.1'", "at least 0", NULL);
    refused("data: {validation_fraction: 1}", NULL, "data.validation_fraction", "below 1", NULL);
}

static void other_types(void **state) {
    (void)state;
    refused("model: {tie_embeddings: no}", NULL, "model.tie_embeddings is 'no'", "true or false", NULL);
    refused("model: {tie_embeddings: 'true'}", NULL, "'true'", "without quotes", NULL);
    refused("model: {tie_embeddings: 1}", NULL, "'1'", "true or false", NULL);
    refused("model: {delta: {kind: narrow}}", NULL, "model.delta.kind is 'narrow'",
            "bottleneck, full or adaptive", NULL);
    refused("model: {delta: {kind: Full}}", NULL, "'Full'", NULL);
    refused("model: {delta: {kind: }}", NULL, "model.delta.kind is empty", NULL);
    refused("data: {format: parquet}", NULL, "data.format", "text, hdf5, llmc, megatron, nanogpt or jsonl", NULL);
    refused("train: {precision: int4}", NULL, "train.precision is 'int4'", "fp32, bf16, fp16 or fp8", NULL);
    refused("train: {recompute: some}", NULL, "train.recompute is 'some'", "none, selective, full", NULL);
    static const char *const no_text[] = {"5", "1e3", "0x1F", ".inf", "true", "~", "null", "{a: b}"};
    for (size_t i = 0; i < sizeof no_text / sizeof *no_text; i++) {
        char set[64];
        snprintf(set, sizeof set, "data.train=%s", no_text[i]);
        refused("{}", set, "--set", "data.train is ", no_text[i], "text is expected", NULL);
    }
    refused("data: {train: {a: b}}", NULL, "data.train is ", "a list of texts or one text is expected", NULL);
    refused("data: {train: [a, 1]}", NULL, "data.train[1] is '1'", "text is expected", NULL);
    refused("data:\n  train: [a,\n    '']", NULL, "line 3", "data.train[1] is ''", "a path is expected",
            NULL);
    refused("data: {train: ~you/a}", NULL, "data.train is '~you/a'", "only ~/", "./~you/a", NULL);
    refused("data: {sources: [{path: [a, ~b]}]}", NULL, "data.sources[0].path[1] is '~b'", "./~b", NULL);
    setenv("HOME", "", 1);
    refused("checkpoint: {init_from: ~/a}", NULL, "checkpoint.init_from is '~/a'", "HOME", NULL);
    refused("data: {train: \"a\\0b\"}", NULL, "data.train", "text is expected", NULL);
    refused("data: {train: *.txt}", NULL, "data.train", "*.txt", "quotes", NULL);
    refused("data: {train: !x y}", NULL, "data.train", "!x", "tags are not accepted", NULL);
}

static void lists_and_sections(void **state) {
    (void)state;
    refused("model: {delta: {distances: [1, 3, 2]}}", NULL, "model.delta.distances is '[1, 3, 2]'",
            "increasing", NULL);
    refused("model: {delta: {distances: [1, 1]}}", NULL, "'[1, 1]'", "increasing", NULL);
    refused("model:\n  delta:\n    distances:\n    - 1\n    - 0\n", NULL, "line 5",
            "model.delta.distances[1] is '0'", "from 1", NULL);
    refused("model: {delta: {distances: [1.5]}}", NULL, "model.delta.distances[0] is '1.5'", NULL);
    refused("model: {delta: {distances: 3}}", NULL, "'3'", "a list of at most 64 increasing integers", NULL);
    refused("model: {delta: {distances: }}", NULL, "model.delta.distances is empty", "a list", NULL);
    char many[64 * 8] = "model.delta.distances=[1";
    for (int d = 2; d <= MAX_DISTANCES + 1; d++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ", %d", d);
    refused("{}", strcat(many, "]"), "model.delta.distances has 65 entries: at most 64", NULL);
    refused("model: {delta: {edges: [1, 0]}}", NULL, "model.delta.edges[0] is '1'", "[TARGET, SOURCE]", NULL);
    refused("model: {delta: {edges: 3}}", NULL, "'3'", "a list of at most 2048 [TARGET, SOURCE]", NULL);
    refused("model:\n  delta:\n    edges:\n    - [1, 0]\n    - [3, 2, 1]\n", NULL, "line 5",
            "model.delta.edges[1] is '[3, 2, 1]'", "[TARGET, SOURCE]", NULL);
    refused("model: {delta: {edges: [[1, -2]]}}", NULL, "model.delta.edges[0][1] is '-2'", "from -1", NULL);
    refused("model: {delta: {edges: [[1, 0], [2, 2]]}}", NULL, "model.delta.edges[1] is [2, 2]",
            "a source below its target is expected, -1 to 1", NULL);
    refused("model: {delta: {edges: [[3, 0], [2, 1], [3, 0]]}}", NULL,
            "model.delta.edges[2] is [3, 0], as entry 0 is", "once", NULL);
    refused("model: {num_layers: 5, delta: {edges: [[4, 0], [5, 4], [1, 0]]}}", NULL, "line 1",
            "model.delta.edges[1] is [5, 4]", "model.num_layers 5", "from 0 to 4", NULL);
    refused("data: {sources: {path: a}}", NULL, "data.sources is '{path: a}'", "a list", NULL);
    refused("data: {sources: [a]}", NULL, "data.sources[0] is 'a'", "{path: TEXT", NULL);
    refused("data: {sources: [{path: a}, {weight: 2}]}", NULL, "data.sources[1] lacks path", NULL);
    refused("data: {sources: [{path: a, weight: 0}]}", NULL, "data.sources[0].weight is '0'", "above 0",
            NULL);
    refused("data: {sources: [{path: a, size: 0}]}", NULL, "data.sources[0].size", "path and weight", NULL);
    refused("data: {sources: [{path: a, name: 'a b'}]}", NULL, "data.sources[0]: 'a b' is no name", "letters",
            NULL);
    refused("train: {groups: {match: a}}", NULL, "train.groups is '{match: a}'", "a list of at most 32",
            NULL);
    refused("train: {groups: [a]}", NULL, "train.groups[0] is 'a'", "{match: TEXT", NULL);
    refused("train:\n  groups:\n  - {match: a}\n  - {lr_scale: 2}", NULL, "line 4",
            "train.groups[1] lacks match", NULL);
    refused("train: {groups: [{match: a, lr: 2}]}", NULL, "train.groups[0].lr:", "lr_scale", NULL);
    refused("train: {groups: [{match: a, lr_scale: fast}]}", NULL, "train.groups[0].lr_scale is 'fast'",
            "a finite decimal number of at least 0", NULL);
    refused("{}", "train.groups=[{match: a, lr_scale: -1}]", "--set", "train.groups[0].lr_scale is '-1'",
            NULL);
    refused("{}", "train.groups=[{match: a, weight_decay: -1}]", "weight_decay is '-1'", "at least 0", NULL);
    refused("{}", "train.groups=[{match: a, beta2: 1}]", "train.groups[0].beta2 is '1'", "below 1", NULL);
    refused("{}", "train.groups=[{match: ''}]", "train.groups[0].match is ''", "1 to 127 characters", NULL);
    refused("{}", "train.groups=[{match: a/b}]", "train.groups[0].match is 'a/b'", NULL);
    refused("{}", "train.groups=[{match: a, match: b}]", "train.groups[0].match is given twice", NULL);
    char groups[40 * 12] = "train.groups=[";
    for (int g = 0; g <= GROUPS_MAX; g++) strcat(groups, "{match: a},");
    refused("{}", strcat(groups, "]"), "train.groups has 33 entries: at most 32", NULL);
    refused("data:\n  validations: [a]", NULL, "line 2: data.validations is '[a]'",
            "a mapping of names to files", NULL);
    refused("data:\n  validations:\n    a.b: c", NULL, "line 3: data.validations: 'a.b' is no name", NULL);
    refused("data: {validations: {'': c}}", NULL, "data.validations: '' is no name", NULL);
    refused("data: {validations: {a: ''}}", NULL, "data.validations.a is ''", "a file or a glob", NULL);
    refused("data: {validations: {a: 5}}", NULL, "data.validations.a is '5'", "text", NULL);
    refused("data: {validations: {a: b, a: c}}", NULL, "data.validations.a is given twice", NULL);
    refused("data: {sources: [{path: a, path: b}]}", NULL, "data.sources[0].path is given twice", NULL);
    refused("model:\n  delta:\n", NULL, "line 2", "model.delta is empty", "a mapping", NULL);
    refused("model: 5", NULL, "model is '5'", "a mapping", NULL);
    refused("model: []", NULL, "model is '[]'", "a mapping", NULL);
    refused("{}", "model=", "--set model=", "model is empty", NULL);
    refused("", NULL, "run.yaml: the configuration is empty", NULL);
    refused("# nothing\n", NULL, "the configuration is empty", NULL);
    refused("- 1\n", NULL, "line 1", "the configuration is '[1]'", NULL);
}

static void syntax(void **state) {
    (void)state;
    refused("train:\n  lr: 1\n seed: 2\n", NULL, "run.yaml, line 3", "column", "YAML", NULL);
    refused("train:\n\tlr: 1\n", NULL, "line 2", "column 1", "tab", NULL);
    refused("train: {lr: 1\n", NULL, "column", "YAML", NULL);
    refused("train: {lr: \"1\n", NULL, "YAML", NULL);
    refused("{}", "train.lr=[1", "--set train.lr=[1", "YAML", NULL);
    refused("train:\n  lr: 1\n  seed: 2\n  lr: 3\n", NULL, "line 4",
            "train.lr is given twice, first in line 2", NULL);
    refused("train: {lr: 1}\nmodel: {}\ntrain: {lr: 1}\n", NULL, "line 3",
            "train is given twice, first in line 1", NULL);
    refused("train: {lr: 1}\n---\ntrain: {lr: 2}\n", NULL, "several YAML documents", NULL);
    refused("train: {lr: 1}\ndata: {train: \xff}\n", NULL, "line 2", "0xff", "UTF-8", NULL);
    refused("data: {train: \xc0\xaf}\n", NULL, "0xc0", NULL);         /* an overlong '/' */
    refused("data: {train: \xed\xa0\x80}\n", NULL, "0xed", NULL);     /* a surrogate */
    refused("data: {train: \xf4\x90\x80\x80}\n", NULL, "0xf4", NULL); /* beyond Unicode */
    refused("data: {train: a\x01}\n", NULL, "0x01", "control", NULL);
    refused("data: {train: a\xc3", NULL, "0xc3", NULL);
    refused("{}", "train.lr", "--set train.lr", "KEY=VALUE is expected", NULL);
    refused("{}", "=3", "--set =3", "KEY=VALUE is expected", NULL);
    /* Whatever the user gives, the message stays short. */
    refused("{}", "train.lr=a\n\n\n\n\n\n\n\nb", "train.lr", NULL);
    refused("\"a\\n\\n\\n\\n\\n\\nb\": 3", NULL, "unknown key", NULL);
    char *deep = calloc(1, 200001);
    memset(deep, '[', 200000);
    refused(deep, NULL, "run.yaml", NULL);
    free(deep);
}

static void no_training_data(void **state) {
    (void)state;
    struct config config = right("{}", NULL, NULL);
    assert_int_equal(config_validate_for_training(&config), GDN_INPUT);
    failure_has("data.train");
    failure_has("data.sources");
    failure_is_short();
    gdn_failure_clear();
    config_free(&config);
    config = right("{data: {train: a}, model: {vocab_size: 257}}", NULL, NULL);
    assert_int_equal(config_validate_for_training(&config), GDN_OK);
    config_free(&config);
}

static void files(void **state) {
    (void)state;
    static const struct {
        const char *path, *word;
    } wrong[] = {{"/nonexistent/run.yaml", "No such file"},
                 {"/", "directory"},
                 {"/dev/zero", "larger than"},
                 {"/dev/null", "empty"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct config config;
        assert_int_equal(config_load(wrong[i].path, NULL, 0, &config), GDN_INPUT);
        failure_has(wrong[i].path);
        failure_has(wrong[i].word);
        failure_is_short();
        gdn_failure_clear();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_keys),
        cmocka_unit_test(integers),
        cmocka_unit_test(reals),
        cmocka_unit_test(other_types),
        cmocka_unit_test(lists_and_sections),
        cmocka_unit_test(syntax),
        cmocka_unit_test(no_training_data),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
