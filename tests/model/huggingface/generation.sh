#!/usr/bin/env bash
# The model for transformers (model/huggingface) beside the program: models that gdn trains load in Python, where they have gdn's loss
# and write gdn's greedy text; what generation.py says of caches, padding and files.
set -euo pipefail
here=$SOURCE/tests/model/huggingface
export OMP_NUM_THREADS=1

for i in $(seq 1 200); do head -c $((500 + i)) "$SOURCE/tests/program/words.txt" | tail -c +"$i"; done > text.txt
head -c 4000 "$SOURCE/tests/program/words.txt" > held-out.txt

# NAME EXTRA DELTA RULES: trains a model until it knows the text, so that what it writes is not one letter.
model() {
    cat > "$1.yaml" <<YAML
model:
  vocab_size: 257
  hidden_size: 32
  num_layers: 4
  num_heads: 4
  num_kv_heads: 2
  intermediate_size: 48
  $2
  delta: {$3}
  rules: [$4]
train: {steps: 200, batch_size: 8, sequence_length: 48, lr: 0.01, warmup_steps: 5}
data: {train: text.txt}
YAML
    "$GDN" train "$1.yaml" --run-dir "$1" > "$1.log" 2>&1 || { cat "$1.log"; return 1; }
    "$GDN" eval "$1" --data held-out.txt --json > "$1.eval"
    "$GDN" generate "$1" --ids --prompt "116 104 101 32" --temperature 0 --length 200 --context 256 --json > "$1.generate"
}

bash "$here/in_python.sh" generation.py packages # skipped without them, before anything is trained
# Of the first the last distance is not yet introduced.
model bottleneck "tie_embeddings: true" "distances: [1, 2, 4], embedding_source: true, hidden: 8, gate_hidden: 4, stage_steps: 100, aggregate: attention" ""
model full "logit_softcap: 8.0" "distances: [1, 3], kind: full, normalize: true, aggregate: multihead, attention_heads: 2" ""
model adaptive "norm_eps: 1e-4" "distances: [1, 2], kind: adaptive, gate_hidden: 4, distance_scale: exponential, aggregate: mean" "{kind: lane}"
model rules "rope_theta: 500.0" "distances: []" "{kind: value}, {kind: value, form: embedding, period: 3}, {kind: mix, form: gated, place: value, from: both, hidden: 4, groups: 2}, {kind: dense, form: dynamic, channels: [query, key, value], hidden: 4}, {kind: dense, place: head}, {kind: depth_attention, place: value, period: 2}, {kind: value, sources: [1], layers: [3]}"
bash "$here/in_python.sh" generation.py bottleneck full adaptive rules
