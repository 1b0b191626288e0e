#!/usr/bin/env bash
# A token mixer that the tests add to gdn's (tests/rows/mixer_average.c), in all layers and in some: what rows.sh says, rows of the stream
# divided over tensor ranks, and it generates.
. "$SOURCE/tests/program/rows.sh"

mixers() { # LAYERS MODEL: as in tests/rows/rows.h
    local run=run_$1
    export GDN_TEST_MIXERS=$1
    row "$2" "$run" layers/7/average/out/weight
    on 2.2.2 "$2" "${run}_2.2.2"
    close "$run" "${run}_2.2.2"
    on 1.2.1 "$2" "${run}_rows" --set mesh.sequence_parallel=true
    close "$run" "${run}_rows"
    on 1.2.1 "$2" "${run}_rows_full" --set mesh.sequence_parallel=true --set train.recompute=full --set train.recompute_every=3
    equal "${run}_rows" "${run}_rows_full"
    expect 0 "$GDN" generate "$run" --prompt the --length 30 > text
    [ -s text ] || fail "$1: no text"
}

mixers 01 mean
mixers 1 learned

# None is as before; and what a mixer asks of the configuration is checked.
GDN_TEST_MIXERS=0 on 1.1.1 mean none
unset GDN_TEST_MIXERS
on 1.1.1 mean attention
equal none attention
GDN_TEST_MIXERS=1 expect 2 "$GDN" plan mean.yaml --ranks 3 --set mesh.tensor=3 > refused.log 2>&1
grep -q "columns of an average" refused.log || fail "unexpected: $(cat refused.log)"
