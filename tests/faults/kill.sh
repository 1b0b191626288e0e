#!/usr/bin/env bash
# Kills training runs with signal 9 again and again until they are through: kill.sh COUNT [RANKS [SEED]]
# A random rank dies at a random moment, in every third kill inside a checkpoint; the same command is run again. After every
# kill `latest` names a whole checkpoint, the restart begins at it, no more steps are done again than the interval has, and at the end
# tensors, steps and evaluations are those of a run that nobody has killed. Prints a table of where the kills fell.
. "$SOURCE/tests/faults/faults.sh"
count=$1 ranks=${2:-2} seed=${3:-1}
interval=8
RANDOM=$seed
case $ranks in
1) meshes=("1 1 1") ;;
2) meshes=("2 1 1" "1 1 2" "1 2 1") ;;
4) meshes=("4 1 1" "1 2 2" "2 1 2" "2 2 1") ;;
*) fail "RANKS is 1, 2 or 4" ;;
esac

# Saved while training goes on or not, in one file or one a node: in turn, where this program can.
styles=("checkpoint.files=one" "checkpoint.files=node")
"$GDN" train --help-config > keys
if grep -q 'checkpoint.asynchronous' keys; then
    styles=("checkpoint.files=one --set checkpoint.asynchronous=true" "checkpoint.files=one --set checkpoint.asynchronous=false"
        "checkpoint.files=node --set checkpoint.asynchronous=true")
fi

