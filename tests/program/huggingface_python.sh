#!/usr/bin/env bash
# The way of somebody who has a model: a small Llama that transformers makes is imported, grows connections, trains on two ranks, is exported and
# loaded with trust_remote_code, where it has the loss on held-out text that gdn has, says the same, is fine-tuned and comes back.
# $PYTHON is a Python with torch, transformers, safetensors and h5py.
. "$SOURCE/tests/program/small.sh"
python=${PYTHON:-python3}
if ! "$python" -W ignore -c 'import torch, transformers, safetensors, h5py' 2> err; then
    echo "skipped: $python lacks what this test compares with ($(tail -1 err)): set PYTHON to one that has torch, transformers, safetensors and h5py"
    exit 77
fi
export HF_HUB_OFFLINE=1 HF_MODULES_CACHE=$PWD/modules PYTHONDONTWRITEBYTECODE=1
run_python() { "$python" -W ignore "$SOURCE/tests/program/huggingface_peer.py" "$@" 2> err || fail "$*: $(tail -5 err)"; }
loss_of() { sed 's/.*"loss": *\([0-9.]*\).*/\1/'; }
near() { # TOLERANCE A B
    awk -v t="$1" -v a="$2" -v b="$3" 'BEGIN { d = a - b; exit !(a > 0 && (d < 0 ? -d : d) <= t) }' || fail "$2 and $3 differ by more than $1"
}

run_python make llama
expect 0 "$GDN" checkpoint import llama llama.h5 > section
sed 's/distances: \[\]/distances: [1, 2]/; s/^    hidden: .*/    hidden: 8/; s/aggregate: learned/aggregate: attention/' section > small.yaml
cat >> small.yaml <<'YAML'
  rules: [{kind: mix, place: before, distances: [2]}, {kind: value, sources: [embedding]}]
train: {steps: 12, batch_size: 8, sequence_length: 64, lr: 0.01, warmup_steps: 2}
data: {train: text.txt}
checkpoint: {init_from: llama}
YAML
sed -i '0,/^  rules: \[\]/{/^  rules: \[\]/d}' small.yaml
train 2 run --set mesh.tensor=2
head -c 6000 <(sed 1,20d "$SOURCE/README.md") > held-out.txt # no pipe: it fails where head ends first

expect 0 "$GDN" checkpoint export --format huggingface run away
expect 0 "$GDN" eval run --data held-out.txt --format text --set train.batch_size=1 --json > eval
near 1e-5 "$(loss_of < eval)" "$(run_python loss away held-out.txt)"
near 1e-5 "$(loss_of < eval)" "$(run_python loss-gdn run held-out.txt)"
expect 0 "$GDN" generate run --ids --prompt '84 104 101 32' --length 200 --context 256 --temperature 0 > ids
[ "$(run_python greedy away)" = "$(sed 's/ $//' ids)" ] || fail "other text: $(cat ids) and $(run_python greedy away)"
run_python padding away

# Fine-tuned there, and back.
run_python tune away tuned held-out.txt > tuned-loss
expect 0 "$GDN" checkpoint import tuned tuned.h5 > tuned.yaml
expect 0 "$GDN" eval tuned.h5 --data held-out.txt --format text --set train.batch_size=1 --json > eval-tuned
near 1e-5 "$(loss_of < eval-tuned)" "$(cat tuned-loss)"
train 2 on --set checkpoint.init_from=tuned --set train.steps=1

# What training has left in a checkpoint: connections that have gone, exits; tokens that are words, which end as the tokenizer says.
sed -i /init_from/d small.yaml
train 1 left --set train.prune.by=contribution --set train.prune.end=8 --set train.prune.interval=4 --set train.prune.keep=0.4 \
    --set 'model.exit.layers=[1]' --set 'model.exit.weights=[0.5]'
[ "$(grep -o '"active_edges":[0-9]*' left/metrics.jsonl | tail -1)" = '"active_edges":1' ] || fail "not one of three connections is left"
expect 0 "$GDN" eval left --data held-out.txt --format text --set train.batch_size=1 --json > eval-left
near 1e-5 "$(loss_of < eval-left)" "$(run_python loss-gdn left held-out.txt)"
mkdir tok && expect 0 "$GDN" data tokenizer --vocab 300 --output tok/tokenizer.json text.txt > tok/log
train 1 words --set train.steps=1 --set model.vocab_size=300 --set data.tokenizer=tok/tokenizer.json
expect 0 "$GDN" checkpoint export --format huggingface words words-away
ends() { # RUN FOLDER: begin and end of a text are those of the export
    [ "$(run_python ends "$1")" = "$(sed -n 's/.*"[be]os_token_id": \([0-9]*\).*/\1/p' "$2/generation_config.json" | paste -sd' ')" ] ||
        fail "$1: texts end otherwise than in $2: $(run_python ends "$1")"
}
ends run away
ends words words-away

# A plain one is a stock model.
expect 0 "$GDN" checkpoint export --format huggingface llama.h5 stock
cmp stock/model.safetensors llama/model.safetensors || fail "another file than transformers wrote"
expect 0 "$GDN" eval llama.h5 --data held-out.txt --format text --set train.batch_size=1 --json > eval-llama
near 1e-5 "$(loss_of < eval-llama)" "$(run_python loss stock held-out.txt)"
