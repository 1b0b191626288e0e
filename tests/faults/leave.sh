#!/usr/bin/env bash
# A rank that ends in the middle of a training as if all were well, status 0: the job ends soon, not with status 0 and not as if a
# checkpoint had been asked for, and says which rank it was. The same command then goes on and ends as an undisturbed run does.
. "$SOURCE/tests/faults/faults.sh"
options=(--set train.steps=30 --set checkpoint.interval=10 --set train.batch_size=8)
for mesh in "2 1 1" "1 1 2" "1 2 1"; do
    read -r d t p <<< "$mesh"
    train 2 "whole$d$t$p" "${options[@]}" --set mesh.data=$d --set mesh.tensor=$t --set mesh.pipeline=$p || fail "an undisturbed run: status $?"
done

export OMPI_MCA_odls_base_sigkill_timeout=0 # for the others
run=run
leaves() { # MESH RANK CALL AT exit|_exit
    local d t p status=0 what="$*"
    read -r d t p <<< "$1"
    local mesh=(--set mesh.data="$d" --set mesh.tensor="$t" --set mesh.pipeline="$p")
    rm -rf run told
    # As users have it: mpirun sees that the rank has not finalized.
    OMPI_MCA_orte_allowed_exit_without_sync=0 mpirun --oversubscribe -n 2 env LD_PRELOAD="$HELPERS/libfailing_calls.so" \
        GDN_FAIL_PATH="$PWD/run" GDN_FAIL_TOLD="$PWD/told" GDN_FAIL_RANK="$2" GDN_FAIL_CALL="$3" GDN_FAIL_AT="$4" GDN_FAIL_ERROR="$5" \
        "$GDN" train small.yaml --run-dir run "${options[@]}" "${mesh[@]}" > run.log 2>&1 &
    finish $! || status=$?
    [ -e told ] || fail "$what: there is no such call"
    [ $status -ne 0 ] && [ $status -ne 3 ] || fail "$what: the job ends with status $status: $(cat run.log)"
    grep -qi "rank $2" run.log || fail "$what: nobody says which rank: $(cat run.log)"
    whole_lines run
    expect 0 train 2 run "${options[@]}" "${mesh[@]}"
    same_end run "whole$d$t$p"
}
# In a step; the fifth line of the metrics and after; inside a checkpoint.
leaves "2 1 1" 1 allreduce 70 _exit
leaves "1 2 1" 0 allreduce 90 exit
leaves "1 1 2" 1 allreduce 60 exit
leaves "2 1 1" 0 write 12 _exit
leaves "2 1 1" 1 pwrite 3 _exit
