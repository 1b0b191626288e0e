#!/usr/bin/env bash
# Aggregates that the tests add to gdn's (tests/rows/aggregate_scored.c, aggregate_mapped.c): what rows.sh says, rows of the stream divided over
# tensor ranks, connections held whole by them, it generates, and configurations are checked.
. "$SOURCE/tests/program/rows.sh"

model scored "distances: [1, 2, 5], aggregate: scored, embedding_source: true, stage_steps: 7, regularizer: adaptive"
model mapped "distances: [1, 3], kind: full, aggregate: mapped, normalize: true"

aggregate() { # MODEL LEAF
    row "$1" "run_$1" "layers/7/delta/$2"
    on 1.2.1 "$1" "run_$1_connection" --set mesh.delta=connection --set mesh.sequence_parallel=true --set train.recompute=full
    close "run_$1" "run_$1_connection"
    expect 0 "$GDN" generate "run_$1" --prompt the --length 30 > text
    [ -s text ] || fail "$1: no text"
}

aggregate scored score/weight
aggregate mapped map/weight
on 1.2.2 scored scored_rows --set mesh.sequence_parallel=true # what it reads of sources travels as projections
close run_scored scored_rows

# The word is checked by the table, and what goes with it by the row.
expect 2 "$GDN" plan mapped.yaml --ranks 1 --set model.delta.temperature=2 > refused.log 2>&1
grep -q "a map of contributions has no temperature" refused.log || fail "unexpected: $(cat refused.log)"
expect 2 "$GDN" plan mapped.yaml --ranks 1 --set model.delta.aggregate=none > refused.log 2>&1
grep -q "learned.*mean.*attention.*multihead.*scored.*mapped" refused.log || fail "unexpected: $(cat refused.log)"
