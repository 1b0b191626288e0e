/* Configurations that are right: defaults, all ways to write a value, --set, the round trip through text, and
 * what a resume compares. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    assert_true(d->sparsity_weight == 0.01 && d->entropy_weight == 0.001);
    const struct train_config *t = &c.train;
    assert_true(t->steps == 20 && t->batch_size == 4 && t->micro_batch_size == 0 && t->sequence_length == 32);
    assert_true(t->lr == 1e-3 && t->min_lr_ratio == 0.1 && t->warmup_steps == 5 && t->beta1 == 0.9 &&
                t->beta2 == 0.95);
    assert_true(t->adam_eps == 1e-8 && t->weight_decay == 0.1 && t->grad_clip == 1 && t->seed == 1);
    assert_true(t->schedule == SCHEDULE_COSINE && t->precision == PRECISION_FP32 &&
                t->recompute == RECOMPUTE_NONE);
    assert_true(t->eval_interval == 0 && t->eval_batches == 0 && t->gate_interval == 0 && t->stop_at == 0);
    assert_true(c.mesh.data == 0 && c.mesh.tensor == 1 && c.mesh.pipeline == 1 && c.mesh.interleave == 1);
    assert_true(c.mesh.delta == DELTA_CHANNEL && !c.mesh.sequence_parallel && c.mesh.overlap &&
                c.mesh.narrow_sources);
    assert_true(c.mesh.bucket == 4194304 && c.mesh.small == 8192);
    assert_int_equal(c.checkpoint.files, FILES_ONE);
    assert_int_equal(c.data.train.count, 0);
    assert_int_equal(c.data.validation.count, 0);
    assert_true(c.data.validation_fraction == 0 && c.data.num_sources == 0);
    assert_true(c.data.format == FORMAT_TEXT && c.data.order == ORDER_SHUFFLE);
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
    assert_true(c.data.format == FORMAT_LLMC && c.model.tie_embeddings && c.model.delta.num_distances == 4);
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
    assert_true(c.mesh.tensor == 4 && c.mesh.pipeline == 3 && c.mesh.interleave == 2);
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

/* A random value that the key allows, as YAML. */
static void random_value(const struct key *key, uint64_t draw, FILE *out) {
    uint64_t what = random_name(key->path);
    double u = random_uniform(1, what, draw);
    uint64_t bits = random_bits(2, what, draw);
    static const char *const texts[] = {"''",
                                        "a b.txt",
                                        "'*.txt'",
                                        "\"q\\\"\\\\\\t\\n\\x7f\\e\\u2028\\u0085\\u2029\"",
                                        "'  '",
                                        "\"true\"",
                                        "'5'",
                                        "ü/日本/😀",
                                        "'#: {[,&!|>%@`'",
                                        "\"\\n\\n\""};
    char digits[NUMBER_TEXT];
    switch (key->type) {
    case KEY_INT: {
        double values = key->most - key->least + 1;
        fprintf(out, "%d", (int)key->least + (int)(bits % (values < 1000 ? (uint64_t)values : 1000)));
        break;
    }
    case KEY_LONG: {
        long value = (long)key->least + (long)(bits >> (2 + bits % 60));
        fprintf(out, "%ld", (double)value > key->most ? (long)key->most : value);
        break;
    }
    case KEY_UNSIGNED:
        fprintf(out, "%llu", (unsigned long long)bits);
        break;
    case KEY_REAL:
        snprintf(digits, sizeof digits, "%.17g",
                 key->most <= 1 ? u : ldexp(0.5 + u / 2, (int)(bits % 200) - 100));
        fputs(digits, out);
        break;
    case KEY_BOOL:
        fputs(bits & 1 ? "true" : "false", out);
        break;
    case KEY_WORD: {
        int count = 1, pick;
        for (const char *at = key->words; *at; at++) count += *at == '|';
        const char *word = key->words;
        for (pick = (int)(bits % (uint64_t)count); pick > 0; pick--) word = strchr(word, '|') + 1;
        bool cuda = !strncmp(word, "cuda", 4);
        fprintf(out, "%.*s", (int)strcspn(word, "|"), cuda ? "cpu" : word);
        break;
    }
    case KEY_STRING:
        fputs(texts[bits % (sizeof texts / sizeof *texts)], out);
        break;
    case KEY_FILES: /* one, which may be '', or a list of others */
        if (bits & 1) {
            fputs(texts[(bits >> 1) % (sizeof texts / sizeof *texts)], out);
            break;
        }
        fputc('[', out);
        for (uint64_t i = 1; i < (bits >> 1) % 5; i++) fprintf(out, "%s,", texts[i]);
        fputc(']', out);
        break;
    case KEY_INTS:
        fputc('[', out);
        for (uint64_t i = 0, n = bits % (MAX_DISTANCES + 1); i < n; i++)
            fprintf(out, "%s%llu", i ? "," : "", (unsigned long long)(3 * i + 1));
        fputc(']', out);
        break;
    case KEY_RAMP:
        fputc('[', out);
        for (uint64_t i = 0, n = bits % (RAMP_MOST + 1); i < n; i++)
            fprintf(out, "[%llu, 12],", (unsigned long long)(i * (1 + bits % 1000)));
        fputc(']', out);
        break;
    case KEY_SOURCES:
        fputc('[', out);
        for (uint64_t i = 0; i < bits % 5; i++)
            fprintf(out, i % 2 ? "{path: %s, weight: %.17g}," : "{path: %s, weight: %.17g, name: first_%d},",
                    texts[i], ldexp(1 + u, (int)i - 3), (int)i);
        fputc(']', out);
        break;
    case KEY_PATHS:
        fputc('{', out);
        for (uint64_t i = 0; i < bits % 4; i++)
            fprintf(out, "%s: %s,", (const char *[]){"null", "5-_a", "-"}[i], texts[i + 1]);
        fputc('}', out);
        break;
    }
}

