/* Values that are right alone and wrong together: the message names both keys, with where each was given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "tests/train/config/config_fixture.h"
#include "tests/support/unit.h"

static void combinations(void **state) {
    (void)state;
    refused("model:\n  hidden_size: 100\n", NULL, "run.yaml", "model.hidden_size: 100 (line 2)",
            "model.num_heads: 4 (default)", "multiple of 2 x num_heads", NULL);
    refused("model: {hidden_size: 60}", "model.num_heads=7", "60 (line 1)", "7 (--set model.num_heads=7)",
            NULL);
    refused("model: {head_dim: 9}", NULL, "model.head_dim: 9 (line 1)", "must be even", NULL);
    refused("model: {head_dim: -2}", NULL, "model.head_dim", "an integer from 0", NULL);
    refused("model: {rope_scaling: {factor: 8}}", NULL, "model.rope_scaling.kind: none (default)",
            "model.rope_scaling.factor: 8.0 (line 1)", "linear or llama3 is expected", NULL);
    refused("model: {rope_scaling: {kind: yarn, factor: 8}}", NULL, "model.rope_scaling.kind",
            "none, linear or llama3", NULL);
    refused("model: {rope_scaling: {kind: linear, factor: 0.5}}", NULL, "model.rope_scaling.factor",
            "at least 1", NULL);
    refused("model: {rope_scaling: {kind: llama3, high_freq_factor: 1}}", NULL,
            "model.rope_scaling.low_freq_factor: 1.0", "model.rope_scaling.high_freq_factor: 1.0", NULL);
    refused("model: {rope_scaling: {beta_fast: 1}}", NULL, "model.rope_scaling.beta_fast", "unknown key",
            NULL);
    refused("model: {qk_norm: layer}", NULL, "model.qk_norm", "none or head", NULL);
    refused("model: {attention_bias: true}", NULL, "model.attention_bias", "none, qkv or all", NULL);
    refused("model: {num_kv_heads: 3}", NULL, "model.num_heads: 4", "model.num_kv_heads: 3", NULL);
    refused("model: {num_kv_heads: 8}", NULL, "model.num_heads: 4", "model.num_kv_heads: 8", NULL);
    static const char *const adaptive[] = {"0", "1", "5", "128"};
    for (size_t i = 0; i < sizeof adaptive / sizeof *adaptive; i++) {
        char set[64];
        snprintf(set, sizeof set, "model.delta.gate_hidden=%s", adaptive[i]);
        refused("model: {delta: {kind: adaptive}}", set, "model.delta.kind: adaptive",
                "model.delta.gate_hidden: ", adaptive[i], "model.hidden_size: 64", NULL);
    }
    refused("model: {delta: {hidden: 0}}", NULL, "model.delta.hidden: 0", NULL);
    refused("model: {delta: {gate_hidden: 0}}", NULL, "model.delta.gate_hidden: 0", NULL);
    refused("model: {delta: {aggregate: attention, attention_dim: 0}}", NULL, "model.delta.attention_dim: 0",
            NULL);
    refused("model: {delta: {aggregate: multihead, attention_heads: 5}}", NULL,
            "model.delta.aggregate: multihead", "model.delta.attention_heads: 5", "model.hidden_size: 64",
            NULL);
    refused("model: {delta: {aggregate: multihead, attention_heads: 0}}", NULL,
            "model.delta.attention_heads: 0", NULL);
}

static void combinations_of_rules(void **state) {
    (void)state;
    refused("model: {num_layers: 65, rules: [{kind: lane}, {kind: depth_attention}]}", NULL,
            "model.rules[1].block: ", "a larger block is expected", "model.num_layers: 65", NULL);
    refused("model: {rules: [{kind: mix, form: gated, groups: 5}]}", NULL,
            "model.rules[0].groups: 5 (line 1)", "divides model.hidden_size", "model.hidden_size: 64", NULL);
    refused("model: {rules: [{kind: value, form: residual, layers: [0]}]}", NULL,
            "model.rules[0].layers: [0]", "enters no layer", "model.rules[0].period: 1", NULL);
    refused("model: {rules: [{kind: lane}, {kind: dense, dilation: 9, period: 2}]}", NULL, "enters no layer",
            "model.rules[1].dilation: 9", "model.rules[1].period: 2", "model.num_layers: 6", NULL);
    refused("model: {rules: [{kind: mix, sources: [], distances: [9]}]}", NULL, "model.rules[0].sources: []",
            "model.rules[0].distances: [9]", "model.rules[0].period: 1", "model.num_layers: 6", NULL);
    refused("model: {rules: [{kind: lane}, {kind: mix, sources: [6]}]}", NULL,
            "a layer that the model does not have", "model.rules[1].sources: [6]", "model.num_layers: 6",
            NULL);
    refused("model: {rules: [{kind: lane}, {kind: mix, layers: [9]}]}", NULL,
            "a layer that the model does not have", "model.rules[1].layers: [9]", NULL);
    refused("model: {rules: [{kind: value, form: residual}]}\ntrain: {optimizer: muon, muon: {split: "
            "whole}}\nmesh: "
            "{pipeline: 2}",
            NULL, "model.rules", "train.muon.split: whole", "mesh.pipeline: 2", NULL);
    refused("model: {rules: [{kind: mix, groups: 4}]}", NULL, "model.rules[0]", "groups",
            "period and lr_scale", NULL);
    refused("model: {rules: [{kind: mix, from: below}]}", NULL, "model.rules[0].from",
            "state, added or both is expected", NULL);
    refused("model: {rules: [{kind: depth_attention, layers: [0]}]}", NULL, "model.rules", "enters no layer",
            NULL);
    refused("model: {rules: [{kind: depth_attention, form: published, place: value}]}", NULL,
            "model.rules[0].form: published", "model.rules[0].place: value", "place before is expected",
            NULL);
    refused("model: {rules: [{kind: dense, place: after}]}", NULL, "model.rules[0].place",
            "expected is one of before, head", NULL);
    refused("model: {rules: [{kind: dense, channels: value}]}", NULL, "model.rules[0].channels is 'value'",
            "a list of query, key and value", NULL);
    refused("model: {rules: [{kind: dense, channels: [key, output]}]}", NULL, "model.rules[0].channels",
            "output", "query, key or value", NULL);
    refused("model: {rules: [{kind: dense, channels: [key, value, key]}]}", NULL, "has 'key' once more",
            NULL);
    refused("model: {rules: [{kind: dense, place: head, channels: [key]}]}", NULL,
            "model.rules[0].channels: [key]", "place before is expected", NULL);
    refused("model: {rules: [{kind: dense, place: head, period: 2}]}", NULL, "model.rules[0].period: 2",
            "no period is expected", NULL);
    refused("model: {rules: [{kind: mix, channels: [key]}]}", NULL, "unknown key model.rules[0].channels",
            NULL);
    refused("model: {rules: [{kind: hyper, streams: 6}]}", "model.delta.distances=[]", "2, 4 or 8 streams",
            "model.rules[0].streams: 6", NULL);
    refused("model: {rules: [{kind: hyper, streams: 9}]}", "model.delta.distances=[]", "streams is '9'",
            "from 2 to 8", NULL);
    refused("model: {rules: [{kind: hyper, mixing: sinkhorn}]}", NULL, "mixing", "doubly_stochastic", NULL);
    refused("model: {rules: [{kind: hyper, place: around}]}", NULL, "unknown key model.rules[0].place", NULL);
    refused("model: {rules: [{kind: hyper}]}", NULL, "delta reads and adds to one",
            "model.delta.distances: [1, 2, 3, 4] (default)", NULL);
    static const char *const others[] = {"{kind: lane}, {kind: hyper}", "{kind: hyper}, {kind: value}"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char text[128];
        snprintf(text, sizeof text, "model: {rules: [%s]}", others[i]);
        refused(text, "model.delta.distances=[]",
                i ? "value reads and adds to one" : "lane reads and adds to one", "it is expected alone",
                i ? "model.rules[0].kind: hyper" : "model.rules[1].kind: hyper", NULL);
    }
    refused("model: {rules: [{kind: hyper}, {kind: hyper, streams: 2}]}", "model.delta.distances=[]",
            "hyper once more", NULL);
}

static void combinations_with_the_mesh(void **state) {
    (void)state;
    refused("mesh: {context: 4, context_exchange: heads, tensor: 2}", NULL, "mesh.context_exchange: heads (line 1)",
            "mesh.context: 4 (line 1)", "mesh.tensor: 2 (line 1)", "model.num_kv_heads: 4 (default)",
            "context must divide num_kv_heads / tensor", NULL);
    refused("mesh: {context_exchange: star}", NULL, "mesh.context_exchange", "gather, ring or heads", NULL);
    refused("train: {batch_size: 10, micro_batch_size: 4}", NULL, "train.batch_size: 10",
            "train.micro_batch_size: 4", NULL);
    refused("train: {batch_size: 12, micro_batch_size: 4}\nmesh: {data: 2}", NULL, "train.batch_size: 12",
            "mesh.data: 2 (line 2)", "train.micro_batch_size: 4", NULL);
    refused("train: {batch_size: 2147483647, micro_batch_size: 2147483647}\nmesh: {data: 2147483647}", NULL,
            "mesh.data", NULL);
    refused("mesh: {tensor: 3}", NULL, "mesh.tensor: 3 (line 1)", "model.num_heads: 4",
            "model.num_kv_heads: 4", NULL);
    refused("model: {head_dim: 8, hidden_size: 62}", "mesh.tensor=4", "mesh.tensor: 4",
            "model.hidden_size: 62 (line 1)", NULL);
    refused("model: {num_kv_heads: 2}", "mesh.tensor=4", "mesh.tensor: 4", "model.num_kv_heads: 2 (line 1)",
            NULL);
    refused("model: {intermediate_size: 177}", "mesh.tensor=2", "mesh.tensor: 2",
            "model.intermediate_size: 177", NULL);
    refused("model: {vocab_size: 3}", "mesh.tensor=4", "mesh.tensor: 4", "model.vocab_size: 3", NULL);
    refused("model: {delta: {hidden: 31}}", "mesh.tensor=2", "mesh.tensor: 2",
            "mesh.delta: channel (default)", "model.delta.kind: bottleneck", "model.delta.hidden: 31", NULL);
    refused("model: {delta: {aggregate: multihead, attention_heads: 2}}\nmesh: {delta: connection}",
            "mesh.tensor=4", "mesh.tensor: 4", "model.delta.aggregate: multihead",
            "model.delta.attention_heads: 2 (line 1)", NULL);
    refused("mesh: {interleave: 2}", NULL, "mesh.interleave: 2", "mesh.pipeline: 1 (default)", NULL);
    refused("mesh: {interleave: 2, pipeline: 4}", NULL, "mesh.interleave: 2", "mesh.pipeline: 4",
            "model.num_layers: 6", NULL);
    refused("mesh: {interleave: 2147483647, pipeline: 64}", NULL, "mesh.interleave", "model.num_layers: 6",
            NULL);
    refused("mesh: {schedule: zero_bubble}", NULL, "mesh.schedule: zero_bubble", "mesh.pipeline: 1 (default)",
            NULL);
    refused("mesh: {schedule: zero_bubble, pipeline: 2, interleave: 2}", NULL, "mesh.schedule: zero_bubble",
            "mesh.interleave: 2", NULL);
    refused("mesh: {schedule: zero_bubble, pipeline: 2}\ntrain: {precision: fp8}\ndevice: cuda", NULL,
            "mesh.schedule: zero_bubble", "train.precision: fp8", NULL);
    refused("mesh: {tensor: 2, tensor_pieces: 4, sequence_parallel: true}", NULL, "mesh.tensor_pieces: 4",
            "mesh.sequence_parallel: true", NULL);
    refused("mesh: {tensor: 2, tensor_pieces: 4}\ntrain: {precision: fp8}\ndevice: cuda", NULL, "mesh.tensor_pieces: 4",
            "train.precision: fp8", NULL);
    refused("mesh: {schedule: zero_bubble_w, pipeline: 2}", NULL, "'zero_bubble_w'",
            "1f1b, zero_bubble or zero_bubble_v is expected", NULL);
    refused("mesh: {schedule: zero_bubble_v}", NULL, "mesh.schedule: zero_bubble_v", "mesh.pipeline: 1 (default)",
            NULL);
    refused("mesh: {schedule: zero_bubble_v, pipeline: 2, interleave: 2}", NULL, "mesh.schedule: zero_bubble_v",
            "mesh.interleave: 2", NULL);
    refused("mesh: {schedule: zero_bubble_v, pipeline: 2}\ntrain: {precision: fp8}\ndevice: cuda", NULL,
            "mesh.schedule: zero_bubble_v", "train.precision: fp8", NULL);
    refused("mesh: {schedule: zero_bubble_v, pipeline: 4}", NULL, "mesh.schedule: zero_bubble_v", "mesh.pipeline: 4",
            "model.num_layers: 6", NULL);
    refused("mesh: {schedule_memory: 3, pipeline: 2}", NULL, "mesh.schedule_memory: 3", "mesh.schedule: 1f1b (default)",
            NULL);
    refused("mesh: {schedule: zero_bubble, schedule_memory: 3, pipeline: 2}\ntrain: {memory: 2}", NULL,
            "mesh.schedule_memory: 3", "train.memory: 2", NULL);
    refused("mesh: {pipeline: 0}", NULL, "mesh.pipeline", "'0'", "from 1", NULL);
    refused("mesh: {pipeline: 65}", NULL, "mesh.pipeline: 65", "model.num_layers: 6", NULL);
    refused("mesh: {bucket: 0}", NULL, "mesh.bucket", "'0'", "from 1", NULL);
    refused("mesh: {delta: heads}", NULL, "mesh.delta", "channel", "connection", NULL);
}

static void combinations_of_data(void **state) {
    (void)state;
    refused("model: {vocab_size: 256}\ndata: {train: a}", NULL, "model.vocab_size: 256", "data.format: text",
            "257", NULL);
    refused("model: {vocab_size: 300}\ndata: {train: a, sources: [{path: b}]}", NULL,
            "data.train: \"a\" (line 2)", "data.sources: ", NULL);
    refused("model: {vocab_size: 300}\ndata: {validation: a, validation_fraction: 0.1}", NULL,
            "data.validation: \"a\"", "data.validation_fraction: 0.1", NULL);
    refused("model: {vocab_size: 300}\ndata: {validation: a, validations: {validation: b}}", NULL,
            "two validation sets would be called 'validation'", "data.validations: {\"validation\": \"b\"}",
            NULL);
    refused("model: {vocab_size: 300}\ndata: {sources: [{path: a}, {path: b, name: source_0}]}", NULL,
            "two validation sets would be called 'source_0'", "data.sources: ", NULL);
    refused("model: {vocab_size: 300}\ndata: {sources: [{path: a, name: x}], validations: {x: b}}", NULL,
            "two validation sets would be called 'x'", NULL);
    refused("model: {vocab_size: 256}\ndata: {validations: {x: b}}", NULL, "vocab_size of at least 257",
            NULL);
    refused("device: cpu\ntrain: {precision: fp16}", NULL, "device: cpu (line 1)",
            "train.precision: fp16 (line 2)", "fp32 or bf16", NULL);
    refused("device: cpu\ntrain: {precision: fp8}", NULL, "train.precision: fp8 (line 2)", "fp32 or bf16",
            NULL);
}

/* Connections that are listed, and what says the same otherwise. */
static void edges_that_are_listed(void **state) {
    (void)state;
    refused("model: {delta: {edges: [[2, 0]], distances: [1, 2]}}", NULL, "the other left out or []",
            "model.delta.edges: [[2, 0]] (line 1)", "model.delta.distances: [1, 2] (line 1)", NULL);
    refused("model: {delta: {distances: [1]}}", "model.delta.edges=[[2, 0]]", "(--set model.delta.edges=[[2, 0]])",
            "model.delta.distances: [1]", NULL);
    refused("model: {delta: {edges: [[2, 0]], embedding_source: true}}", NULL, "as a source is -1",
            "model.delta.embedding_source: true", NULL);
    refused("model: {delta: {edges: [[2, 0]], stage_steps: 3}}", NULL, "all there from the start",
            "model.delta.stage_steps: 3", NULL);
    refused("model: {rules: [{kind: hyper}], delta: {edges: [[2, 0]]}}", NULL, "without connections",
            "model.delta.edges: [[2, 0]]", NULL);
    refused("model: {delta: {edges: [[2, 0], [5, 4]]}}\ndelta_store: {interval: 2, ratio: 0.5, layers: [3, 4]}",
            NULL, "no connection leads into these layers", "model.delta.edges: ", NULL);
    struct config c = right("model: {delta: {edges: [[5, -1], [2, 0], [5, 4], [2, 1]]}}",
                            "delta_store={interval: 2, ratio: 0.5, layers: [0, 5]}", NULL);
    char *text = config_text(&c);
    assert_non_null(strstr(text, "  edges: [[2, 1], [2, 0], [5, 4], [5, -1]]\n")); /* in their order */
    assert_non_null(strstr(text, "  distances: []\n"));
    free(text);
    config_free(&c);
    char many[16 * MAX_DISTANCES] = "model.delta.edges=[[70, 0]";
    for (int source = 1; source <= MAX_DISTANCES; source++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ", [70, %d]", source);
    refused("model: {num_layers: 71}", strcat(many, "]"), "more than 64 connections into layer 70", "at most 64", NULL);
}

