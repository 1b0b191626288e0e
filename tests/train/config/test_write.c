/* A configuration that is written reads back the same, whatever its values. */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/checkpoint/checkpoint.h"
#include "dist/layout/layout.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "model/rules/rules.h"
#include "tests/train/config/config_fixture.h"
#include "tests/support/unit.h"
#include "train/config/keys.h"
#include "train/config/number.h"

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
enum { TEXTS = sizeof texts / sizeof *texts };

static void random_word(const char *word, uint64_t bits, FILE *out) {
    int count = 1;
    for (const char *at = word; *at; at++) count += *at == '|';
    for (int pick = (int)(bits % (uint64_t)count); pick > 0; pick--) word = strchr(word, '|') + 1;
    bool cuda = !strncmp(word, "cuda", 4);
    fprintf(out, "%.*s", (int)strcspn(word, "|"), cuda ? "cpu" : word);
}

/* One value, as YAML; `u` in [0, 1). */
static void random_scalar(const struct key *key, double u, uint64_t bits, FILE *out) {
    switch (key->type) {
    case KEY_INT: {
        double values = key->max - key->min + 1;
        fprintf(out, "%d", (int)key->min + (int)(bits % (values < 1000 ? (uint64_t)values : 1000)));
        break;
    }
    case KEY_LONG: {
        long value = (long)key->min + (long)(bits >> (2 + bits % 60));
        fprintf(out, "%ld", (double)value > key->max ? (long)key->max : value);
        break;
    }
    case KEY_UNSIGNED:
        fprintf(out, "%llu", (unsigned long long)bits);
        break;
    case KEY_REAL:
        fprintf(out, "%.17g",
                key->max < FLT_MAX ? u * key->max : fmax(key->min, ldexp(0.5 + u / 2, (int)(bits % 200) - 100)));
        break;
    case KEY_BOOL:
        fputs(bits & 1 ? "true" : "false", out);
        break;
    case KEY_WORD:
        random_word(key_choices(key), bits, out);
        break;
    default: /* KEY_STRING */
        fputs(texts[bits % TEXTS], out);
    }
}

/* Several, without what is around them. */
static void random_list(const struct key *key, double u, uint64_t bits, FILE *out) {
    switch (key->type) {
    case KEY_FILES:
        for (uint64_t i = 1; i < (bits >> 1) % 5; i++) fprintf(out, "%s,", texts[i]);
        break;
    case KEY_INTS:
        for (uint64_t i = 0, n = bits % (MAX_DISTANCES + 1); i < n; i++)
            fprintf(out, "%s%llu", i ? "," : "", (unsigned long long)(3 * i + 1));
        break;
    case KEY_REALS:
        for (uint64_t i = 0, n = bits % (MAX_EXITS + 1); i < n; i++)
            fprintf(out, "%s%.17g", i ? "," : "", (u + 0.1) / (double)(i + 1));
        break;
    case KEY_EDGES: /* that a model of one layer may have; below there are more */
        fputs("[0, -1],", out);
        break;
    case KEY_RAMP:
        for (uint64_t i = 0, n = bits % (RAMP_MAX + 1); i < n; i++)
            fprintf(out, "[%llu, 12],", (unsigned long long)(i * (1 + bits % 1000)));
        break;
    case KEY_GROUPS:
        for (uint64_t i = 0, n = bits % 5; i < n; i++) {
            fprintf(out, "{match: 'layers.%llu.*'", (unsigned long long)(bits >> 5));
            if (i % 2) fprintf(out, ", lr_scale: %.17g", 3 * u);
            if (i % 3) fprintf(out, ", weight_decay: %.17g", u / 7);
            if (i % 5) fprintf(out, ", beta1: %.17g, beta2: %.17g", u, u / 3);
            fputs("},", out);
        }
        break;
    case KEY_RULES: /* of each kind that others may stand beside */
        for (const char *word = rules_words(), *first = word; *word && bits % 3;
             word += strcspn(word, "|"), word += *word == '|') {
            int row = 1;
            for (const char *at = first; at < word; at++) row += *at == '|';
            if (!rules_row(row)->streams)
                fprintf(out, "{kind: %.*s},", (int)strcspn(word, "|"), word);
        }
        break;
    case KEY_SOURCES:
        for (uint64_t i = 0; i < bits % 5; i++)
            fprintf(out, i % 2 ? "{path: %s, weight: %.17g}," : "{path: %s, weight: %.17g, name: first_%d},",
                    texts[i], ldexp(1 + u, (int)i - 3), (int)i);
        break;
    default: /* KEY_PATHS */
        for (uint64_t i = 0; i < bits % 4; i++)
            fprintf(out, "%s: %s,", (const char *[]){"null", "5-_a", "-"}[i], texts[i + 1]);
    }
}

