#!/usr/bin/env bash
# Training on a disk on which calls fail: failing.sh [all [CALL …]]
# Every k-th write, sync, rename, … of a whole run fails, once or from then on, with ENOSPC, EIO or half of the bytes, or the
# process is killed there, on one rank of one or two (failing_calls.c). `all` does so for every k, or for those CALLs alone;
# without it a sample is tried. Whatever fails: the run goes on or ends with the status that says what became of it and one
# message, `latest` names a whole checkpoint or there is none, nothing half is left, and the same command on a good disk ends as
# an undisturbed run does. Prints a table.
. "$SOURCE/tests/faults/faults.sh"
all=false
[ "${1:-}" != all ] || all=true

# Two checkpoints of a model with few tensors: some 300 writes.
options=(--set train.steps=4 --set checkpoint.interval=2 --set checkpoint.keep=1 --set train.eval_interval=2 --set train.batch_size=4
    --set model.num_layers=2 --set "model.delta.distances=[1]" --set model.hidden_size=16 --set model.intermediate_size=16
    --set model.delta.hidden=2 --set model.delta.gate_hidden=2)
for ranks in 1 2; do train $ranks reference$ranks "${options[@]}" || fail "an undisturbed run ends with status $?"; done

run=run
start() { # RANKS: one start, directly where it has one rank; its status is the result
    local command=(env "${preload[@]}" "$GDN" train small.yaml --run-dir run "${options[@]}")
    if [ "$1" -eq 1 ]; then
        timeout -k 5 400 "${command[@]}" > run.log 2>&1
    else
        mpirun --oversubscribe -n "$1" "${command[@]}" > run.log 2>&1 &
        finish $!
    fi
}

check_status() { # STATUS: what is there is what it says
    local messages saved
    if $killed; then
        [ "$1" -eq 137 ] || fail "$what: status $1: $(cat run.log)"
        return 0
    fi
    messages=$(grep '^gdn: ' run.log | grep -c -v '^gdn: \(note\|warning\)' || true)
    saved=$(newest run)
    case $1 in
    0) [ "$messages" -eq 0 ] && [ "$saved" -eq 4 ] || fail "$what: finished, with checkpoint ${saved:-none}: $(cat run.log)" ;;
    1) # as far as it came, all is saved
        local said
        said=$(sed -n 's/.*stopped after \([0-9]*\) of .*saved in.*/\1/p' run.log)
        [ -n "$said" ] && [ "$said" = "$saved" ] || fail "$what: status 1, latest ${saved:-none}: $(cat run.log)"
        ;;
    2) ! grep -q '"event":"step"' run/metrics.jsonl 2> /dev/null || fail "$what: status 2 after training: $(cat run.log)" ;;
    4) ;;
    *) fail "$what: status $1: $(cat run.log)" ;;
    esac
    [ "$1" -eq 0 ] && return
    [ "$messages" -eq 1 ] || fail "$what: not one message: $(cat run.log)"
    sed -n '/^gdn: /,$p' run.log | grep -q 'No space left\|Input/output error' || fail "$what: no reason: $(cat run.log)"
}

check_disk() {
    whole_lines run
    [ -d run/checkpoints ] || return 0
    [ ! -e run/checkpoints/latest ] || "$GDN" checkpoint verify run/checkpoints/latest > verify.log 2>&1 || fail "$what: latest: $(cat verify.log)"
    ! "$GDN" checkpoint ls run 2>&1 | grep damaged || fail "$what: a damaged checkpoint can be seen"
    $killed || [ -z "$(find run/checkpoints -name '.?*')" ] || fail "$what: left: $(find run/checkpoints)"
}

# A case: GDN_FAIL_… in $fault. Whether there was such a call.
one() { # RANKS
    local status=0
    killed=false
    [[ $what != *kill* ]] || killed=true
    rm -rf run told
    preload=(LD_PRELOAD="$HELPERS/libfailing_calls.so" GDN_FAIL_PATH="$PWD/run" GDN_FAIL_TOLD="$PWD/told" "${fault[@]}")
    start "$1" 2> /dev/null || status=$? # bash tells of killed commands
    if [ ! -e told ]; then
        [ $status -eq 0 ] || fail "$what: nothing failed, but the status is $status: $(cat run.log)"
        return 1
    fi
    check_status $status
    check_disk
    found=$status
    preload=()
    start "$1" || fail "$what: status $status; and then on a good disk $?: $(cat run.log)"
    if [ "$found" -eq 1 ]; then same_end run "reference$1" 1; else same_end run "reference$1"; fi
}

declare -A cases went
calls="write pwrite fsync rename close truncate allocate open mkdir"
[ $# -lt 2 ] || calls=${*:2}
for call in $calls; do cases[$call]=0; for s in 0 1 2 4 137; do went[$call$s]=0; done; done

sweep() { # CALL RANKS RANK STRIDE FIRST ERROR [from]: the FIRST, FIRST + STRIDE, … until there is none
    local k
    for ((k = $5; ; k += $4)); do
        fault=(GDN_FAIL_CALL="$1" GDN_FAIL_AT=$k GDN_FAIL_RANK="$3" GDN_FAIL_ERROR="$6")
        [ -z "${7:-}" ] || fault+=(GDN_FAIL_FROM=1)
        what="$1 number $k ${7:+and on }$6 on rank $3 of $2"
        one "$2" || break
        cases[$1]=$((cases[$1] + 1)) went[$1$found]=$((went[$1$found] + 1))
        ! $show || echo "$what: status $found" >&2
    done
}
show=${SHOW:-false}

began=$SECONDS
if $all; then
    for call in $calls; do
        few=1 # HDF5's hundreds of small writes: each of them once, and every fifth in the other ways
        [ $call != pwrite ] || few=5
        sweep $call 1 0 1 1 EIO
        sweep $call 1 0 $few 1 ENOSPC from
        sweep $call 1 0 $few 1 kill
        for rank in 0 1; do
            sweep $call 2 $rank $((2 * few)) 1 EIO
            sweep $call 2 $rank $((2 * few)) 2 ENOSPC from
            sweep $call 2 $rank $((2 * few)) 2 kill
        done
        [[ $call == *write ]] || continue
        sweep $call 1 0 $few 1 short
        sweep $call 2 0 $((2 * few)) 1 short
    done
else
    sweep write 1 0 11 6 ENOSPC from
    sweep write 2 0 13 9 short
    sweep pwrite 1 0 83 30 ENOSPC from
    sweep pwrite 1 0 97 50 short
    sweep pwrite 2 1 2 2 EIO
    sweep fsync 1 0 5 3 EIO
    sweep fsync 2 1 2 2 EIO from
    sweep rename 1 0 3 2 ENOSPC
    sweep rename 1 0 1 5 kill
    sweep close 1 0 7 7 EIO
    sweep truncate 1 0 4 2 ENOSPC from
    sweep allocate 1 0 2 2 ENOSPC
    sweep open 1 0 8 7 ENOSPC
    sweep mkdir 1 0 2 2 ENOSPC
fi

echo "| call | at so many | the run went on | ended: steps saved (1) | before the first step (2) | unsaved (4) | killed | bad |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
for call in $calls; do echo "| $call | ${cases[$call]} | ${went[${call}0]} | ${went[${call}1]} | ${went[${call}2]} | ${went[${call}4]} | ${went[${call}137]} | 0 |"; done
echo "$((SECONDS - began)) s"
