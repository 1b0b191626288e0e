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

with() { # NAME MODEL RULE …: NAME.yaml is the model with these rules
    local list name=$1 model=$2
    shift 2
    printf -v list '%s, ' "$@"
    sed "s/^  num_heads.*/&\n  rules: [${list%, }]/" "$model.yaml" > "$name.yaml"
}
with three plain "$before" "$values" "$keys"
with five attention "$after" "$values" "$before" "$queries" "$values"

on 1.1.1 three run_three
row five run_five layers/7/heads_3/7/map.weight
for name in three five; do
    on 1.2.2 $name rows_$name --set mesh.sequence_parallel=true
    close run_$name rows_$name
    on 1.2.2 $name rows_full_$name --set mesh.sequence_parallel=true --set train.recompute=full
    equal rows_$name rows_full_$name
    expect 0 "$GDN" generate run_$name --prompt the --length 30 > text
    [ -s text ] || fail "$name: no text"
done

# The constants have learned: all of this is not the sameness of nothing.
h5ls -d run_three/checkpoints/step_00000020/checkpoint.h5/model/layers/7/constant/8/weight | grep -A1 "Data:" | tail -1 > learned
grep -qE "[0-9]" learned && ! grep -qE "^ *(\(0\) )?0\.1$" learned || fail "the constant is at first 0.1, and still: $(cat learned)"

# A mixer without values has no place for them.
GDN_TEST_MIXERS=01 refused_run "values of layers whose mixer has none" 1 plain.yaml --set "model.rules=[$values]"

# What an entry may say, its kind says.
refused_run "the rule between layers heads sees all documents of a sample; join is expected" 2 plain.yaml --set "model.rules=[$values]" --set data.documents=mask
GDN_TEST_MIXERS=1 refused_run "layers with token mixer average see all documents of a sample; join is expected" 2 plain.yaml --set data.documents=mask
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
expect 2 "$GDN" train three.yaml --run-dir run_three --set train.steps=30 --set "model.rules=[$before]" > other.log 2>&1
grep -q "model.rules" other.log || fail "not refused: $(cat other.log)"
