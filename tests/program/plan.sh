#!/usr/bin/env bash
# `gdn plan` against what runs count: bytes on the wire of each axis, equal to the last one; and its other outputs.
. "$SOURCE/tests/program/small.sh"

# Enough layers for interleaving, heads for four tensor ranks, a vocabulary that divides by nothing.
cat > wide.yaml <<'YAML'
model:
  vocab_size: 263
  hidden_size: 64
  num_layers: 8
  num_heads: 4
  intermediate_size: 96
  delta: {distances: [1, 2, 3], hidden: 16, gate_hidden: 8, embedding_source: true}
train: {steps: 2, batch_size: 16, micro_batch_size: 2, sequence_length: 16, grad_clip: 1}
mesh: {bucket: 4096, small: 512}
data: {train: text.txt}
YAML

bytes() { # the first object of communication bytes by axis, as one line an axis in a fixed order
    grep -o '"communication_bytes":{[^}]*}' | head -1 | grep -oE '"(data|tensor|pipeline)":[0-9]+' | sort
}

# Metrics tell of rank 0; a rank's object in the plan is found by its number. tests/train/test_plan_run.c looks at all
# ranks, and at more settings.
compare() { # NAME RANKS OPTION …
    local name=$1 ranks=$2
    shift 2
    OMP_NUM_THREADS=1 expect 0 timeout 60 mpirun --oversubscribe -n "$ranks" "$GDN" train wide.yaml --run-dir "$name" "$@" > "$name.log" 2>&1 ||
        fail "$(cat "$name.log")"
    grep '"event":"step","step":1,' "$name/metrics.jsonl" | bytes > counted
    "$GDN" plan wide.yaml --ranks "$ranks" "$@" --flops 1e11 --json > plan.json
    grep -o '"rank":0,.*' plan.json | bytes > planned
    [ "$(wc -l < planned)" -eq 3 ] || fail "$name: no bytes in the plan"
    cmp -s counted planned || fail "$name: a step counts $(paste -sd' ' counted), the plan has $(paste -sd' ' planned)"
}

d() { echo --set mesh.data="$1" --set mesh.tensor="$2" --set mesh.pipeline="$3"; }
# shellcheck disable=SC2046 # words on purpose
{
    compare one 1 $(d 1 1 1)
    compare data 2 $(d 2 1 1)
    compare tensor 2 $(d 1 2 1)
    compare sequence 2 $(d 1 2 1) --set mesh.sequence_parallel=true
    compare pipeline 2 $(d 1 1 2)
    compare whole 2 $(d 1 1 2) --set mesh.narrow_sources=false
    compare interleaved 2 $(d 1 1 2) --set mesh.interleave=2
    compare tied 2 $(d 1 1 2) --set model.tie_embeddings=true
    compare all 8 $(d 2 2 2)
    compare interleaved8 8 $(d 2 2 2) --set mesh.interleave=2 --set mesh.sequence_parallel=true
}

# What a mesh does not fit is refused in the words that training has for it.
for set in mesh.tensor=3 mesh.pipeline=9 mesh.data=3 train.batch_size=15; do
    expect 2 "$GDN" plan wide.yaml --ranks 2 --set $set > out 2> plan.err
    [ ! -s out ] || fail "$set: output in spite of a failure"
    expect 2 mpirun --oversubscribe -n 2 "$GDN" train wide.yaml --run-dir refused --set $set > /dev/null 2> train.err
    [ "$(sed 's/rank 0 on [^:]*: //' train.err | grep -m1 '^gdn: ')" = "$(grep -m1 '^gdn: ' plan.err)" ] ||
        fail "$set: '$(cat plan.err)', but training says '$(cat train.err)'"
done

# Thousands of ranks within seconds.
time=$SECONDS
"$GDN" plan wide.yaml --ranks 2048 --set mesh.tensor=4 --set mesh.pipeline=8 --set train.batch_size=1024 --flops 1e11 \
    > large || fail "no plan for 2,048 ranks"
[ $((SECONDS - time)) -lt 20 ] || fail "a plan for 2,048 ranks took $((SECONDS - time)) s"
grep -q "data 64 x tensor 4 x pipeline 8: 2,048 ranks" large || fail "$(head -3 large)"

# The schedule in words: what every rank does, forward first.
"$GDN" plan wide.yaml $(d 1 1 2) --flops 1e11 --schedule > words
[ "$(grep -c '^pipeline rank' words)" -eq 2 ] && grep -q forward words && grep -q "send" words || fail "$(head words)"

# A trace for each rank, in which every message that is sent is received.
"$GDN" plan wide.yaml $(d 2 2 2) --flops 1e11 --trace traces > /dev/null
[ "$(wc -l < traces/traces.txt)" -eq 8 ] || fail "$(cat traces/traces.txt)"
cat traces/rank_*.txt | awk '
    $2 == "isend" || $2 == "send" { n[$1 " " $3 " " $4 " " $5]++; sent++ }
    $2 == "irecv" || $2 == "recv" { n[$3 " " $1 " " $4 " " $5]-- }
    END { for (m in n) if (n[m]) { print "unmatched: " m; exit 1 }; exit !sent }' || fail "a trace is at odds with another"

# What cannot be is said in one message, without any output.
refused() { # WORDS OPTION …
    local words=$1
    shift
    expect 2 timeout 60 "$GDN" plan wide.yaml --flops 1e11 "$@" > out 2> err
    [ ! -s out ] && [ "$(grep -c '^gdn: ' err)" -eq 1 ] && grep -qF -e "$words" err || fail "$*: $(cat out err)"
}
refused "--trace: text.txt" --trace text.txt
refused "--trace is ''" --trace ''
refused "--json and --schedule" --json --schedule
refused "--ranks is '1000001'" --ranks 1000001
most=2147483647
refused "mesh.data: $most" --set train.batch_size=$most --set train.micro_batch_size=1 --set mesh.data=$most --set mesh.tensor=4
refused "train.batch_size 2000000000" --set train.batch_size=2000000000 --set train.micro_batch_size=1
refused "hidden_size 2147483640" --set model.hidden_size=2147483640
refused "mesh.bucket 1024" --set model.hidden_size=2147480 --set mesh.bucket=1
