#!/usr/bin/env bash
# Batches that change their size: train.batch_ramp takes the very steps of runs that each go on from the last one with another
# batch_size, on every mesh, and however often it is stopped.
. "$SOURCE/tests/program/small.sh"
sed -i 's/^  batch_size.*/  micro_batch_size: 2/; s/eval_batches.*/eval_batches: 0/' small.yaml
ramp='[[0, 8], [10, 16], [20, 4]]'
with=(--set "train.batch_ramp=$ramp")
says() { grep -qE -e "$2" "$1.log" || fail "no '$2' in: $(cat "$1.log")"; }
equal() { # RUN RUN: steps, evaluations and all of the training's state
    for event in step eval; do
        lines $event "$1" > first && lines $event "$2" | cmp - first || fail "$event lines of $2 differ from $1"
    done
    expect 0 "$GDN" checkpoint diff "$1" "$2" > diff
}

# ------------------------------------------------------------------------------------------ the same steps
# parts NAME RANKS [OPTION …]: the ramp at once, and in parts.
parts() {
    local name=$1 ranks=$2
    shift 2
    expect 0 train $ranks "ramp$name" "${with[@]}" "$@"
    expect 3 train $ranks "parts$name" --set train.batch_size=8 --set train.stop_at=10 "$@" 2> /dev/null
    expect 3 train $ranks "parts$name" --set train.batch_size=8 --resume-with train.batch_size=16 --set train.stop_at=20 "$@" 2> /dev/null
    expect 0 train $ranks "parts$name" --set train.batch_size=8 --resume-with train.batch_size=4 "$@"
    equal "ramp$name" "parts$name"
}
parts 1 1
parts 2 2 --set mesh.pipeline=2 --set mesh.compress_boundary=0.2
parts 4 4 --set mesh.pipeline=2
lines step ramp1 | awk -F'"tokens":' '{ n += NR <= 10 ? 8 : NR <= 20 ? 16 : 4; split($2, t, /[,}]/); if (t[1] != 16 * n) exit 1 }' ||
    fail "tokens: $(lines step ramp1)"
says ramp1 'the run reads 5,120 tokens' # 16 x (80 + 160 + 80)
says ramp1 'batches of 8 sequences, 16 from step 10 on, 4 from step 20 on, 2 at a time'
for part in weights activations communication workspace; do # planned for the largest, and so reserved
    lines memory ramp4 | grep -vqE "\"planned_$part\":([0-9]+),.*\"reserved_$part\":\1," && fail "$part: $(lines memory ramp4)"
done

# One size for all is that batch_size.
expect 0 train 1 one --set train.batch_size=8
expect 0 train 1 constant --set 'train.batch_ramp=[[0, 8]]'
equal one constant

# ------------------------------------------------------------------------------------------ meshes, stops
on() { # NAME DATA TENSOR PIPELINE [OPTION …]
    local name=$1 d=$2 t=$3 p=$4
    shift 4
    train $((d * t * p)) "$name" "${with[@]}" --set mesh.data=$d --set mesh.tensor=$t --set mesh.pipeline=$p "$@"
}
expect 0 on there 2 2 1 --set mesh.sequence_parallel=true # sums over tensor ranks after the last micro-batch
close_to $losses loss step ramp1 there
close_to $norms grad_norm step ramp1 there
close_to $losses loss step ramp1 ramp4
expect 0 on chunks 1 1 2 --set mesh.interleave=1 --set train.micro_batch_size=4 # one micro-batch in some steps
close_to $losses loss step ramp1 chunks

expect 3 train 1 broken "${with[@]}" --set train.stop_at=7 2> /dev/null
expect 3 train 1 broken "${with[@]}" --set train.stop_at=15 2> /dev/null
expect 0 train 1 broken "${with[@]}"
equal ramp1 broken
lines resume broken | grep -q '"batch_size":16,' || fail "the event: $(lines resume broken)"
expect 3 on moved 2 1 1 --set train.stop_at=9 2> /dev/null
expect 3 on moved 1 2 1 --set train.stop_at=14 2> /dev/null
expect 0 on moved 1 1 2
close_to $losses loss step ramp1 moved

# A ramp that begins at a resume, and ends at one.
expect 3 train 1 later --set train.batch_size=8 --set train.stop_at=5 2> /dev/null
expect 3 train 1 later --set train.batch_size=8 --resume-with "train.batch_ramp=$ramp" --set train.stop_at=30 2> /dev/null
lines step ramp1 | sed -n 1,30p > first && lines step later | cmp - first || fail "a ramp that begins later differs"
expect 0 train 1 later --set train.batch_size=8 --resume-with train.batch_size=12
grep -q '  batch_ramp: \[\]$' later/config.yaml && grep -q '  batch_size: 12$' later/config.yaml || fail "a ramp that stays"

# ------------------------------------------------------------------------------------------ plans, what is refused
"$GDN" plan small.yaml "${with[@]}" > plan.log
grep -q 'batches of 8 sequences, 16 from step 10 on, 4 from step 20 on; this plan is of the largest' plan.log &&
    grep -q '16 sequences of 16 tokens; a data rank has 8 micro-batches of 2' plan.log && grep -q ' 5,120 tokens in 40 steps' plan.log ||
    fail "the plan: $(head -8 plan.log)"
refused_run 'batch_ramp[1], 9, must be a multiple of data ranks x micro_batch_size' 1 small.yaml --set 'train.batch_ramp=[[0, 8], [5, 9]]'
refused_run 'train.batch_ramp[1], from step 5 on, 10 is not a multiple of train.micro_batch_size 2 times 2 data ranks' 2 small.yaml --set 'train.batch_ramp=[[0, 8], [5, 10]]'
refused_run 'train.batch_ramp[1], from step 5 on, 20 is not a multiple of train.micro_batch_size 4 (the smallest batch on a rank) times 2' 2 small.yaml \
    --set 'train.batch_ramp=[[0, 8], [5, 20]]' --set train.micro_batch_size=0
refused_run 'batch_size must be the last of batch_ramp, or be left out' 1 small.yaml "${with[@]}" --set train.batch_size=8
refused_run 'train.batch_ramp[0] begins at step 1: the first entry begins at step 0' 1 small.yaml --set 'train.batch_ramp=[[1, 8]]'
refused_run 'train.batch_ramp[2] begins at step 5' 1 small.yaml --set 'train.batch_ramp=[[0, 8], [5, 4], [5, 8]]'
refused_run "train.batch_ramp[1] is '7': [STEP, SEQUENCES] is expected" 1 small.yaml --set 'train.batch_ramp=[[0, 8], 7]'
expect 2 train 1 one "${with[@]}" 2> /dev/null
says one 'to change it: --resume-with train.batch_ramp=\[\[0, 8\], \[10, 16\], \[20, 4\]\]'
