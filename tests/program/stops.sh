#!/usr/bin/env bash
# Runs that slow_steps.c makes slow: stops in steps that take longer than a second, under mpirun too; requests to stop that come in
# an evaluation; a first start that another one overtakes.
. "$SOURCE/tests/program/small.sh"

slow=(env LD_PRELOAD="$SLOW_STEPS_LIBRARY" SLOW_STEPS=1.2)
export SLOW_LOG=slow.log

waits() { # DIRECTORY COUNT: until rank 0 has begun to wait for so long
    for _ in $(seq 600); do
        [ -e slow.log ] && [ "$(grep -c "^$1/stop" slow.log)" -ge "$2" ] && return
        sleep 0.1
    done
    fail "$1 does not train: $(cat "$1.log")"
}
steps() { lines step "$1" | grep -c . || true; }
saved() { # DIRECTORY: what was done is saved, so that the same command goes on
    [ "$(steps "$1")" -gt 0 ] && [ "$(cat "$1/checkpoints/latest")" = "$(printf 'step_%08d' "$(steps "$1")")" ] || fail "$1 is not saved: $(cat "$1.log")"
    "$GDN" checkpoint verify "$1" > /dev/null || fail "$1: its checkpoint is not whole"
    lines end "$1" | grep -q "\"status\":3,\"reason\":\"stopped by signal $2 after $(steps "$1") of" || fail "$1: $(tail -1 "$1/metrics.jsonl")"
}

# ------------------------------------------------------------------------------- mpirun's Ctrl-C
# mpirun sends CONT, and KILL twice the set seconds later. It comes in the middle of rank 0's second step; what becomes of it is
# looked at in the end.
long=(--set train.steps=1000 --set train.eval_interval=0)
env --default-signal=INT mpirun --mca odls_base_sigkill_timeout 12 --oversubscribe -n 2 "${slow[@]}" "$GDN" train small.yaml \
    --run-dir patient "${long[@]}" > patient.log 2>&1 &
patient=$!

# Left as it is, mpirun kills before a step is done; the run has said so, once.
mpirun --oversubscribe -n 2 "${slow[@]}" "$GDN" train small.yaml --run-dir hasty "${long[@]}" > hasty.log 2>&1 &
hasty=$!

# One process: what srun or nobody has started is not warned of. The second INT ends it within a step.
env --default-signal=INT "${slow[@]}" "$GDN" train small.yaml --run-dir twice "${long[@]}" --set checkpoint.interval=2 > twice.log 2>&1 &
twice=$!

waits patient 2
kill -INT $patient
waits twice 4
kill -INT $twice
for _ in $(seq 100); do ! grep -q '^gdn: INT:' twice.log || break; sleep 0.05; done
kill -INT $twice
expect 130 wait $twice 2> /dev/null
[ ! -e twice/checkpoints/step_00000004 ] && [ -z "$(lines end twice)" ] || fail "twice was not ended at once"
! grep -q 'mpirun' twice.log || fail "twice: $(cat twice.log)"

waits hasty 4
[ "$(grep -c '^gdn: note: a step takes [1-9][0-9.]* s, but .* KILL 1 s after TERM.*mpirun --mca odls_base_sigkill_timeout 60' hasty.log)" -eq 1 ] ||
    fail "hasty is not warned: $(cat hasty.log)"
kill $hasty

# ------------------------------------------------------------------------- a request in an evaluation
# Of text.txt all, in some hundred rounds of a second each: nobody waits for their end. What was given up is no result; the next
# start begins with it, and then the run is the one that nobody stopped: its metrics, its best checkpoint.
evaluate=(--set data.validation=text.txt --set data.validation_fraction=0 --set train.eval_batches=0 --set train.steps=8 --set train.eval_interval=4
    --set checkpoint.interval=4)