/* Random configurations, written and read again, are the same to the last digit. */
static void round_trip(void **state) {
    (void)state;
    int tried = 0;
    for (uint64_t draw = 0; draw < 3000 && tried < 300; draw++) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        fprintf(out, "{}");
        fclose(out);
        char *set[CONFIG_KEYS] = {NULL};
        for (int k = 0; k < CONFIG_KEYS; k++) {
            out = open_memstream(&set[k], &length);
            fprintf(out, "%s=", config_keys[k].path);
            random_value(&config_keys[k], draw, out);
            fclose(out);
        }
        /* Two settings are drawn so that the widths divide, which random numbers seldom do. */
        char *widths[] = {"model={hidden_size: 720, num_heads: 12, num_kv_heads: 0}",
                          "mesh={data: 1, tensor: 1, pipeline: 1, interleave: 1, compress_boundary: 0}",
                          "model.delta={gate_hidden: 12, attention_heads: 12, hidden: 7, attention_dim: 3}",
                          "train={micro_batch_size: 0, recompute: full, recompute_delta: same}",
                          draw & 8 ? "delta_store.interval=0" : "model.delta.distances=[2, 3]",
                          draw & 4 ? "delta_store={ratio: 0, layers: []}"
                                   : "delta_store={tolerance: 0, layers: []}",
                          "model.vocab_size=1000",
                          draw & 128 ? "train.batch_ramp=[]" : "train.batch_size=12",
                          draw & 64 ? "spikes.window=0" : "spikes.window=100",
                          "model.delta.temperature=0.5",
                          draw & 32 ? "train.graphs=false" : "train.compress_sources=0",
                          draw & 16 ? "device=cuda" : "train.precision=fp32",
                          draw & 1 ? "data.validation=''" : "data.validation_fraction=0",
                          draw & 2 ? "data.train=''" : "data.sources=[]"};
        enum { WIDTHS = sizeof widths / sizeof *widths };
        char *all[CONFIG_KEYS + WIDTHS];
        memcpy(all, set, sizeof set);
        memcpy(all + CONFIG_KEYS, widths, sizeof widths);
        struct config first, second;
        if (config_parse(text, "random", all, CONFIG_KEYS + WIDTHS, &first)) fail_msg("%s", gdn_failure());
        char *written = config_text(&first);
        if (config_parse(written, "written", NULL, 0, &second)) fail_msg("%s\n%s", gdn_failure(), written);
        char *again = config_text(&second);
        assert_string_equal(written, again);
        assert_memory_equal(&first.train, &second.train, sizeof first.train);
        assert_memory_equal(&first.mesh, &second.mesh, sizeof first.mesh);
        assert_true(first.model.rope_theta == second.model.rope_theta &&
                    first.model.delta.epsilon == second.model.delta.epsilon);
        assert_int_equal(first.data.num_sources, second.data.num_sources);
        for (int i = 0; i < first.data.num_sources; i++) {
            assert_true(first.data.sources[i].weight == second.data.sources[i].weight);
            assert_string_equal(first.data.sources[i].name, second.data.sources[i].name);
        }
        assert_int_equal(config_match_resume(&first, again), GDN_OK);
        assert_int_equal(config_match_ranks(&first, again), GDN_OK);
        tried++;
        free(written);
        free(again);
        free(text);
        for (int k = 0; k < CONFIG_KEYS; k++) free(set[k]);
        config_free(&first);
        config_free(&second);
    }
    assert_int_equal(tried, 300);
}

