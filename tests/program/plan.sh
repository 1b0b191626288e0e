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

# Metrics tell of rank 0; a rank's object in the plan is found by its number. tests/train/plan/test_plan_run.c looks at all
# ranks, and at more settings.
compare() { # NAME RANKS OPTION …
    local name=$1 ranks=$2
    shift 2
    OMP_NUM_THREADS=1 expect 0 timeout 400 mpirun --oversubscribe -n "$ranks" "$GDN" train wide.yaml --run-dir "$name" "$@" > "$name.log" 2>&1 ||
        fail "$(cat "$name.log")"
    grep '"event":"step","step":1,' "$name/metrics.jsonl" | bytes > counted
    "$GDN" plan wide.yaml --ranks "$ranks" "$@" --flops 1e11 --json > plan.json
    grep -o '"rank":0,.*' plan.json | bytes > planned
    [ "$(wc -l < planned)" -eq 3 ] || fail "$name: no bytes in the plan"
    cmp -s counted planned || fail "$name: a step counts $(paste -sd' ' counted), the plan has $(paste -sd' ' planned)"
}

refused_plan() { # WORDS OPTION …
    refused "$1" timeout 400 "$GDN" plan wide.yaml --flops 1e11 "${@:2}"
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
for set in mesh.tensor=3 mesh.pipeline=9 train.batch_size=15 train.graphs=true mesh.transport=nccl; do
    expect 2 "$GDN" plan wide.yaml --ranks 2 --set device=cpu --set $set > out 2> plan.err
    [ ! -s out ] || fail "$set: output in spite of a failure"
    expect 2 mpirun --oversubscribe -n 2 "$GDN" train wide.yaml --run-dir refused --set device=cpu --set $set > /dev/null 2> train.err
    [ "$(sed 's/rank 0 on [^:]*: //' train.err | grep -m1 '^gdn: ')" = "$(grep -m1 '^gdn: ' plan.err)" ] ||
        fail "$set: '$(cat plan.err)', but training says '$(cat train.err)'"
done

# And what a device cannot do, or ways between its ranks that go through host memory; nothing of that is known of a device that is found later.
staged=(--ranks 2 --set mesh.transport=staged)
refused_plan "mesh.tensor_pieces: sums of a device's buffers" "${staged[@]}" --set device=cuda --set mesh.tensor=2 --set mesh.tensor_pieces=2
refused_plan "train.graphs: passes on several ranks" "${staged[@]}" --set device=cuda --set train.graphs=true
refused_plan "make heads 512 wide; on device cuda" --set device=cuda --set model.hidden_size=2048
for taken in "--set device=cuda --set train.graphs=true --set mesh.transport=staged" "--set train.graphs=true --ranks 2" "--set mesh.transport=nccl --ranks 2" \
    "--set device=cuda --set mesh.transport=staged --set mesh.tensor_pieces=2 --ranks 2"; do
    # shellcheck disable=SC2086 # words on purpose
    "$GDN" plan wide.yaml --flops 1e11 $taken > /dev/null || fail "no plan for $taken"
done

# Thousands of ranks.
"$GDN" plan wide.yaml --ranks 2048 --set mesh.tensor=4 --set mesh.pipeline=8 --set train.batch_size=1024 --flops 1e11 \
    > large || fail "no plan for 2,048 ranks"
grep -q "data 64 x tensor 4 x pipeline 8: 2,048 ranks" large || fail "$(head -3 large)"

# A configuration for another number of ranks: what to change, in words of this command.
refused_plan "needs 80 ranks, but --ranks is 64; plan it with --ranks 80, or change" $(d 10 4 2) --set train.batch_size=80 --set train.micro_batch_size=0 --ranks 64
refused_plan "need a multiple of 4 ranks, but --ranks is 6; plan it with --ranks 8, or change" $(d 0 4 1) --ranks 6

# A picture of fixed width for any number of micro-batches, and figures in units that people read.
for batch in 8 512; do
    "$GDN" plan wide.yaml $(d 1 1 4) --set train.micro_batch_size=1 --set train.batch_size=$batch --set train.steps=1000000 --flops 4e14 > picture
    awk '/^ *[0-9]+ \|/ { n++; if (length($0) > 100) exit 1 } END { exit n != 4 }' picture || fail "$batch micro-batches: $(cat picture)"
    [ "$(grep -c "left out in the gap: .* most of $batch micro-batches" picture)" -eq $((batch > 100)) ] || fail "$batch micro-batches: $(cat picture)"
    grep -q "400 TFLOP/s" picture && grep -qE "^All 1,000,000 steps: [0-9.]+ (min|h|days), " picture || fail "$(cat picture)"
done
"$GDN" plan wide.yaml --flops 1e11 --set train.sequence_length=600000000 --set train.batch_size=4 --set train.micro_batch_size=4 --set train.compress_sources=0.5 --json > long.json # LAPACK counts in 32 bits
[ "$(head -c 1 long.json)" = '{' ] && [ "$(wc -l < long.json)" -le 1 ] || fail "not JSON alone: $(head -c 300 long.json)"
"$GDN" plan wide.yaml --flops 1e11 --set train.steps=500 --json | LC_ALL=C awk '
    match($0, /"step_seconds":[^,]*/) { step = substr($0, RSTART + 15, RLENGTH - 15) }
    match($0, /"run_seconds":[^,]*/) { run = substr($0, RSTART + 14, RLENGTH - 14) }
    END { exit !(step > 0 && run / step > 499.999 && run / step < 500.001) }' || fail "run_seconds is not 500 steps"

# Which device's memory it is, where the configuration leaves that open.
"$GDN" plan wide.yaml --flops 1e11 | grep -q '^device  *auto is planned as cpu' || fail "not told that auto is planned as cpu"
"$GDN" plan wide.yaml --flops 1e11 --set device=cuda > cuda.txt && ! grep -q '^device' cuda.txt || fail "$(head cuda.txt)"

# Settings of no effect are told, and others are not.
"$GDN" plan wide.yaml --flops 1e11 --set model.num_layers=4 --set model.delta.distances=[1,4,5,9] --set train.warmup_steps=7 > notes
grep -q "^note .*distances: 5, 9 of no effect: with 4 layers, the farthest source lies 4 back" notes && grep -q "^note .*warmup_steps: 7 is beyond train.steps: 2" notes ||
    fail "$(head notes)"
"$GDN" plan wide.yaml --flops 1e11 --set model.delta.stage_steps=1 --set train.warmup_steps=1 > notes
grep -q "^note .*stage_steps: 1 introduces 2 of the 3 distances in 2 steps" notes && [ "$(grep -c ^note notes)" -eq 1 ] || fail "$(head notes)"

# A kind's own distances beyond the model are no mistake of anyone's.
"$GDN" plan wide.yaml --flops 1e11 --set model.num_layers=4 --set model.delta.distances=[] --set 'model.rules=[{kind: lane}, {kind: mix, distances: [2, 99], sources: [3]}, {kind: mix}, {kind: value, layers: [0]}]' > notes
grep -q "^note .*model.rules\[1\].distances: 99 of no effect: no layer that mix enters" notes && grep -q "^note .*model.rules\[1\].sources: 3 of no effect" notes && [ "$(grep -c "^note .*model.rules" notes)" -eq 2 ] ||
    fail "$(head notes)"

# Thousands of layers within the time that the whole script has.
"$GDN" plan wide.yaml --flops 1e11 --set model.num_layers=8000 --set mesh.pipeline=4 > deep || fail "no plan for 8,000 layers"
grep -q "8000 layers" deep || fail "$(head -3 deep)"

# A pipeline of more ranks than a word has bits, whose first and last share the tied embedding.
many=(--flops 1e11 --set model.num_layers=128 --set model.tie_embeddings=true --set mesh.pipeline=128)
"$GDN" plan wide.yaml "${many[@]}" > long || fail "no plan for 128 pipeline ranks"
grep -q "data 1 x tensor 1 x pipeline 128: 128 ranks" long || fail "$(head -5 long)"
"$GDN" plan wide.yaml "${many[@]}" --schedule > long || fail "no schedule of 128 pipeline ranks"
[ "$(grep -c '^pipeline rank' long)" -eq 128 ] && [ "$(grep -c 'sum shared' long)" -ge 2 ] || fail "$(grep -c 'sum shared' long) sums"

# The schedule in words: what every rank does, forward first.
"$GDN" plan wide.yaml $(d 1 1 2) --flops 1e11 --schedule > words
[ "$(grep -c '^pipeline rank' words)" -eq 2 ] && grep -q forward words && grep -q "send" words || fail "$(head words)"

# A trace for each rank, in which every message that is sent is received.
"$GDN" plan wide.yaml $(d 2 2 2) --flops 1e11 --trace traces > /dev/null
[ "$(wc -l < traces/traces.txt)" -eq 8 ] || fail "$(cat traces/traces.txt)"
matched() { # DIRECTORY
    cat "$1"/rank_*.txt | awk '
        $2 == "isend" || $2 == "send" { n[$1 " " $3 " " $4 " " $5]++; sent++ }
        $2 == "irecv" || $2 == "recv" { n[$3 " " $1 " " $4 " " $5]-- }
        END { for (m in n) if (n[m]) { print "unmatched: " m; exit 1 }; exit !sent }' || fail "a trace of $1 is at odds with another"
}
matched traces
context() { # NAME OPTION …: between context ranks as many bytes as the plan has
    "$GDN" plan wide.yaml "${@:2}" --set mesh.context=4 --set train.sequence_length=16 --flops 1e11 --trace "$1" --json > plan.json
    matched "$1"
    sent=$(awk '$2 == "isend" && $4 == 3 { n += $5 } END { print n }' "$1/rank_0.txt")
    grep -o '"rank":0,.*' plan.json | grep -oE '"context":[0-9]{3,}' | head -1 | grep -qx "\"context\":$sent" || fail "$1: $sent bytes sent"
}
for exchange in gather ring heads; do context $exchange $(d 1 1 1) --set mesh.context_exchange=$exchange; done
without=$sent
context sources $(d 1 1 1) --set mesh.context_exchange=heads --set train.compress_sources=0.5
[ "$sent" -gt "$without" ] || fail "sources are factorised in $sent bytes, attention alone takes $without"
context boundary $(d 1 1 2) --set mesh.compress_boundary=0.1

# The step as a picture: a box for each pass, with its micro-batch.
passes=(--set mesh.pipeline=2 --set train.micro_batch_size=1 --flops 1e11 --bandwidth-pipeline 1e15 --latency 0)
"$GDN" plan wide.yaml "${passes[@]}" --svg step.svg --schedule > words
batches=$(grep -cE 'forward chunk' words)
numbers=$(grep -c '<text>' step.svg)
grep -q "a step of 2 ranks" step.svg && grep -q "</svg>" step.svg && [ "$batches" -ge 4 ] && [ "$numbers" -ge $((2 * batches - 4)) ] ||
    fail "$numbers texts in a picture of $batches forward passes"
"$GDN" plan wide.yaml "${many[@]}" --svg many.svg > /dev/null || fail "no picture of 128 pipeline ranks"

# A machine by name: axes that stay in a node of 8 send as fast as it lets them, others share its way out; options say otherwise.
assumed() { "$GDN" plan wide.yaml "$@" --json | sed 's/.*"assumed":{\([^}]*\)}.*/\1/'; }
large() { echo --ranks $(($1 * $2 * $3)) --set train.batch_size=1024 --set train.micro_batch_size=1 --set model.num_layers=8 $(d "$@"); }
fast=450000000000 slow=50000000000
check() { # WANTED GOT
    [ "$1" = "$2" ] || fail "of a machine by name: '$2' instead of '$1'"
}
bandwidths() { echo "\"flops\":400000000000000,\"bandwidth_tensor\":$1,\"bandwidth_context\":$1,\"bandwidth_data\":$2,\"bandwidth_pipeline\":$3,\"bandwidth_memory\":3000000000000"; }
check "$(bandwidths $fast $slow $slow)," "$(assumed $(large 32 4 2) --machine h100-ib | sed 's/"latency.*//')"
check "$(bandwidths $fast $fast $slow)," "$(assumed $(large 2 4 4) --machine h100-ib | sed 's/"latency.*//')"
check "$(bandwidths $fast $fast $fast)," "$(assumed $(large 2 2 2) --machine h100-ib | sed 's/"latency.*//')"
cp "$SOURCE/configs/machines/h100-ib.yaml" mine.yaml
sed -i 's/^node: 8/node: 6/' mine.yaml # pairs fit into it, fours would cross
check "$(bandwidths $fast $slow 1000000000)," "$(assumed $(large 2 2 2) --machine ./mine.yaml --bandwidth-pipeline 1e9 | sed 's/"latency.*//')"
refused_plan "a100-ib, h100-ib, pcie-ethernet, or" --machine h100
refused_plan "line 3: unknown key machine.nodes: a machine has flops, node," --machine <(sed 's/^node/nodes/' mine.yaml)
refused_plan "the machine lacks node: ranks of a node is expected" --machine <(sed '/^node/d' mine.yaml)
refused_plan "machine.node is '0': an integer from 1" --machine <(sed 's/^node: 6/node: 0/' mine.yaml)
refused_plan "machine.node is given twice" --machine <(sed 's/^node: 6/&\n&/' mine.yaml)

# Where nothing moves while a rank computes, pieces take as long as whole sums, which they do not elsewhere; no message costs a latency here.
sed -i 's/^latency:.*/latency: 0/' mine.yaml
{ cat mine.yaml; echo "asynchronous_progress: false"; } > waits.yaml
seconds() { "$GDN" plan wide.yaml $(large 1 2 1) --json "$@" | grep -oE '"step_seconds":[^,]*' | cut -c1-26; }
check "$(seconds --machine ./mine.yaml)" "$(seconds --machine ./waits.yaml)"
check "$(seconds --machine ./mine.yaml)" "$(seconds --machine ./waits.yaml --set mesh.tensor_pieces=2)"
[ "$(seconds --machine ./mine.yaml)" != "$(seconds --machine ./mine.yaml --set mesh.tensor_pieces=2)" ] || fail "pieces hide nothing"
check false "$(assumed --machine ./waits.yaml | sed 's/.*"asynchronous_progress"://')"
check true "$(assumed --machine ./mine.yaml | sed 's/.*"asynchronous_progress"://')"
refused_plan "machine.asynchronous_progress is 'tcp'" --machine <(sed 's/progress: false/progress: tcp/' waits.yaml)
# Traces of such a machine start sums where they are waited for: behind all of the backward pass.
before() { # MACHINE: arithmetic before the first sum
    "$GDN" plan wide.yaml $(large 2 1 1) --set mesh.bucket=65536 --machine "./$1.yaml" --trace "traced_$1" > /dev/null
    awk '$2 == "isend" { exit } $2 == "compute" { sum += $3 } END { printf "%.0f\n", sum }' "traced_$1/rank_0.txt"
}
[ "$(before mine)" -lt "$(before waits)" ] || fail "$(before mine) FLOP before sums that travel beside the rest, $(before waits) before those that do not"

# What cannot be is said in one message, without any output.
refused_plan "--trace: text.txt" --trace text.txt
refused_plan "--trace is ''" --trace ''
refused_plan "--svg is ''" --svg ''
refused_plan "nowhere/step.svg" --svg nowhere/step.svg
refused_plan "--json and --schedule" --json --schedule
refused_plan "--ranks is '1000001'" --ranks 1000001
most=2147483647
refused_plan "mesh.data: $most" --set train.batch_size=$most --set train.micro_batch_size=1 --set mesh.data=$most --set mesh.tensor=4
refused_plan "train.batch_size 2000000000" --set train.batch_size=2000000000 --set train.micro_batch_size=1
refused_plan "hidden_size 2147483640" --set model.hidden_size=2147483640
refused_plan "from 1 to 100000" --set model.num_layers=100001
# Sizes beyond any machine are refused for their memory, in numbers, whatever addresses this process may have (a sanitizer needs them all).
sanitized=$("$GDN" --version | grep -o fsanitize || true)
for set in train.sequence_length=$most train.batch_size=$most; do
    ([ -n "$sanitized" ] || ulimit -v 20000000; refused_plan "GiB of memory, but has 4.00" --set train.micro_batch_size=0 --set train.memory=4 --set $set)
done
refused_plan "numbers in memory; fewer than" --set train.sequence_length=$most --set train.batch_size=$most --set train.micro_batch_size=0
refused_plan "mesh.bucket 1024" --set model.hidden_size=2147480 --set mesh.bucket=1

# Memory: a plan that does not fit is refused in at most five lines, and the change that it names makes it fit.
some=(--set train.batch_size=16 --set train.micro_batch_size=8 --set train.sequence_length=64 --set checkpoint.interval_minutes=0)
mib() { # the sum of rank 0's memory
    "$GDN" plan wide.yaml --flops 1e11 --json "$@" | grep -o '"memory":{[^}]*}' | head -1 | grep -o '[0-9]*' | LC_ALL=C awk '{ n += $1 } END { print n / 1048576 }'
}
gib() { LC_ALL=C awk -v a="$1" -v b="$2" -v part="$3" 'BEGIN { printf "%.9f", (b + part * (a - b)) / 1024 }'; } # between b and a
none=$(mib "${some[@]}") full=$(mib "${some[@]}" --set train.recompute=full) one=$(mib "${some[@]}" --set train.micro_batch_size=1)
advised() { # GIB WORDS
    refused_plan "train.memory: " "${some[@]}" --set train.memory="$1"
    [ "$(wc -l < err)" -le 5 ] && grep -q "weights .*, workspace " err || fail "$(cat err)"
    grep -q "^  what would fit: $2$" err || fail "$2 is not what is advised: $(cat err)"
}
advised "$(gib "$none" "$full" 0.5)" "train.recompute: full"
"$GDN" plan wide.yaml --flops 1e11 "${some[@]}" --set train.memory="$(gib "$none" "$full" 0.5)" --set train.recompute=full > /dev/null
advised "$(gib "$full" "$one" 0.9)" "train.micro_batch_size: 2"
# What the configuration has already is no advice.
some+=(--set train.recompute=full --set train.recompute_every=4)
advised "$(gib "$none" "$full" 0.1)" "train.recompute_every: 1"
some=("${some[@]:0:${#some[@]}-4}")
advised "$(gib "$one" 0 0.9)" "train.recompute: full, train.micro_batch_size: 1"
advised "$(gib "$one" 0 0.6)" "train.*: .*, mesh.*: 2 on 2 ranks with as much memory each"
refused_plan "nothing that was tried would fit" "${some[@]}" --set train.memory=0.0001
refused_plan "train.memory is 0: a plan knows of no machine" "${some[@]}" --set train.recompute=auto

# Chosen by memory: no more than fits, the rule of thumb beside it; nothing where all fits.
auto=("${some[@]}" --set train.recompute=auto)
"$GDN" plan wide.yaml --flops 1e11 "${auto[@]}" --set train.memory="$(gib "$none" "$full" 0.8)" > chosen
grep -q "^recompute layers\|^recompute connections" chosen && grep -q "without, memory is 1.* a rule .* every second layer" chosen || fail "$(head -7 chosen)"
"$GDN" plan wide.yaml --flops 1e11 "${auto[@]}" --set train.memory="$(gib "$none" "$full" 1.1)" > chosen
grep -q "^recompute nothing" chosen && grep -q "but all fits" chosen || fail "$(head -7 chosen)"
"$GDN" plan wide.yaml --flops 1e11 --json "${some[@]}" --set train.recompute=full --set train.recompute_every=4 |
    grep -q '"recompute":{"layers":\["full","none","none","none","full",.*"connections":\["full","none"' || fail "no policies in JSON"

# The copy for checkpoints: by default there where it fits, and else left out with a word; where it was asked for, refused.
room=(--set train.memory="$(gib "$(mib)" "$(mib --set checkpoint.asynchronous=false)" 0.5)") # for half of it
says="^saving    training waits for each checkpoint: a copy .* does not fit"
"$GDN" plan wide.yaml --flops 1e11 > with
"$GDN" plan wide.yaml --flops 1e11 "${room[@]}" > without
! grep -q "^saving" with && grep -q "$says" without || fail "$(cat with without)"
plans() { "$GDN" plan wide.yaml --flops 1e11 --json "$@" | grep -o '"checkpoint":[0-9]*' | head -1; } # bytes of the copy
[ "$(plans)" != '"checkpoint":0' ] && [ "$(plans "${room[@]}")" = '"checkpoint":0' ] || fail "$(plans) and $(plans "${room[@]}")"
[ "$(plans "${room[@]}" --set checkpoint.asynchronous=True)" = '"checkpoint":0' ] || fail "no interval was asked for"
for interval in interval=5 interval_minutes=5; do
    refused_plan "what would fit: checkpoint.asynchronous: false" "${room[@]}" --set checkpoint.asynchronous=true --set checkpoint.$interval
    [ "$(plans "${room[@]}" --set checkpoint.$interval)" = '"checkpoint":0' ] || fail "$interval"
done
# Memory that computing again makes room in is for the copy too, and where all of that is not enough nothing is computed again.
"$GDN" plan wide.yaml --flops 1e11 "${room[@]}" --set train.recompute=auto > again
! grep -q "^saving" again && grep -q "^recompute layers\|^recompute connections" again || { grep -q "$says" again && grep -q "^recompute nothing" again; } ||
    fail "$(cat again)"
# The run does what the plan says, and its config.yaml, in which all defaults are given, does the same again.
waits() { # RUN: whose checkpoints there are all in the foreground, and planned without a copy
    grep -q "$says" out && lines checkpoint "$1" | grep -q . && ! lines checkpoint "$1" | grep -q '"asynchronous":true' &&
        ! lines memory "$1" | grep -q '_checkpoint":[1-9]' || fail "$(cat out "$1/metrics.jsonl")"
}
expect 2 mpirun --oversubscribe -n 2 "$GDN" train wide.yaml --run-dir tight --set mesh.data=2 --set checkpoint.asynchronous=true --set checkpoint.interval=1 \
    --set train.memory=0.001 > out 2> err
expect 3 "$GDN" train wide.yaml --run-dir tight "${room[@]}" --set train.steps=9 --set train.stop_at=1 > out 2>&1
waits tight
grep -q "interval_minutes: 30.0" tight/config.yaml && grep -q "asynchronous: auto" tight/config.yaml || fail "$(cat tight/config.yaml)"
expect 3 "$GDN" train tight/config.yaml --run-dir tight --set train.stop_at=2 > out 2>&1
waits tight
expect 3 "$GDN" train tight/config.yaml --run-dir tight --set train.memory=0 --set train.stop_at=4 --set checkpoint.interval_minutes=0.00001 > out 2>&1
! grep -q "^saving" out && lines checkpoint tight | grep -q '"asynchronous":true' || fail "$(cat out tight/metrics.jsonl)"

# On other meshes too: of as many ranks, and of any number up to 16 times as many. What is advised makes it fit.
followed() { # WORDS MiB OPTION …: the advice, which is then taken
    local words=$1 mib=$2 taken=() key
    shift 2
    set -- "$@" --set train.memory="$(gib "$mib" 0 1)"
    expect 2 "$GDN" plan --flops 1e11 "$@" > out 2> err
    grep -q "^  what would fit: $words$" err || fail "$words is not what is advised: $(cat err)"
    while IFS= read -r key; do taken+=(--set "${key/: /=}"); done < <(grep -oE '(mesh|train)\.[a-z_]+: [a-z0-9]+' <(grep 'what would fit' err))
    "$GDN" plan --flops 1e11 "$@" "${taken[@]}" --ranks "$(grep -oE 'on [0-9]+ ranks' err | grep -oE '[0-9]+' || echo 8)" > /dev/null
}
cat > deep.yaml <<'YAML'
model: {vocab_size: 263, hidden_size: 256, num_layers: 6, num_heads: 1, intermediate_size: 512, delta: {distances: [1, 2], hidden: 16, gate_hidden: 8}}
train: {batch_size: 1, sequence_length: 16}
YAML
followed "mesh.pipeline: 6 on 6 ranks with as much memory each" 15 deep.yaml
followed "mesh.tensor: 4, mesh.pipeline: 2" 8 deep.yaml --ranks 8 --set model.num_layers=2 --set model.num_heads=4 --set train.batch_size=8

# A run is refused likewise, before it leaves anything, and one that fits tells what it planned, reserved and used.
expect 2 mpirun --oversubscribe -n 2 "$GDN" train wide.yaml --run-dir small "${some[@]}" --set train.memory=0.001 > out 2> err
[ ! -e small ] && [ "$(grep -c '^gdn: ' err)" -eq 1 ] && grep -q "this run needs .* MiB of memory" err || fail "$(cat out err)"
expect 0 mpirun --oversubscribe -n 2 "$GDN" train wide.yaml --run-dir fitting $(d 1 1 2) --set train.memory=1 > out 2>&1 || fail "$(cat out)"
[ "$(grep -c '"event":"memory"' fitting/metrics.jsonl)" -eq 2 ] || fail "no memory events: $(cat fitting/metrics.jsonl)"
grep '"event":"memory"' fitting/metrics.jsonl | tail -1 | tr ',{}' '\n' | LC_ALL=C awk -F: '
    { v[$1] = $2 }
    END { exit !(v["\"planned_sum\""] > 0 && v["\"planned_sum\""] == v["\"reserved_sum\""] && v["\"peak_resident\""] > 1e6 &&
          v["\"planned_sources\""] > 0 && v["\"available\""] == 1073741824) }' || fail "$(grep memory fitting/metrics.jsonl)"

# Its first lines say what is reserved, the copy for checkpoints too: the sum and every part as the event has them.
for set in checkpoint.interval=1 checkpoint.interval=0; do
    run=first-lines-$set
    expect 0 mpirun --oversubscribe -n 2 "$GDN" train wide.yaml --run-dir "$run" --set $set --set checkpoint.interval_minutes=0 --set checkpoint.asynchronous=true > out 2>&1 || fail "$(cat out)"
    grep -m1 '"event":"memory"' "$run/metrics.jsonl" | tr ',{}' '\n' | LC_ALL=C awk -F: '
        { v[$1] = $2 / 1048576 }
        END { printf "memory    %.2f MiB", v["\"reserved_sum\""]
              n = split("weights gradients optimizer activations sources communication workspace checkpoint", part, " ")
              for (i = 1; i <= n; i++) printf " %.1f", v["\"reserved_" part[i] "\""]
              printf "\n" }' > reserved
    grep -m1 '^memory ' out | sed -E 's/ of the .*: weights/ weights/; s/,//g; s/ [a-z][a-z ]* ([0-9])/ \1/g' > said
    cmp -s reserved said || fail "$set: the first lines say '$(cat said)', reserved is '$(cat reserved)'"
    [ $set = checkpoint.interval=0 ] || ! grep -q ' 0\.0$' said || fail "no copy for checkpoints: $(cat said)"
done
