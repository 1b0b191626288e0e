#!/usr/bin/env bash
# Runs that hang: a rank that is stopped in a step, in the start, in a checkpoint; files that hang. The watchdog ends each,
# says which rank it was, and nothing is left behind. And a rank whose memory fails. All at a time, since they mostly wait.
. "$SOURCE/tests/program/small.sh"

long=(--set train.steps=1000000 --set train.eval_interval=0 --set monitor.interval=0)

# Starts a run of so many ranks, whose processes' numbers are in DIRECTORY.pid.RANK. Rank 1 runs in $elsewhere.
elsewhere=.
begin() { # RANKS DIRECTORY [OPTION …]
    local ranks=$1 directory=$2
    shift 2
    elsewhere=$elsewhere timeout -k 5 400 mpirun --oversubscribe -n "$ranks" bash -c '
        echo $$ > '"$directory"'.pid.$OMPI_COMM_WORLD_RANK
        [ $OMPI_COMM_WORLD_RANK -ne 1 ] || cd $elsewhere
        exec "$@"' - "$GDN" train "$PWD/small.yaml" --run-dir "$PWD/$directory" "${long[@]}" "$@" > "$directory.log" 2>&1 &
    declare -g "job_$directory=$!"
}

until_true() { # WHAT COMMAND …
    local what=$1
    shift
    for _ in $(seq 600); do
        if "$@"; then return; fi
        sleep 0.05
    done
    fail "waited in vain for $what"
}

trains() { [ -e "$1/metrics.jsonl" ] && [ "$(grep -c '"event":"step"' "$1/metrics.jsonl")" -ge 3 ]; }
has_saved() { [ -e "$1/checkpoints/latest" ]; }
process() { cat "$1.pid.$2"; }
is_watched() { # DIRECTORY RANK
    [ -s "$1.pid.$2" ] && cat "/proc/$(process "$1" "$2")/task/"*/comm 2> /dev/null | grep -q watchdog
}

gone() {
    local state
    state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" 2> /dev/null) || return 0
    case $state in "" | Z* | X*) return 0 ;; *) return 1 ;; esac
}

ended() { # DIRECTORY RANKS PATTERN: with status 1, one message, which says this, a line for each rank, and nothing left
    local job=job_$1 status=0 rank
    wait "${!job}" || status=$?
    [ $status -eq 1 ] || fail "$1: status $status instead of 1: $(cat "$1.log")"
    [ "$(grep -v '^gdn: note' "$1.log" | grep -c '^gdn: ')" -eq 1 ] || fail "$1: not one message: $(cat "$1.log")"
    grep -q "$3" "$1.log" || fail "$1: no '$3' in: $(cat "$1.log")"
    for rank in $(seq 0 $(($2 - 1))); do
        grep -q "^ *$rank  $(hostname | cut -c1-20) " "$1.log" || fail "$1: no line of rank $rank in: $(cat "$1.log")"
        until_true "the end of rank $rank of $1" gone "$(process "$1" "$rank")"
    done
}

host=$(hostname)

# A rank that is stopped in a step: the others wait in a collective of an axis.
begin 3 step --set watchdog.step=4

# In the start: rank 1 opens its data, a pipe without another end, and is stopped there; and it is not stopped, but its
# file system hangs.
mkdir apart && mkfifo apart/text.txt
elsewhere=apart
begin 2 start --set watchdog.start=4
begin 2 pipe --set watchdog.start=4
elsewhere=.

# In a checkpoint, which is most of the time where there is one after every step; in the background and not. Now and then
# it is caught in a step.
begin 2 save --set checkpoint.interval=1 --set checkpoint.asynchronous=false --set watchdog.checkpoint=5 --set watchdog.step=8
begin 2 behind --set checkpoint.interval=1 --set watchdog.checkpoint=5 --set watchdog.step=8

# Rank 0 alone hangs in a file: nobody reads what it writes to metrics.jsonl.
mkdir full && mkfifo full/metrics.jsonl
begin 2 full --set watchdog.step=4

# Rank 1 of three finds a bit of its weights flipped, which a learning rate of next to nothing leaves as they are.
begin 3 flipped --set train.lr=1e-30 --set watchdog.replicas=10 --set checkpoint.interval=5

# One rank, without mpirun.
mkdir one && mkfifo one/metrics.jsonl
timeout -k 5 400 "$GDN" train small.yaml --run-dir one "${long[@]}" --set watchdog.step=4 > one.log 2>&1 &
job_one=$!

