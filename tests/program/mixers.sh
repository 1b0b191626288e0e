#!/usr/bin/env bash
# A token mixer that the tests add to gdn's (tests/rows/mixer_average.c), in all layers and in some: every mesh trains as one rank does; what
# is computed again and a stopped run that goes on change no bit; what is reserved is what was planned; and it generates.
. "$SOURCE/tests/program/eight_layers.sh"

mixers() { # LAYERS MODEL: as in rows.h
    local mesh setting run=run_$1
    export GDN_TEST_MIXERS=$1
    on 1.1.1 "$2" "$run"
    memory_as_planned "$run"
    h5ls -r "$run/checkpoints/step_00000020/checkpoint.h5" > listed
    grep -q "^/model/layers/7/average/out/weight" listed || fail "$1: the last layer has no average"
    for mesh in 2.1.1 1.2.1 1.1.2 2.2.2; do
        on $mesh "$2" "${run}_$mesh"
        close "$run" "${run}_$mesh"
        memory_as_planned "${run}_$mesh"
    done
    for setting in selective full; do
        on 1.1.1 "$2" "${run}_$setting" --set train.recompute=$setting
        equal "$run" "${run}_$setting"
        memory_as_planned "${run}_$setting"
    done
    on 1.2.1 "$2" "${run}_rows" --set mesh.sequence_parallel=true
    on 1.2.1 "$2" "${run}_rows_full" --set mesh.sequence_parallel=true --set train.recompute=full --set train.recompute_every=3
    close "$run" "${run}_rows"
    equal "${run}_rows" "${run}_rows_full"

    expect 3 "$GDN" train "$2.yaml" --run-dir "${run}_again" --set train.stop_at=7 > again.log 2>&1
    expect 0 "$GDN" train "$2.yaml" --run-dir "${run}_again" >> again.log 2>&1
    equal "$run" "${run}_again"
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