round=-1
next_round() {
    local mesh style
    round=$((round + 1))
    read -r -a mesh <<< "${meshes[round % ${#meshes[@]}]}"
    style=${styles[round / ${#meshes[@]} % ${#styles[@]}]}
    run=run$round reference=reference$((round % ${#meshes[@]}))
    # shellcheck disable=SC2206 # style is several words
    options=(--set train.steps=320 --set checkpoint.interval=$interval --set checkpoint.keep=2 --set train.eval_interval=20
        --set train.batch_size=8 --set "mesh.data=${mesh[0]}" --set "mesh.tensor=${mesh[1]}" --set "mesh.pipeline=${mesh[2]}" --set $style)
    allowed=$interval
    [[ $style != *asynchronous=true* ]] || allowed=$((2 * interval)) # one may be under way
    if [ ! -e "$reference" ]; then
        train "$ranks" "$reference" "${options[@]}" || fail "the undisturbed run ends with status $?"
        # Microseconds that a checkpoint and the whole training take, undisturbed.
        inside=$(lines_raw checkpoint $reference | LC_ALL=C awk -F'"seconds":' '{ s += $2; n++ } END { printf "%d", 1e6 * s / n }')
        whole=$(lines_raw finish $reference | LC_ALL=C awk -F'"seconds":' '{ printf "%d", 1e6 * $2 }')
    fi
}
lines_raw() { grep "\"event\":\"$1\"" "$2/metrics.jsonl"; }

random() { echo $(((RANDOM << 15 | RANDOM) % ($1 + 1))); } # 0 … $1

# Where a kill has fallen, from what it has left.
phase() { # DIRECTORY STEPS-OF-THIS-LIFE
    local latest name step
    latest=$(newest "$1")
    for name in "$1"/checkpoints/.step_*.tmp "$1"/checkpoints/step_*; do
        [ -e "$name" ] || continue
        step=${name##*step_}
        step=$((10#${step%.tmp}))
        if [ "$step" -gt "${latest:--1}" ]; then
            [[ $name == *.tmp ]] && echo writing || echo renaming
            return
        fi
        [[ $name != *.tmp ]] || { echo removing && return; }
    done
    for name in latest best; do
        [ ! -e "$1/checkpoints/.$name.tmp" ] || { echo renaming && return; }
    done
    [ "$2" -gt 0 ] && echo training || echo starting
}

# A life's lines are those from $2 on: it has begun where it should have, and has lost no more than it may.
check_life() { # DIRECTORY FIRST-LINE NEWEST-BEFORE LAST-STEP-BEFORE
    local begin
    begin=$(tail -n +"$2" "$1/metrics.jsonl" | grep -m 1 '"event":"\(start\|resume\)"' || true)
    [ -n "$begin" ] || return 0 # killed before
    local step=${begin#*\"step\":}
    step=${step%%,*}
    if [ -z "$3" ]; then
        [[ $begin == *'"start"'* && $step -eq 0 ]] || fail "$1 should have started afresh: $begin"
    else
        [[ $begin == *'"resume"'* && $step -eq $3 ]] || fail "$1 should have gone on from step $3: $begin"
    fi
    local lost=$(($4 + 1 - step))
    [ "$lost" -le "$allowed" ] || fail "$1 lost $lost steps: $4 was done, and it went on from $step"
    [ "$lost" -le "$most" ] || most=$lost
}

check_disk() { # DIRECTORY
    whole_lines "$1"
    local latest told
    latest=$(newest "$1")
    told=$(lines checkpoint "$1" | tail -1 | sed 's/.*"step":\([0-9]*\).*/\1/')
    [ "${latest:-0}" -ge "${told:-0}" ] || fail "$1 has told of checkpoint $told, and latest is ${latest:-none}"
    [ "${latest:-0}" -ge "${4:-0}" ] || fail "$1 had checkpoint $4, and latest is ${latest:-none}"
    [ -z "$latest" ] || "$GDN" checkpoint verify "$1/checkpoints/latest" > verify.log 2>&1 || fail "latest in $1: $(cat verify.log)"
}

declare -A phases=([starting]=0 [training]=0 [writing]=0 [renaming]=0 [removing]=0)
kills=0 restarts=0 most=0 finished=0
next_round
began=$SECONDS
life() { # one start of the run, with a kill if one is still to be done
    local first before last victim status=0 moment=1 folder=$run/checkpoints
    first=$(($( (cat "$run/metrics.jsonl" 2> /dev/null || true) | wc -l) + 1))
    before=$(newest "$run")
    last=$( (grep '"event":"step"' "$run/metrics.jsonl" 2> /dev/null || true) | tail -1 | sed 's/.*"step":\([0-9]*\).*/\1/')
    rm -f pid.*
    # Four kinds of twelve fall inside a checkpoint: three after some time, one at a rename, where time would hardly hit.
    local preload="" kind=$((kills % 12))
    if [ "$kills" -lt "$count" ] && [ $kind -eq 9 ]; then
        preload="LD_PRELOAD=$HELPERS/libfailing_calls.so GDN_FAIL_CALL=rename GDN_FAIL_ERROR=kill GDN_FAIL_RANK=0"
        preload+=" GDN_FAIL_AT=$((RANDOM % 16 + 2)) GDN_FAIL_PATH=$PWD/$run"
    fi
    # mpirun leaves the others a second, in every fourth life: what they do with it must do no harm either.
    local leave=0
    [ $((RANDOM % 4)) -gt 0 ] || leave=1
    OMPI_MCA_odls_base_sigkill_timeout=$leave mpirun --oversubscribe -n "$ranks" \
        bash -c 'echo $$ > pid.$OMPI_COMM_WORLD_RANK; exec "$@"' - env $preload "$GDN" train small.yaml --run-dir "$run" "${options[@]}" > "$run.log" 2>&1 &
    local job=$!
    if [ -z "$preload" ] && [ "$kills" -lt "$count" ]; then
        victim=pid.$((RANDOM % ranks))
        case $kind in
        0 | 3 | 6) set -- "$(random "$inside")" made "$folder" $((RANDOM % 6 + 1)) ;;
        11) set -- "$(random 400000)" ;;
        *) set -- "$(random $((whole / 6)))" lines "$run/metrics.jsonl" ;;
        esac
        moment=0
        "$HELPERS/moment" $victim "$@" || moment=$?
        [ $moment -le 1 ] || fail "nothing to kill in kill $kills, $*: $(cat "$run.log")"
    fi
    finish $job || status=$?
    [ -z "$preload" ] || [ $status -eq 0 ] || moment=0
    whole_lines "$run"
    check_life "$run" $first "$before" "${last:--1}"
    check_disk "$run" $first "$before" "${before:-0}"
    if [ $moment -eq 0 ]; then
        [ $status -ne 0 ] || fail "mpirun says that all is well though a rank was killed"
        local steps where
        steps=$(tail -n +"$first" "$run/metrics.jsonl" 2> /dev/null | grep -c '"event":"step"' || true)
        where=$(phase "$run" "$steps")
        phases[$where]=$((phases[$where] + 1))
        kills=$((kills + 1)) restarts=$((restarts + 1))
        [ $((kills % 25)) -ne 0 ] || echo "$kills kills, $finished runs through, $((SECONDS - began)) s" >&2
    elif [ $status -ne 0 ]; then
        fail "$run ends with status $status though nobody killed it: $(cat "$run.log")"
    else
        same_end "$run" "$reference"
        finished=$((finished + 1))
        rm -rf "$run"
        [ "$kills" -ge "$count" ] || next_round
        return 0
    fi
}
while [ "$kills" -lt "$count" ] || [ -e "$run" ]; do life; done

echo "| kills of a rank of $ranks | count |"
echo "| --- | --- |"
echo "| before the first step | ${phases[starting]} |"
echo "| in a step or between | ${phases[training]} |"
echo "| while a checkpoint was written, before its rename | ${phases[writing]} |"
echo "| between its renames | ${phases[renaming]} |"
echo "| while an older one was removed | ${phases[removing]} |"
echo "| all | $kills |"
echo "| restarts | $restarts |"
echo "| runs that came through, equal to an undisturbed one | $finished |"
echo "| most steps done again (interval $interval) | $most |"
echo "| times that mpirun hung when all ranks were gone (faults.sh) | $launchers |"
echo "| bad | 0 |"
echo "seed $seed, $((SECONDS - began)) s"
