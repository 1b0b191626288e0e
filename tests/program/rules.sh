#!/usr/bin/env bash
# Rules between layers that the tests add to gdn's (tests/rows/rule_constant.c, rule_heads.c), before layers and after them, at their queries,
# keys and values, some more than once, alone and beside delta connections: what rows.sh says, rows of the stream divided over tensor ranks,
# and it generates.
. "$SOURCE/tests/program/rows.sh"

before="{kind: constant, place: before, sources: [embedding, 1]}"
after="{kind: constant, place: after, sources: [0]}"
queries="{kind: heads, place: query, sources: [embedding, 1]}"
values="{kind: heads, place: value, sources: [embedding, 0]}"
keys="{kind: heads, place: key, sources: [0]}"

rules() { # NAME MODEL DATASET RULE …
    local list name=$1_$2 run=run_$1_$2 model=$2 dataset=$3
    shift 3
    printf -v list '%s, ' "$@"
    sed "s/^  num_heads.*/&\n  rules: [${list%, }]/" "$model.yaml" > "$name.yaml"
    row "$name" "$run" "$dataset"
    on 1.2.2 "$name" "${run}_rows" --set mesh.sequence_parallel=true
    close "$run" "${run}_rows"
    on 1.2.2 "$name" "${run}_rows_full" --set mesh.sequence_parallel=true --set train.recompute=full
    equal "${run}_rows" "${run}_rows_full"
    expect 0 "$GDN" generate "$run" --prompt the --length 30 > text
    [ -s text ] || fail "$name: no text"
}

rules three plain layers/7/constant/8/weight "$before" "$values" "$keys"
rules five attention layers/7/heads_3/7/map.weight "$after" "$values" "$before" "$queries" "$values"

# The constants have learned: all of this is not the sameness of nothing.
h5ls -d run_three_plain/checkpoints/step_00000020/checkpoint.h5/model/layers/7/constant/8/weight | grep -A1 "Data:" | tail -1 > learned
grep -qE "[0-9]" learned && ! grep -qE "^ *(\(0\) )?0\.1$" learned || fail "the constant is at first 0.1, and still: $(cat learned)"

# A mixer without values has no place for them.
GDN_TEST_MIXERS=01 refused_run "values of layers whose mixer has none" 1 plain.yaml --set "model.rules=[$values]"

# What an entry may say, its kind says.
refused_run "model.rules[0] lacks kind: a rule's name is expected" 1 plain.yaml --set "model.rules=[{place: before}]"
refused_run "model.rules[1].kind is 'constants'" 1 plain.yaml --set "model.rules=[$after, {kind: constants}]"
refused_run "unknown key model.rules[0].period: an entry has kind, which is constant, and may have place and sources" \
    1 plain.yaml --set "model.rules=[{kind: constant, place: before, period: 2}]"
refused_run "model.rules[0].place: constant does not enter there; expected is one of before, after" 1 plain.yaml --set "model.rules=[{kind: constant, place: value}]"
refused_run "model.rules[0].sources[1] is '2' once more" 1 plain.yaml --set "model.rules=[{kind: constant, sources: [2, 2]}]"
refused_run "model.rules[0].sources[0] is 'all': a layer's number or embedding is expected" 1 plain.yaml --set "model.rules=[{kind: constant, sources: [all]}]"
refused_run "a layer that the model does not have" 1 plain.yaml --set "model.rules=[{kind: constant, sources: [8]}]"

# A list of none is as none is said; a run goes on with the rules that it has.
on 1.1.1 attention none --set model.rules=[]
on 1.1.1 attention attention
equal none attention
expect 2 "$GDN" train three_plain.yaml --run-dir run_three_plain --set train.steps=30 --set "model.rules=[$before]" > other.log 2>&1
grep -q "model.rules" other.log || fail "not refused: $(cat other.log)"