static void numbers(void **state) {
    (void)state;
    char text[NUMBER_TEXT];
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = random_bits(3, 4, i);
        double value, back;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        number_write(value, text);
        assert_true(number_real(text, &back) && back == value);
        assert_true(strchr(text, '.') != NULL); /* YAML 1.1 readers take 1e-05 for text */
    }
    number_write(0.1, text);
    assert_string_equal(text, "0.1");
    number_write(1e-5, text);
    assert_string_equal(text, "1.0e-05");
    number_write(3, text);
    assert_string_equal(text, "3.0");
}

#define DATA "model: {vocab_size: 300}\ndata: {sources: [{path: a, weight: 1}, {path: b, weight: 2}]}\n"
static const char *const base = "train: {seed: 3}\n" DATA;

/* Checks that a run with `set` may continue (wrong NULL) from a run of `base`, or is refused with all of the
 * words. */
static void resumes(const char *set, const char *wrong, const char *values) {
    struct config before = right(base, NULL, NULL), now = right(base, set, NULL);
    char *saved = config_text(&before), *own = config_text(&now);
    struct resume resume = {.saved = saved};
    struct resumed resumed;
    int status = config_resume(&now, &resume, &resumed);
    if (!status) assert_true(!resumed.changed && !resumed.configured && !resumed.words[0]);
    resumed_free(&resumed);
    if (!wrong && status) fail_msg("--set %s: %s", set, gdn_failure());
    if (wrong) {
        assert_int_equal(status, GDN_INPUT);
        failure_has(wrong);
        failure_has(values);
        failure_is_short();
    }
    gdn_failure_clear();
    bool differs = strcmp(own, saved) != 0;
    assert_int_equal(config_match_ranks(&now, saved), differs ? GDN_INPUT : GDN_OK); /* nothing may differ */
    if (differs) {
        failure_has("on rank 0");
        failure_is_short();
    }
    gdn_failure_clear();
    free(own);
    free(saved);
    config_free(&before);
    config_free(&now);
}

/* What config_resume makes of `set`, from a checkpoint that `saved` and `configured` are of, with a change or
 * two: batch size and sequence length, and the words to be told. */
static void goes_on(const char *set, const char *saved, const char *configured, const char *change,
                    const char *another, int batch, int length, const char *words, const char *kept) {
    struct config now = right(base, set, NULL);
    char *changes[] = {(char *)change, (char *)another};
    struct resume resume = {saved, configured, 70, changes, !!change + !!another};
    struct resumed resumed;
    if (config_resume(&now, &resume, &resumed)) fail_msg("%s", gdn_failure());
    assert_int_equal(now.train.batch_size, batch);
    assert_int_equal(now.train.sequence_length, length);
    assert_true(strstr(resumed.words, words) && (words[0] || !resumed.words[0]));
    assert_true(kept ? resumed.configured && strstr(resumed.configured, kept) : !resumed.configured);
    assert_int_equal(resumed.changed, strstr(resumed.words, "before it was") != NULL);
    resumed_free(&resumed);
    config_free(&now);
}