/* A random value that the key allows, as YAML. */
static void random_value(const struct key *key, uint64_t draw, FILE *out) {
    const uint64_t what = random_name(key->path), bits = random_bits(2, what, draw);
    const double u = random_uniform(1, what, draw);
    const bool map = key->type == KEY_PATHS,
               list = map || key->type == KEY_INTS || key->type == KEY_REALS || key->type == KEY_EDGES || key->type == KEY_RAMP ||
                      key->type == KEY_GROUPS || key->type == KEY_RULES || key->type == KEY_SOURCES;
    if (key->type == KEY_FILES && bits & 1) { /* one, which may be '', or a list of others */
        fputs(texts[(bits >> 1) % TEXTS], out);
    } else if (list || key->type == KEY_FILES) {
        fputc(map ? '{' : '[', out);
        random_list(key, u, bits, out);
        fputc(map ? '}' : ']', out);
    } else {
        random_scalar(key, u, bits, out);
    }
}

static void same(const struct config *first, const struct config *second) {
    assert_memory_equal(&first->train, &second->train, sizeof first->train);
    assert_memory_equal(&first->mesh, &second->mesh, sizeof first->mesh);
    assert_true(first->model.rope_theta == second->model.rope_theta &&
                first->model.delta.epsilon == second->model.delta.epsilon);
    assert_memory_equal(first->model.exit.weights, second->model.exit.weights,
                        (size_t)first->model.exit.num_weights * sizeof(double));
    assert_int_equal(first->data.num_sources, second->data.num_sources);
    for (int i = 0; i < first->data.num_sources; i++) {
        assert_true(first->data.sources[i].weight == second->data.sources[i].weight);
        assert_string_equal(first->data.sources[i].name, second->data.sources[i].name);
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
        /* Two settings are drawn so that the widths divide, which random numbers seldom do, and that all
         * kinds of rules find layers, but not too many. */
        char *widths[] = {
            "model={hidden_size: 720, num_heads: 12, num_kv_heads: 0}",
            "mesh={data: 1, tensor: 1, pipeline: 1, context: 1, interleave: 1, schedule: 1f1b, schedule_memory: 0, compress_boundary: 0}",
            "model.delta={gate_hidden: 12, attention_heads: 12, hidden: 7, attention_dim: 3}",
            sizeof(real) == sizeof(double) ? "mesh.wire=bf16" : "mesh.interleave=1", /* doubles refuse fp32 */
            "train={micro_batch_size: 0, recompute: full, recompute_delta: same}",
            draw & 8 ? "delta_store.interval=0" : "model.delta.distances=[2, 3]",
            draw & 4096  ? "model.delta.edges=[]"
            : draw & 256 ? "model.delta={distances: [], embedding_source: false, stage_steps: 0}"
                         : "model.delta={distances: [], edges: [[59, 3], [0, -1], [59, 57]], "
                           "embedding_source: false, stage_steps: 0}",
            draw & 4 ? "delta_store={ratio: 0, layers: []}" : "delta_store={tolerance: 0, layers: []}",
            "model.vocab_size=1000",
            "model.rope_scaling={kind: llama3, low_freq_factor: 0.5, high_freq_factor: 3}",
            draw & 512 ? "model.head_dim=14" : "model.head_dim=60",
            draw & 256 ? "model.rules=[]" : "model.num_layers=60",
            draw & 128 ? "train.batch_ramp=[]" : "train.batch_size=12",
            draw & 64 ? "spikes.window=0" : "spikes.window=100",
            draw & 2048 ? "data.messages=none" : "data={format: jsonl, tokenizer: tok.json}",
            "model.delta.temperature=0.5",
            draw & 256 ? "model.exit={layers: [], weights: [], curriculum: none}"
                       : "model.exit={layers: [0, 3, 58], weights: [0.1, 3.7e-5, 2]}",
            draw & 256 ? "mesh.interleave=1" : "train.compress_sources=0",
            "train.dropout.layer=0", /* not with prune and delta_store */
            "train.prune.by=none", /* of which most does not go together */
            "data={field: body, cache: kept}",
            draw & 8192 ? "train.residual=fp32" : "train.compress_sources=0",
            draw & 32 ? "train.graphs=false" : "train={compress_sources: 0, noise_interval: 0}",
            draw & 16 ? "device=cuda" : "train.precision=fp32",
            draw & 16 ? "mesh.tensor_pieces=1" : "mesh.sequence_parallel=false",
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
        same(&first, &second);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