# In MPI's own beginning and end, where ranks cannot ask each other; one rank without mpirun, too.
hang() { # DIRECTORY CALL RANK RANKS [OPTION …]
    local directory=$1 call=$2 rank=$3 ranks=$4
    shift 4
    timeout -k 5 400 mpirun --oversubscribe -n "$ranks" bash -c 'echo $$ > '"$directory"'.pid.$OMPI_COMM_WORLD_RANK; exec "$@"' - \
        env LD_PRELOAD="$HANG_IN_MPI" GDN_HANG_IN="$call" GDN_HANG_RANK="$rank" "$GDN" train small.yaml --run-dir "$directory" "$@" > "$directory.log" 2>&1 &
    declare -g "job_$directory=$!"
}
hang init MPI_Init 1 3 --set watchdog.start=4
hang last MPI_Finalize 1 2 --set watchdog.checkpoint=4 --set train.steps=2
env LD_PRELOAD="$HANG_IN_MPI" GDN_HANG_IN=MPI_Init GDN_HANG_RANK=0 "$GDN" train small.yaml --run-dir alone --set watchdog.start=4 > alone.log 2>&1 &
job_alone=$!

until_true "a rank that is watched" is_watched start 1
until_true "a rank that is watched" is_watched start 0
kill -STOP "$(process start 1)"
until_true "steps" trains step
kill -STOP "$(process step 2)"
until_true "a checkpoint" has_saved save
kill -STOP "$(process save 1)"
until_true "a checkpoint" has_saved behind
kill -STOP "$(process behind 0)"
until_true "a checkpoint" has_saved flipped
flipped=0
"$FLIP_MEMORY" "$(process flipped 1)" 32 > flip.log || flipped=$?
[ $flipped -ne 77 ] || kill -TERM "$(process flipped 1)"

ended step 3 "^gdn: rank 2 on $host does not answer; ranks\? [01].* waits\? in the .* (step [0-9]*, for .*; watchdog.step is 4)"
ended start 2 "^gdn: rank 1 on $host does not answer; rank 0 .* (the start, for .*; watchdog.start is 4)"
ended pipe 2 "^gdn: rank 1 on $host holds the others up: in the start.*rank 0 waits in"
saving="\(the checkpoint of step [0-9]*, for .*; watchdog.checkpoint is 5\|step [0-9]*, for .*; watchdog.step is 8\)"
ended save 2 "^gdn: rank 1 on $host does not answer; .*($saving)"
ended behind 2 "^gdn: rank 0 on $host does not answer; .*($saving)"
ended full 2 "^gdn: rank 0 on $host holds the others up: in step [0-9]*.*rank 1 waits in .*watchdog.step is 4)"

# There the message comes from a rank that waits: the lowest that still does.
hung() { # DIRECTORY RANKS PATTERN: with status 1, one message, which says this, and nothing left
    local job=job_$1 status=0 rank
    wait "${!job}" || status=$?
    [ $status -eq 1 ] || fail "$1: status $status instead of 1: $(cat "$1.log")"
    [ "$(grep -v '^gdn: note' "$1.log" | grep -c '^gdn: ')" -eq 1 ] && grep -q "$3" "$1.log" || fail "$1: not one message '$3': $(cat "$1.log")"
    for rank in $(seq 0 $(($2 - 1))); do until_true "the end of rank $rank of $1" gone "$(process "$1" "$rank")"; done
}
hung init 3 "^gdn: rank 0 on $host waits in MPI_Init, for [4-9].* s; watchdog.start is 4"
[ ! -e init ] || fail "a run that did not begin left a directory"
hung last 2 "^gdn: rank [01] on $host waits in MPI_Finalize, for .* s; watchdog.checkpoint is 4"
[ "$(cat last/checkpoints/latest)" = step_00000002 ] || fail "last: $(cat last.log)"
hung alone 0 "^gdn: this process on $host waits in MPI_Init, for [4-9].* s; watchdog.start is 4"

if [ $flipped -eq 77 ]; then
    echo "not tested: flipped bits (this user may not write into other processes' memory)"
else
    [ $flipped -eq 0 ] || fail "no weights were found in memory"
    expect 1 wait "$job_flipped"
    [ "$(grep -v '^gdn: note' flipped.log | grep -c '^gdn: ')" -eq 1 ] || fail "flipped: not one message: $(cat flipped.log)"
    grep -q "^gdn: after [0-9]* steps the copies of weights.*norm.weight is wrong on rank 1 on $host" flipped.log || fail "flipped: $(cat flipped.log)"
    [ "$(lines replica_mismatch flipped | grep -c '"rank":1,"tensor":".*norm.weight"')" -eq 1 ] || fail "flipped: $(tail -3 flipped/metrics.jsonl)"
    steps=$(lines step flipped | grep -c .)
    [ "$(sed 's/step_0*//' flipped/checkpoints/latest)" -lt "$steps" ] || fail "flipped: a state whose copies differ was saved"
    expect 0 train 3 flipped --set train.steps=$((steps + 5)) --set train.lr=1e-30
fi

expect 1 wait $job_one
grep -q "^gdn: no rank waits for another, but step [0-9]* does not end on rank 0 on $host" one.log || fail "one: $(cat one.log)"

# What the message promises: the same command goes on.
steps=$(sed 's/.*step_0*//' save/checkpoints/latest)
expect 0 train 2 save --set train.steps=$((steps + 2)) --set checkpoint.interval=0
grep -q "going on after step $steps of" save.log || fail "save does not go on from step $steps: $(cat save.log)"