/* Base says 4 and 32, and the checkpoint has 16 and 32 since a start that asked for 16. */
static void resume_with(void **state) {
    (void)state;
    struct config changed = right(base, "train.batch_size=16", NULL);
    char *saved = config_text(&changed);
    const char *said = "train: {batch_size: 4}";
    goes_on("train.batch_size=16", saved, NULL, "train.batch_size=16", NULL, 16, 32, "", "batch_size: 16");
    goes_on("train.seed=3", saved, NULL, "train.batch_size=16", NULL, 16, 32, "", "batch_size: 4");
    goes_on("train.seed=3", saved, said, NULL, NULL, 16, 32, "stays 16", "batch_size: 4");
    goes_on("train.batch_size=16", saved, said, NULL, NULL, 16, 32, "", "batch_size: 4");
    goes_on("train.batch_size=8", saved, said, "train.batch_size=16", NULL, 16, 32, "", "batch_size: 8");
    goes_on("train.seed=3", saved, said, "train.batch_size=2", NULL, 2, 32,
            "from step 70 on train.batch_size is 2", "batch_size: 4");
    /* Batch size and ramp are one setting: what is asked for replaces both. */
    goes_on("train.seed=3", saved, said, "train.batch_ramp=[[0, 2], [90, 8]]", NULL, 8, 32,
            "train.batch_ramp is [[0, 2], [90, 8]], before it was []", "batch_size: 4");
    goes_on("train.seed=3", "train: {seed: 3, batch_ramp: [[0, 2], [90, 8]], batch_size: 8}\n" DATA, NULL,
            "train.batch_size=4", NULL, 4, 32, "train.batch_ramp is [], before it was [[0, 2], [90, 8]]",
            "batch_size: 4");
    goes_on("train.seed=3", saved, said, "train.sequence_length=64", NULL, 16, 64, "stays 16", "length: 32");
    goes_on("train.seed=3", saved, said, "train.sequence_length=8", "train.batch_size=4", 4, 8,
            "is 4, before", "length: 32");

    struct config now = right(base, "train.batch_size=8", NULL);
    struct resumed resumed;
    struct resume ramp = {.saved = "train: {seed: 3, batch_ramp: [[0, 2], [90, 8]], batch_size: 8}\n" DATA,
                          .configured = "train: {batch_size: 4}"};
    assert_int_equal(config_resume(&now, &ramp, &resumed), GDN_INPUT); /* 8 is the ramp's last, and no ramp */
    failure_has("train.batch_ramp is [], in the checkpoint [[0, 2], [90, 8]]");
    gdn_failure_clear();
    struct resume other = {.saved = saved, .configured = said};
    assert_int_equal(config_resume(&now, &other, &resumed), GDN_INPUT);
    failure_has("is 8, in the checkpoint 16 (to change it: --resume-with train.batch_size=8)");
    failure_is_short();
    gdn_failure_clear();
    assert_int_equal(config_match_resume(&now, saved), GDN_OK); /* what a rewind needs */
    char *no_batch[] = {"train.batch_size=0"}, *unknown[] = {"train.batch_sizes=8"};
    other = (struct resume){saved, said, 0, no_batch, 1};
    assert_int_equal(config_resume(&now, &other, &resumed), GDN_INPUT);
    failure_has("--resume-with train.batch_size=0");
    gdn_failure_clear();
    assert_int_equal(config_check_changes(no_batch, 1), GDN_OK);
    assert_int_equal(config_check_changes(unknown, 1), GDN_INPUT);
    failure_has("train.sequence_length=");
    gdn_failure_clear();
    config_free(&now);
    config_free(&changed);
    free(saved);
}

