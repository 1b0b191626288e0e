/* config.json as gdn's configuration: what is read, in either spelling, and what is refused by name. */
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "tests/support/unit.h"
#include "train/huggingface/settings.h"

#define WIDTHS                                                                                               \
    "\"vocab_size\": 100, \"hidden_size\": 32, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "       \
    "\"intermediate_size\": 48"
#define LLAMA "\"model_type\": \"llama\", " WIDTHS
#define QWEN2 "\"model_type\": \"qwen2\", " WIDTHS
#define GDN "\"model_type\": \"gdn\", " WIDTHS
#define MISTRAL "\"model_type\": \"mistral\", " WIDTHS

static struct config parse(const char *text) {
    struct config config;
    if (settings_parse(text, strlen(text), "config.json", &config)) fail_msg("%s", gdn_failure());
    return config;
}

/* A configuration of these keys is refused in words that contain each text up to a NULL. */
static void refused(const char *text, const char *first, const char *second) {
    struct config config;
    assert_int_equal(settings_parse(text, strlen(text), "config.json", &config), GDN_INPUT);
    if (!strstr(gdn_failure(), first) || !strstr(gdn_failure(), second))
        fail_msg("'%s' or '%s' is not in: %s", first, second, gdn_failure());
    gdn_failure_clear();
}

static void defaults(void **state) {
    (void)state;
    struct config c = parse("{" LLAMA "}");
    const struct model_config *m = &c.model;
    assert_int_equal(m->vocab_size, 100);
    assert_int_equal(m->hidden_size, 32);
    assert_int_equal(m->num_layers, 2);
    assert_int_equal(m->num_heads, 4);
    assert_int_equal(m->num_kv_heads, 4);
    assert_int_equal(m->intermediate_size, 48);
    assert_true(m->norm_eps == 1e-6 && m->rope_theta == 10000 && !m->tie_embeddings);
    assert_int_equal(m->delta.num_distances, 0);
    assert_int_equal(c.train.sequence_length, 2048);
    config_free(&c);
}

static void both_spellings(void **state) {
    (void)state;
    struct config c = parse("{" LLAMA ", \"rope_theta\": 500000, \"rope_scaling\": null, \"torch_dtype\": "
                            "\"bfloat16\", \"max_position_embeddings\": 64, \"num_key_value_heads\": 2, "
                            "\"tie_word_embeddings\": true, \"rms_norm_eps\": 1e-05}");
    assert_true(c.model.rope_theta == 500000 && c.model.norm_eps == 1e-5 && c.model.tie_embeddings);
    assert_int_equal(c.model.num_kv_heads, 2);
    assert_int_equal(c.train.sequence_length, 64);
    config_free(&c);
    c = parse("{" LLAMA
              ", \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1e6}, \"dtype\": "
              "\"float32\"}");
    assert_true(c.model.rope_theta == 1e6);
    config_free(&c);
    c = parse("{" LLAMA ", \"rope_theta\": 1e6, \"rope_parameters\": {\"rope_theta\": 1000000.0}, "
              "\"head_dim\": 8}");
    config_free(&c);
}

static void families(void **state) {
    (void)state;
    struct config c = parse("{" MISTRAL ", \"num_key_value_heads\": 2, \"sliding_window\": null, "
                            "\"architectures\": [\"MistralForCausalLM\"]}");
    assert_int_equal(c.model.num_kv_heads, 2);
    config_free(&c);
    c = parse("{" MISTRAL ", \"num_key_value_heads\": 2, \"sliding_window\": 4096, "
              "\"max_position_embeddings\": 4096}");
    config_free(&c);
    refused("{" MISTRAL ", \"num_key_value_heads\": 2}", "sliding_window is 4096", "null");
    refused("{" MISTRAL ", \"num_key_value_heads\": 2, \"sliding_window\": 4095, "
            "\"max_position_embeddings\": 4096}",
            "sliding_window is 4095", "max_position_embeddings");
    refused("{" MISTRAL
            ", \"num_key_value_heads\": 2, \"sliding_window\": 32, \"use_sliding_window\": false}",
            "sliding_window is 32", "null");
    c = parse("{" QWEN2 ", \"num_key_value_heads\": 2, \"sliding_window\": 32, \"attention_bias\": false}");
    assert_int_equal(c.model.attention_bias, BIAS_QKV);
    config_free(&c);
    c = parse("{" LLAMA ", \"attention_bias\": true, \"head_dim\": 6}");
    assert_int_equal(c.model.attention_bias, BIAS_ALL);
    assert_int_equal(c.model.head_dim, 6);
    config_free(&c);
    c = parse("{" QWEN2 ", \"num_key_value_heads\": 2, \"use_mrope\": false, \"unsloth_fixed\": true, "
              "\"unsloth_version\": \"2025.3.19\", \"tokenizer_class\": \"Qwen2Tokenizer\"}");
    config_free(&c);
    refused("{" QWEN2 ", \"num_key_value_heads\": 2, \"use_mrope\": true}", "use_mrope is true", "false");
    refused("{" QWEN2 ", \"num_key_value_heads\": 2, \"attention_bias\": true}", "attention_bias is true",
            "false");
    refused("{" QWEN2 ", \"num_key_value_heads\": 2, \"use_sliding_window\": true}",
            "use_sliding_window is true", "");
    refused("{" LLAMA ", \"delta\": {\"distances\": [1]}}", "key \"delta\" is not known", "");
    refused("{" WIDTHS "}", "model_type is left out", "llama, mistral, qwen2, qwen3 or gdn is expected");
    refused("{\"model_type\": \"gemma2\", " WIDTHS "}", "model_type is \"gemma2\"", "llama");
    refused("{" LLAMA ", \"architectures\": [\"LlamaForSequenceClassification\"]}", "architectures",
            "LlamaForCausalLM");
}