/* What is recomputed, and differences that are stored. */
static void memory_and_store(void **state) {
    (void)state;
    refused("train: {recompute_every: 2}", NULL, "train.recompute_every: 2", "train.recompute: none", NULL);
    refused("train: {recompute: auto}", "train.recompute_every=2", "train.recompute_every: 2",
            "train.recompute: auto", NULL);
    refused("train: {recompute: full, recompute_delta: none, recompute_delta_every: 3}", NULL,
            "train.recompute_delta_every: 3", "train.recompute_delta: none", NULL);
    refused("train: {residual: fp16}", NULL, "train.residual", "fp16", "fp32 or bf16", NULL);
    refused("mesh: {wire: fp16}", NULL, "mesh.wire", "fp16", "stored, fp32 or bf16", NULL);
    refused(sizeof(real) == sizeof(float) ? "mesh: {wire: 1}" : "mesh: {wire: fp32}", NULL, "mesh.wire",
            NULL);
    refused("mesh: {compress_boundary: 0.5}", NULL, "mesh.compress_boundary: 0.5", "mesh.pipeline: 1", NULL);
    refused("delta_store: {interval: 2}", NULL, "delta_store.interval: 2", "delta_store.ratio: 0.0",
            "delta_store.tolerance: 0.0", NULL);
    refused("delta_store: {interval: 2, ratio: 0.5, tolerance: 0.1}", NULL, "not both",
            "delta_store.ratio: 0.5", "delta_store.tolerance: 0.1", NULL);
    refused("delta_store: {interval: 2, ratio: 0.5}", "model.delta.distances=[]", "delta_store.interval: 2",
            "model.delta.distances: []", NULL);
    refused("model: {num_layers: 6}\ndelta_store: {interval: 2, ratio: 0.5, layers: [3, 6]}", NULL,
            "delta_store.layers: [3, 6] (line 2)", "model.num_layers: 6", NULL);
    refused("model: {delta: {distances: [2, 3]}}\ndelta_store: {interval: 2, ratio: 0.5, layers: [0, 1]}",
            NULL, "delta_store.layers: [0, 1]", "model.delta.distances: [2, 3]", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combinations),
        cmocka_unit_test(combinations_of_rules),
        cmocka_unit_test(combinations_with_the_mesh),
        cmocka_unit_test(combinations_of_data),
        cmocka_unit_test(edges_that_are_listed),
        cmocka_unit_test(memory_and_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