/* Only an interval that was asked for makes `true` a demand, and what is written out means the same again. */
static void saving(void **state) {
    (void)state;
    static const struct {
        const char *text, *set;
        int saving;
    } cases[] = {
        {"{}", NULL, SAVE_AUTO},
        {"checkpoint: {interval: 5}", NULL, SAVE_AUTO},
        {"checkpoint: {asynchronous: true}", NULL, SAVE_AUTO},
        {"checkpoint: {asynchronous: true, interval: 0}", NULL, SAVE_AUTO},
        {"checkpoint: {asynchronous: True, interval: 5}", NULL, SAVE_BACKGROUND},
        {"checkpoint: {asynchronous: true}", "checkpoint.interval_minutes=30", SAVE_BACKGROUND},
        {"checkpoint: {asynchronous: true, interval: 0, interval_minutes: 0.0}", NULL, SAVE_BACKGROUND},
        {"checkpoint: {asynchronous: FALSE, interval: 5}", NULL, SAVE_FOREGROUND},
        {"checkpoint: {interval_minutes: 1}", "checkpoint.asynchronous=auto", SAVE_AUTO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c = right(cases[i].text, cases[i].set, NULL);
        assert_int_equal(c.checkpoint.asynchronous, cases[i].saving);
        char *text = config_text(&c);
        struct config again = right(text, NULL, NULL);
        assert_int_equal(again.checkpoint.asynchronous, cases[i].saving);
        free(text);
        config_free(&again);
        config_free(&c);
    }
}

static void resume(void **state) {
    (void)state;
    static const char *const may_differ[] = {
        "train.steps=99",
        "train.lr=0.5",
        "train.warmup_steps=0",
        "train.micro_batch_size=2",
        "train.stop_at=3",
        "mesh={data: 2, tensor: 2, pipeline: 3, interleave: 2, delta: connection, sequence_parallel: true}",
        "mesh={overlap: false, narrow_sources: false, bucket: 1, small: 0}",
        "checkpoint.files=node",
        "device=cpu",
        "checkpoint.keep=9",
        "train.recompute=none",
        "train.eval_interval=5",
        "data.sources=[{path: moved, weight: 1}, {path: b, weight: 2}]",
    };
    for (size_t i = 0; i < sizeof may_differ / sizeof *may_differ; i++) resumes(may_differ[i], NULL, NULL);
    resumes("train.seed=4", "train.seed", "is 4, in the checkpoint 3");
    resumes("train.batch_size=8", "train.batch_size", "is 8, in the checkpoint 4");
    resumes("train.sequence_length=8", "train.sequence_length", "is 8, in the checkpoint 32");
    resumes("data.order=sequential", "data.order", "is sequential, in the checkpoint shuffle");
    resumes("data.validation_fraction=0.5", "data.validation_fraction", "is 0.5, in the checkpoint 0.0");
    resumes("data.sources=[{path: a, weight: 1}, {path: b, weight: 3}]", "data.sources", "weight: 3.0");
    resumes("model.delta.distances=[]", "model.delta.distances", "is [], in the checkpoint [1, 2, 3, 4]");
    resumes("model.norm_eps=1e-6", "model.norm_eps", "is 1.0e-06, in the checkpoint 1.0e-05");
    /* Many differences: each key is named, in five lines at most. */
    resumes("model={num_layers: 1, intermediate_size: 2, rope_theta: 3, norm_eps: 4, tie_embeddings: true, "
            "vocab_size: 999}",
            "model.tie_embeddings is true", "model.vocab_size is 999");

    /* A checkpoint of a build with other backends still compares; one with a broken configuration does not.
     */
    struct config now = right("{}", NULL, NULL);
    assert_int_equal(config_match_resume(&now, "device: cuda\n"), GDN_OK);
    assert_int_equal(config_match_resume(&now, "device: 5\n"), GDN_INPUT);
    failure_has("the checkpoint's configuration, line 1: device");
    gdn_failure_clear();
    config_free(&now);
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
        cmocka_unit_test(defaults),    cmocka_unit_test(forms_of_values),
        cmocka_unit_test(paths),       cmocka_unit_test(forms_of_values),
        cmocka_unit_test(overrides),   cmocka_unit_test(plain_ignores_delta),
        cmocka_unit_test(meshes),      cmocka_unit_test(round_trip),
        cmocka_unit_test(numbers),     cmocka_unit_test(resume),
        cmocka_unit_test(resume_with), cmocka_unit_test(help),
        cmocka_unit_test(saving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