/* gdn's own: connections and rules stand there as in its configuration. */
static void own(void **state) {
    (void)state;
    struct config c = parse(
        "{" GDN
        ", \"delta\": {\"distances\": [1, 3], \"kind\": \"full\", \"normalize\": true, \"decay\": 0.25}, "
        "\"rules\": [{\"kind\": \"value\", \"sources\": [\"embedding\"]}], "
        "\"logit_softcap\": 2.5, \"attention_bias\": \"qkv\", \"auto_map\": {}, \"active_distances\": null}");
    assert_int_equal(c.model.delta.num_distances, 2);
    assert_int_equal(c.model.num_rules, 1);
    assert_int_equal(c.model.attention_bias, BIAS_QKV);
    assert_true(c.model.delta.normalize && c.model.delta.decay == 0.25 && c.model.logit_softcap == 2.5);
    char *json = config_json(&c, "model.rules");
    assert_non_null(strstr(json, "[{\"kind\": \"value\", "));
    assert_non_null(strstr(json, "\"sources\": [\"embedding\"], "));
    free(json);
    json = config_json(&c, "model.delta.");
    assert_non_null(strstr(json, "\"kind\": \"full\", "));
    assert_non_null(strstr(json, "\"embedding_source\": false, "));
    assert_non_null(strstr(json, "\"distances\": [1, 3], "));
    free(json);
    config_free(&c);
    refused("{" GDN ", \"delta\": {\"width\": 3}}", "unknown key model.delta.width", "config.json");
    refused("{" GDN ", \"active_distances\": 1}", "active_distances is 1", "null is expected");
    refused("{" GDN ", \"attention_bias\": \"some\"}", "model.attention_bias", "config.json");
}

static void not_understood(void **state) {
    (void)state;
    refused("{" LLAMA ", \"final_logit_softcapping\": 30.0}", "key \"final_logit_softcapping\" is not known",
            "");
    refused("{" LLAMA ", \"quantization_config\": {}}", "\"quantization_config\"", "not known");
    refused("{" LLAMA ", \"line\\nbreak\": 1}", "\"line\\nbreak\"", "not known");
    refused("{" LLAMA ", \"hidden_act\": \"gelu\"}", "hidden_act is \"gelu\"", "\"silu\" is expected");
    refused("{" LLAMA ", \"mlp_bias\": true}", "mlp_bias is true", "false is expected");
    refused("{" LLAMA ", \"partial_rotary_factor\": 0.5}", "partial_rotary_factor is 0.5", "1.0");
    refused("{" LLAMA ", \"rope_parameters\": {\"rope_theta\": 1e4, \"partial_rotary_factor\": 0.5}}",
            "partial_rotary_factor", "1.0");
    refused("{" LLAMA ", \"rope_parameters\": {\"rope_theta\": 1e4, \"mscale\": 2}}", "rope_parameters",
            "mscale");
    refused("{" LLAMA ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2.0}}", "type is \"yarn\"", "");
    refused("{" LLAMA
            ", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.0, \"type\": \"default\"}}",
            "type is \"default\"", "what rope_type says is expected");
    refused("{" LLAMA
            ", \"rope_scaling\": {\"type\": \"default\", \"factor\": 2.0, \"rope_type\": \"linear\"}}",
            "rope_type is \"linear\"", "what type says is expected");
    refused("{" LLAMA ", \"rope_theta\": 1e4, \"rope_parameters\": {\"rope_theta\": 1e6}}",
            "rope_theta is 10000", "rope_parameters");
    refused("{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0}}",
            "rope_scaling has no number", "low_freq_factor");
    refused("{" LLAMA
            ", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8.0}, \"rope_parameters\": "
            "{\"rope_type\": \"linear\", \"factor\": 4.0}}",
            "rope_scaling is {", "what rope_parameters says");
    refused("{" LLAMA ", \"rope_theta\": \"1e4\"}", "rope_theta is \"1e4\"", "a number");
    refused("{" LLAMA ", \"layer_types\": [\"full_attention\", \"sliding_attention\"]}", "layer_types",
            "full_attention");
    refused("{" LLAMA ", \"attention_dropout\": 0.1}", "attention_dropout is 0.1", "0.0");
    refused("{" LLAMA ", \"rms_norm_eps\": \"small\"}", "rms_norm_eps is \"small\"", "a number");
    refused("{" LLAMA ", \"num_key_value_heads\": 3}", "config.json", "num_kv_heads");
    refused("{" LLAMA ", \"max_position_embeddings\": 0}", "max_position_embeddings is 0", "above 0");
    refused("{\"model_type\": \"llama\", \"vocab_size\": 100}", "no number hidden_size", "");
    refused("{" LLAMA ", \"vocab_size\": 100}", "no JSON object, in line 1", "duplicate object key");
    refused("{" LLAMA ", \"rope_theta\": 1e400}", "no JSON object, in line 1", "real number overflow");
    refused("[]", "no JSON object", "");
    refused("", "no JSON object", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(defaults), cmocka_unit_test(both_spellings),
                                       cmocka_unit_test(families), cmocka_unit_test(own),
                                       cmocka_unit_test(not_understood)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