interrupted() { # DIRECTORY STEPS SIGNAL PROCESS: ended in the evaluation after so many steps
    expect 3 wait "$4"
    saved "$1" "$3"
    [ "$(steps "$1")" -eq "$2" ] || fail "$1 was not stopped after step $2: $(tail -3 "$1/metrics.jsonl")"
    ! lines eval "$1" | grep -q "\"step\":$2," || fail "$1: a part of an evaluation is recorded"
}
same_run() { # DIRECTORY
    for event in step eval; do
        lines $event straight > straight.$event
        lines $event "$1" | cmp - straight.$event || fail "$1: $event lines are not those of a run that nobody stopped"
    done
    [ "$(cat "$1/checkpoints/best")" = "$(cat straight/checkpoints/best)" ] || fail "$1: another best checkpoint"
    "$GDN" checkpoint ls straight > straight.ls
    "$GDN" checkpoint ls "$1" | cmp - straight.ls || fail "$1: other checkpoints, losses or sizes"
    expect 0 "$GDN" checkpoint diff straight "$1" > diff
}
train 1 straight "${evaluate[@]}"
rm slow.log
"${slow[@]}" "$GDN" train small.yaml --run-dir early "${evaluate[@]}" > early.log 2>&1 &
early=$!
mpirun --oversubscribe -n 2 bash -c 'echo $$ > pid.$OMPI_COMM_WORLD_RANK; exec "$@"' - "${slow[@]}" "$GDN" train small.yaml \
    --run-dir late "${evaluate[@]}" --set train.steps=4 --set mesh.pipeline=2 > late.log 2>&1 &
late=$!
waits early 6 # 4 steps, a round
kill $early
waits late 6
kill -USR1 "$(cat pid.1)" # who looks for the file, and waits, is rank 0
interrupted early 4 TERM $early
interrupted late 4 USR1 $late
expect 0 "$GDN" train small.yaml --run-dir early "${evaluate[@]}" > early.log 2>&1
grep -q "going on after step 4" early.log || fail "early: $(cat early.log)"
same_run early

# The last evaluation of a run: all steps are done, but something is left to do. Without validation data nothing is, which is found once.
cp -r late without
without=("${evaluate[@]}" --set train.steps=4 --set mesh.pipeline=2 --set "data.validation=''" --set train.eval_interval=0)
train 2 without "${without[@]}"
grep -q '^finished after 4 steps$' without.log || fail "without: $(cat without.log)"
train 2 without "${without[@]}"
grep -q 'nothing is left to do' without.log || fail "without: $(cat without.log)"
train 2 late "${evaluate[@]}" --set train.steps=4 --set mesh.pipeline=2
[ "$(lines eval late | grep -c '"step":4,')" -eq 1 ] && lines end late | tail -1 | grep -q '"status":0' || fail "late: $(cat late.log)"
"$GDN" checkpoint ls late | grep -q ' 4 .*[0-9]\.[0-9].*whole, latest, best' || fail "late: $("$GDN" checkpoint ls late)"
train 2 late "${evaluate[@]}" --set train.steps=4 --set mesh.pipeline=2
grep -q 'nothing is left to do' late.log || fail "late: $(cat late.log)"

# ------------------------------------------------------------------------------ two first starts
# Both find nothing to go on from. One is delayed before it makes its directory, until the other has ended: it must not begin
# afresh over its checkpoints.
LD_PRELOAD=$SLOW_STEPS_LIBRARY WAIT_WITH=new WAIT_FOR=go "$GDN" train small.yaml --run-dir new > delayed.log 2>&1 &
delayed=$!
for _ in $(seq 600); do ! grep -q '^new$' slow.log || break; sleep 0.1; done
expect 3 "$GDN" train small.yaml --run-dir new --set train.stop_at=5 > new.log 2>&1
find new -type f ! -name .lock -exec cksum {} + | sort > before
touch go
expect 2 wait $delayed
grep -q '^gdn: .*run directory new: another run has saved a checkpoint of step 5 there .* run the same command again' delayed.log ||
    fail "the run that was overtaken: $(cat delayed.log)"
find new -type f ! -name .lock -exec cksum {} + | sort | cmp - before || fail "the run that was overtaken has changed files"
expect 0 "$GDN" train small.yaml --run-dir new > new.log 2>&1

# ------------------------------------------------------------------------- mpirun's Ctrl-C: the end
# The ranks have ended long ago; mpirun takes its time, twice what it was given.
status=0
wait $patient || status=$?
[ $status -eq 1 ] || fail "mpirun's status after Ctrl-C is $status"
saved patient TERM
[ "$(grep -c '^gdn: note: mpirun ends the job: stopping after this step, checkpoint is being saved; in 24 s' patient.log)" -eq 1 ] ||
    fail "patient does not say what it does: $(cat patient.log)"
! grep -q 'a step takes' patient.log || fail "patient has time enough: $(cat patient.log)"
