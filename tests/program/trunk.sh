#!/usr/bin/env bash
# What a transformer may be otherwise than by default (model.head_dim, attention_bias, qk_norm, rope_scaling), as a plain model and with connections: what everywhere.sh says.
. "$SOURCE/tests/program/eight_layers.sh"
. "$SOURCE/tests/program/everywhere.sh"
fewer_steps

trunk() { # NAME MODEL KEYS: of the section model, two key/value heads beside them
    sed "s/^  num_heads.*/&\n  num_kv_heads: 2\n  $3/" "$2.yaml" > "$1.yaml"
    on 1.1.1 "$1" "$1"
    everywhere "$1"
}

trunk wide plain "head_dim: 6\n  attention_bias: all"
trunk normed heads "qk_norm: head\n  attention_bias: qkv\n  rope_scaling: {kind: llama3, factor: 8, original_max_position_embeddings: 9}"
