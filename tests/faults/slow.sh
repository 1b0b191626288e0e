#!/usr/bin/env bash
# A disk on which every sync takes a second, so that a checkpoint in the background takes several: whatever ends the run waits for it
# without the watchdog's taking that for a hanging step, and a checkpoint that waits for another one has time of its own.
. "$SOURCE/tests/faults/faults.sh"
options=(--set train.steps=30 --set checkpoint.interval=1 --set train.batch_size=8 --set train.eval_interval=0)
slowly() { # STATUS DIRECTORY OPTION …
    local status=$1 run=$2
    shift 2
    LD_PRELOAD="$HELPERS/libfailing_calls.so" GDN_FAIL_PATH="$PWD/$run" GDN_FAIL_CALL=fsync GDN_FAIL_AT=1 GDN_FAIL_FROM=1 GDN_FAIL_ERROR=slow \
        expect "$status" "$GDN" train small.yaml --run-dir "$run" "${options[@]}" "$@" > "$run.log" 2>&1
}

# Diverges while the first checkpoint is written, which takes longer than a step may.
slowly 5 wild --set train.lr=1e30 --set train.warmup_steps=0 --set train.grad_clip=0 --set watchdog.step=2
grep -q "diverged at step" wild.log || fail "no word of why: $(cat wild.log)"
"$GDN" checkpoint verify wild > /dev/null || fail "the checkpoint that was under way is not whole"
took=$(grep '"event":"checkpoint"' wild/metrics.jsonl | sed -n '1s/.*"seconds":\([0-9.]*\).*/\1/p')
LC_ALL=C awk -v took="$took" 'BEGIN { exit !(took > 2.5) }' || fail "the checkpoint was not slow: $took s"

# Is asked to stop while one is written: another follows, of the step after it. Each takes less than its limit, both take more.
limit=$(LC_ALL=C awk -v took="$took" 'BEGIN { print 1.4 * took }')
slowly 3 stopped --set checkpoint.interval=2 --set train.stop_at=3 --set "watchdog.checkpoint=$limit" --set watchdog.step=2
[ "$(newest stopped)" = 3 ] || fail "the last checkpoint is of step $(newest stopped), not 3: $(cat stopped.log)"
