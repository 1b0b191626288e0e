# Sourced by the scripts of rows that the tests add to gdn's tables (tests/rows/).
#   row MODEL RUN DATASET   trains a model with the row as RUN, on one rank, whose checkpoint has the dataset below /model: every mesh trains
#                           as that does (RUN_MESH); what is computed again and a stopped run that goes on change no bit; what is reserved is
#                           what was planned
. "$SOURCE/tests/program/eight_layers.sh"

row() {
    local mesh setting run=$2
    on 1.1.1 "$1" "$run"
    memory_as_planned "$run"
    h5ls -r "$run/checkpoints/step_00000020/checkpoint.h5" > listed
    grep -q "^/model/$3 " listed || fail "$run: no $3: $(cat listed)"
    for mesh in 2.1.1 1.2.1 1.1.2; do
        on $mesh "$1" "${run}_$mesh"
        close "$run" "${run}_$mesh"
        memory_as_planned "${run}_$mesh"
    done
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
