#!/usr/bin/env bash
# A gate that the tests add to gdn's (tests/rows/gate_identity.c): what rows.sh says, connections held whole by tensor ranks, and its
# configurations are checked.
. "$SOURCE/tests/program/rows.sh"

model identity "distances: [1, 2, 5], kind: identity, aggregate: mean, embedding_source: true, stage_steps: 7, regularizer: adaptive"
model identity_heads "distances: [1, 3], kind: identity, aggregate: multihead, attention_heads: 4, normalize: true"

for name in identity identity_heads; do
    row $name run_$name layers/7/delta/1/gain
    on 1.2.1 $name run_${name}_connection --set mesh.delta=connection --set mesh.sequence_parallel=true
    close run_$name run_${name}_connection
done

# The factor has learned: all of this is not the sameness of nothing.
h5ls -d run_identity/checkpoints/step_00000020/checkpoint.h5/model/layers/7/delta/1/gain | grep -A1 "Data:" | tail -1 > learned
grep -qE "[0-9]" learned && ! grep -qE "^ *(\(0\) )?1$" learned || fail "the factor is at first 1, and still: $(cat learned)"

# The word is checked by the table, and what goes with it by the row.
expect 2 "$GDN" plan identity.yaml --ranks 1 --set model.delta.temperature=2 > refused.log 2>&1
grep -q "an identity has no temperature" refused.log || fail "unexpected: $(cat refused.log)"
expect 2 "$GDN" plan identity.yaml --ranks 1 --set model.delta.kind=none > refused.log 2>&1
grep -q "bottleneck.*full.*adaptive.*identity" refused.log || fail "unexpected: $(cat refused.log)"
