#!/usr/bin/env bash
# Rules between layers that the tests add to gdn's (tests/rows/rule_constant.c, rule_heads.c), before layers and after them, at their queries,
# keys and values, some more than once, alone and beside delta connections: what rows.sh says, rows of the stream divided over tensor ranks,
# and it generates.
. "$SOURCE/tests/program/rows.sh"

rules() { # RULES MODEL DATASET: as in tests/rows/rows.h
    local run=run_$2_$1
    export GDN_TEST_RULES=$1
    row "$2" "$run" "$3"
    on 1.2.2 "$2" "${run}_rows" --set mesh.sequence_parallel=true
    close "$run" "${run}_rows"
    on 1.2.2 "$2" "${run}_rows_full" --set mesh.sequence_parallel=true --set train.recompute=full
    equal "${run}_rows" "${run}_rows_full"
    expect 0 "$GDN" generate "$run" --prompt the --length 30 > text
    [ -s text ] || fail "$2 with $1: no text"
}

rules bvk plain layers/7/constant/8/weight
rules avbqv attention layers/7/heads_3/7/map.weight

# The constants have learned: all of this is not the sameness of nothing.
h5ls -d run_plain_bvk/checkpoints/step_00000020/checkpoint.h5/model/layers/7/constant/8/weight | grep -A1 "Data:" | tail -1 > learned
grep -qE "[0-9]" learned && ! grep -qE "^ *(\(0\) )?0\.1$" learned || fail "the constant is at first 0.1, and still: $(cat learned)"

# A mixer without values has no place for them.
GDN_TEST_RULES=v GDN_TEST_MIXERS=01 expect 2 "$GDN" train plain.yaml --run-dir nowhere > nowhere.log 2>&1
grep -q "values of layers whose mixer has none" nowhere.log || fail "not refused: $(cat nowhere.log)"

# None is as before.
GDN_TEST_RULES='' on 1.1.1 attention none
unset GDN_TEST_RULES
on 1.1.1 attention attention
equal none attention
