#!/usr/bin/env bash
# A gate that the tests add to gdn's (tests/rows/gate_identity.c): every mesh trains as one rank does; what is computed again and a stopped run
# that goes on change no bit; what is reserved is what was planned; and its configurations are checked.
. "$SOURCE/tests/program/eight_layers.sh"

model identity "distances: [1, 2, 5], kind: identity, aggregate: mean, embedding_source: true, stage_steps: 7, regularizer: adaptive"
model identity_heads "distances: [1, 3], kind: identity, aggregate: multihead, attention_heads: 4, normalize: true"

gate() { # MODEL LEAF: a tensor that its files have
    local mesh setting run=run_$1
    on 1.1.1 "$1" "$run"
    memory_as_planned "$run"
    h5ls -r "$run/checkpoints/step_00000020/checkpoint.h5" > listed
    grep -q "^/model/layers/7/delta/1/$2" listed || fail "$1: no $2"
    for mesh in 2.1.1 1.2.1 1.1.2; do
        on $mesh "$1" "${run}_$mesh"
        close "$run" "${run}_$mesh"
        memory_as_planned "${run}_$mesh"
    done
    on 1.2.1 "$1" "${run}_connection" --set mesh.delta=connection --set mesh.sequence_parallel=true
    close "$run" "${run}_connection"
    for setting in selective full; do
        on 1.1.1 "$1" "${run}_$setting" --set train.recompute=$setting
        equal "$run" "${run}_$setting"
        memory_as_planned "${run}_$setting"
    done
    on 1.2.1 "$1" "${run}_1.2.1_full" --set train.recompute=full
    equal "${run}_1.2.1" "${run}_1.2.1_full"

    expect 3 "$GDN" train "$1.yaml" --run-dir "${run}_again" --set train.stop_at=9 > again.log 2>&1
    expect 0 "$GDN" train "$1.yaml" --run-dir "${run}_again" >> again.log 2>&1
    equal "$run" "${run}_again"
}

gate identity gain
gate identity_heads gain

# The factor has learned: all of this is not the sameness of nothing.
h5ls -d run_identity/checkpoints/step_00000020/checkpoint.h5/model/layers/7/delta/1/gain | grep -A1 "Data:" | tail -1 > learned
grep -qE "[0-9]" learned && ! grep -qE "^ *(\(0\) )?1$" learned || fail "the factor is at first 1, and still: $(cat learned)"

# The word is checked by the table, and what goes with it by the row.
expect 2 "$GDN" plan identity.yaml --ranks 1 --set model.delta.temperature=2 > refused.log 2>&1
grep -q "an identity has no temperature" refused.log || fail "unexpected: $(cat refused.log)"
expect 2 "$GDN" plan identity.yaml --ranks 1 --set model.delta.kind=none > refused.log 2>&1
grep -q "bottleneck.*full.*adaptive.*identity" refused.log || fail "unexpected: $(cat refused.log)"
