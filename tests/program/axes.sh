#!/usr/bin/env bash
# An axis that the tests add to gdn's (tests/rows/axes.c), beside data: so many replicas train as so many data ranks do, to the last bit, in any
# mix of the two; they go on with each other's checkpoints; what they hand over and reserve is what the plan says. Sums over both are one sum,
# which makes it so in any precision.
. "$SOURCE/tests/program/small.sh"

settings=(--set train.steps=8 --set train.eval_interval=4 --set model.delta.stage_steps=3 --set mesh.bucket=4096 --set mesh.small=512
    --set watchdog.replicas=1 --set train.micro_batch_size=1)

on() { # DATA.TENSOR.PIPELINE[.REPLICA]: sets $options and $ranks; without the fourth there is no such axis
    local data tensor pipeline replica
    IFS=. read -r data tensor pipeline replica <<< "$1"
    unset GDN_TEST_REPLICA
    [ -z "$replica" ] || export GDN_TEST_REPLICA=$replica
    options=("${settings[@]}" --set mesh.data="$data" --set mesh.tensor="$tensor" --set mesh.pipeline="$pipeline")
    ranks=$((data * tensor * pipeline * ${replica:-1}))
}

run() { # MESH DIRECTORY [OPTION …]
    on "$1"
    train $ranks "$2" "${options[@]}" "${@:3}"
}

# Of rank 0 what it hands over once all connections are there; of the rank that needs most what it reserves.
as_planned() { # MESH RUN [OPTION …]
    on "$1"
    "$GDN" plan small.yaml --ranks $ranks "${options[@]}" --flops 1e11 --json "${@:3}" > plan.json
    bytes_as_planned 7 "$2"
    [ "$(wc -l < planned)" -eq 5 ] || fail "axes of the plan: $(paste -sd' ' planned)"
    memory_as_planned "$2"
}

# Two replicas are two data ranks; stopped, a run goes on as the other and back.
expect 0 run 2.1.1 data
expect 0 run 1.1.1.2 replica
equal data replica
as_planned 1.1.1.2 replica
grep '"event":"start"' replica/metrics.jsonl | grep -q '"data":1,"tensor":1,"pipeline":1,"context":1,"replica":2,' || fail "$(head -1 replica/metrics.jsonl)"
expect 3 run 2.1.1 moved --set train.stop_at=3 2> /dev/null
expect 3 run 1.1.1.2 moved --set train.stop_at=6 2> /dev/null
expect 0 run 2.1.1 moved
equal data moved

# Replicas of data ranks, and whole matrices.
muon=(--set train.optimizer=muon)
expect 0 run 4.1.1 four "${muon[@]}"
expect 0 run 2.1.1.2 both "${muon[@]}"
equal four both
as_planned 2.1.1.2 both "${muon[@]}"

# Stages are nearer to each other than replicas, where they were farther than data ranks; each node has a file.
files=(--set checkpoint.files=node)
expect 0 run 2.1.2 stages "${files[@]}"
expect 0 run 1.1.2.2 farther "${files[@]}"
equal stages farther
as_planned 1.1.2.2 farther "${files[@]}"
