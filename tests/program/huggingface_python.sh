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

# A plain one is a stock model.
expect 0 "$GDN" checkpoint export --format huggingface llama.h5 stock
cmp stock/model.safetensors llama/model.safetensors || fail "another file than transformers wrote"
expect 0 "$GDN" eval llama.h5 --data held-out.txt --format text --set train.batch_size=1 --json > eval-llama
near 1e-5 "$(loss_of < eval-llama)" "$(run_python loss stock held-out.txt)"
