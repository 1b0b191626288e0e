# Sourced by the scripts of this folder, after program/small.sh's ways to run:
#   superseding EVENT DIRECTORY   a run's lines of an event, the last of each step
#   whole_lines DIRECTORY         fails unless metrics.jsonl has nothing but whole lines
#   same_end DIRECTORY REFERENCE [LINES]  fails unless two finished runs agree bit for bit: tensors, steps, evaluations;
#                                 the first may lack so many of the lines, where it could not write them
#   finish JOB                    waits for an mpirun in the background; its status is the result. Fails where ranks still run
#                                 after two minutes
#   newest DIRECTORY              the step that checkpoints/latest names, nothing where there is none
. "$SOURCE/tests/program/small.sh"
HELPERS=$BUILD/tests/faults

superseding() {
    lines "$1" "$2" | LC_ALL=C awk '
        match($0, /"step":[0-9]+/) { last[substr($0, RSTART + 7, RLENGTH - 7) + 0] = $0 }
        END { for (step in last) print step, last[step] }' | sort -n
}

whole_lines() {
    [ -e "$1/metrics.jsonl" ] || return 0
    [ "$(tail -c 1 "$1/metrics.jsonl" | od -An -c | tr -d ' ')" = '\n' ] || [ ! -s "$1/metrics.jsonl" ] ||
        fail "$1/metrics.jsonl ends in a part of a line: $(tail -n 1 "$1/metrics.jsonl")"
    ! grep -v '^{"event":"[a-z_]*",.*}$' "$1/metrics.jsonl" > torn || fail "in $1/metrics.jsonl: $(head -3 torn)"
    ! grep '}{' "$1/metrics.jsonl" > torn || fail "two lines in one in $1/metrics.jsonl: $(head -3 torn)"
}

same_end() {
    "$GDN" checkpoint diff "$1" "$2" > diff.log 2>&1 || fail "$1 ends otherwise than $2: $(head -4 diff.log)"
    local event
    for event in step eval; do
        superseding $event "$1" > these
        superseding $event "$2" > those
        [ -s those ] || fail "$2 has no $event lines"
        diff these those > difference || true
        [ "$(grep -c '^>' difference)" -le "${3:-0}" ] && ! grep -q '^<' difference || fail "$1 has other $event lines than $2: $(head -4 difference)"
    done
    cmp -s "$1/checkpoints/best" "$2/checkpoints/best" || fail "another step is best in $1: $(cat "$1/checkpoints/best")"
}

# Where a rank was killed, mpirun itself now and then never ends, once in some hundred times: its PMIx 4 server waits for a lock in
# PMIx_server_finalize when all ranks are gone. That is nobody's fault here; such an mpirun is counted and ended.
launchers=0
finish() {
    local began=$SECONDS idle=$SECONDS child children state
    while kill -0 "$1" 2> /dev/null; do
        sleep 0.05
        [ $((SECONDS - began)) -ge 5 ] || continue
        read -r -a children < "/proc/$1/task/$1/children" 2> /dev/null || true
        for child in "${children[@]}"; do
            state=$(sed 's/.*) \(.\).*/\1/' "/proc/$child/stat" 2> /dev/null || true)
            [ "${state:-Z}" = Z ] || idle=$SECONDS
        done
        if [ $((SECONDS - idle)) -ge 20 ]; then
            launchers=$((launchers + 1))
            kill -9 "$1"
        elif [ $((SECONDS - began)) -ge 120 ]; then
            kill -9 "${children[@]}" "$1" 2> /dev/null || true
            fail "a job that should have ended runs on: $(cat "$run.log")"
        fi
    done
    wait "$1"
}

newest() {
    [ ! -e "$1/checkpoints/latest" ] || echo $((10#$(sed 's/^step_//' "$1/checkpoints/latest")))
}
