#!/usr/bin/env bash
# The ways in which a run ends: signals, a second run, unfit data, directories and disks. One message each, from one rank.
. "$SOURCE/tests/program/small.sh"

says() { # LOG PATTERN: exactly one line of failure, and it says this
    [ "$(grep '^gdn: ' "$1" | grep -vc '^gdn: \(note\|INT\): ')" -eq 1 ] || fail "not one message: $(cat "$1")"
    grep -q "$2" "$1" || fail "no '$2' in: $(cat "$1")"
}

long=(--set train.steps=1000000 --set train.eval_interval=0)

started() { # DIRECTORY: waits for the third step
    for _ in $(seq 300); do
        [ -e "$1/metrics.jsonl" ] && [ "$(grep -c '"event":"step"' "$1/metrics.jsonl")" -ge 3 ] && return
        sleep 0.1
    done
    fail "$1 does not train: $(cat "$1.log")"
}

# ------------------------------------------------------------------------------------------- signals
for signal in INT TERM USR1 USR2; do # a shell's background starts with INT ignored
    env --default-signal=INT "$GDN" train small.yaml --run-dir $signal "${long[@]}" > $signal.log 2>&1 &
    started $signal
    for thread in /proc/$!/task/*/status; do # no handler may interrupt a computation (train/health/signals.h)
        ! grep -q '^Name:[[:space:]]signals$' "$thread" || continue # the one that waits for them
        held=$(sed -n 's/^SigBlk:[[:space:]]*/0x/p' "$thread")
        [ $((held & 0x4a02)) -eq $((0x4a02)) ] || fail "INT, TERM, USR1 or USR2 is not held back: $held in $thread"
    done
    kill -$signal $!
    expect 3 wait $!
    says $signal.log "signal $signal"
    steps=$(lines step $signal | grep -c .)
    lines signal $signal | grep -q "\"step\":$steps,\"reason\":\"$signal\"" || fail "no event: $(tail -2 $signal/metrics.jsonl)"
    [ "$(cat $signal/checkpoints/latest)" = "$(printf 'step_%08d' "$steps")" ] || fail "latest is not step $steps"
    "$GDN" checkpoint verify $signal > /dev/null || fail "the checkpoint after $signal is not whole"
done
[ "$(grep -c '^gdn: INT: .*checkpoint is being saved; once more to end at once$' INT.log)" -eq 1 ] || fail "INT: $(cat INT.log)"

# CONT asks for an end where mpirun sends it. Somebody else's, as of a shell that lets a stopped job go on, does not.
OMPI_COMM_WORLD_SIZE=1 "$GDN" train small.yaml --run-dir goes_on "${long[@]}" > goes_on.log 2>&1 &
started goes_on
kill -CONT $!
after=$(($(lines step goes_on | grep -c .) + 20))
for _ in $(seq 300); do
    [ "$(lines step goes_on | grep -c .)" -lt $after ] || break
    sleep 0.1
done
kill -USR1 $!
expect 3 wait $!
says goes_on.log "signal USR1"
! grep -q 'mpirun ends the job' goes_on.log || fail "CONT: $(cat goes_on.log)"

# One rank of two gets the signal; both stop after the same step. Threads that a BLAS might start when it is loaded, before
# signals are held back, must be gone (under mpirun: without it, MPI forks, and OpenBLAS stops them itself for that).
export OPENBLAS_NUM_THREADS=2
mpirun --oversubscribe -n 2 bash -c 'echo $$ > pid.$OMPI_COMM_WORLD_RANK; exec "$@"' - \
    "$GDN" train small.yaml --run-dir one "${long[@]}" > one.log 2>&1 &
started one
kill -USR1 "$(cat pid.1)"
expect 3 wait $!
says one.log "signal USR1"
[ "$(cat one/checkpoints/latest)" = "$(printf 'step_%08d' "$(lines step one | grep -c .)")" ] || fail "latest is not the last step"

# Both get INT, as from a terminal that they share: one says what that has begun.
mpirun --oversubscribe -n 2 bash -c 'echo $$ > pid.$OMPI_COMM_WORLD_RANK; exec "$@"' - \
    "$GDN" train small.yaml --run-dir keys "${long[@]}" > keys.log 2>&1 &
started keys
kill -INT "$(cat pid.0)" "$(cat pid.1)"
expect 3 wait $!
says keys.log "signal INT"
[ "$(grep -c '^gdn: INT: ' keys.log)" -eq 1 ] || fail "INT on two ranks: $(cat keys.log)"
"$GDN" checkpoint verify keys > /dev/null || fail "the checkpoint after INT on two ranks is not whole"

# mpirun hands USR1 on to all ranks.
mpirun --oversubscribe -n 2 "$GDN" train small.yaml --run-dir both "${long[@]}" > both.log 2>&1 &
started both
kill -USR1 $!
expect 3 wait $!
says both.log "signal USR1"

# -------------------------------------------------------------------------------- standard output
# Who watches is no part of training: told once, and the status is that of the training. Results must arrive.
lost() { # DIRECTORY REASON: what one process says of its output
    [ "$(grep -c "^gdn: note: progress cannot be written to standard output any more: $2; training goes on" "$1.err")" -eq 1 ] ||
        fail "$1: $(cat "$1.err")"
    [ "$(lines step "$1" | grep -c .)" -eq 40 ] && lines end "$1" | grep -q '"status":0' || fail "$1 did not train to the end"
    "$GDN" checkpoint verify "$1" > /dev/null || fail "$1: no whole checkpoint"
}
mkfifo pipe
"$GDN" train small.yaml --run-dir piped > pipe 2> piped.err &
head -1 < pipe > first # and leaves; without it, the run waits for a reader
expect 0 wait $!
grep -q '^model' first || fail "not the first line: $(cat first)"
lost piped "Broken pipe"
expect 0 "$GDN" train small.yaml --run-dir nowhere > /dev/full 2> nowhere.err
lost nowhere "No space left on device"
expect 0 "$GDN" train small.yaml --run-dir closed >&- 2> closed.err
lost closed "Bad file descriptor"
expect 0 "$GDN" train small.yaml --run-dir closed >&- 2> closed.err # all is done: one line that does not arrive
grep -q "^gdn: note: progress" closed.err || fail "closed: $(cat closed.err)"
expect 0 "$GDN" train small.yaml --run-dir silent >&- 2>&-
[ "$(lines end silent)" = "$(lines end closed)" ] || fail "without any output: $(lines end silent)"
expect 1 "$GDN" eval closed > /dev/full 2> eval.log
says eval.log "standard output cannot be written"
# More than a pipe holds; as text, it might end early. Whoever started this may ignore PIPE.
env --default-signal=PIPE "$GDN" generate closed --ids --prompt 1 --length 100000 2> generate.log > pipe &
head -c 1 < pipe > first
expect 141 wait $! 2> /dev/null # killed by PIPE
expect 1 "$GDN" plan small.yaml > /dev/full 2> plan.log
says plan.log "standard output cannot be written"

# -------------------------------------------------------------------------- a second run, a late stop
"$GDN" train small.yaml --run-dir busy "${long[@]}" > busy.log 2>&1 &
holder=$!
started busy
expect 2 "$GDN" train small.yaml --run-dir busy > second.log 2>&1
says second.log "in use by process $holder on $(hostname)"
expect 2 mpirun --oversubscribe -n 2 "$GDN" train small.yaml --run-dir busy > second.log 2>&1
says second.log "in use by process $holder"
kill -9 $holder # a killed run's lock goes with it, and its directory is fit to go on in
expect 137 wait $holder 2> /dev/null
expect 0 train 1 busy
expect 0 train 1 late --set train.stop_at=40 # not before the end: nothing to stop

# --------------------------------------------------------------------------------------------- data
# A token outside the vocabulary in step 4's batch, on the second rank's half of it: samples 48 to 59, of 16 tokens each.
"$GDN" data write --format llmc --output tokens.bin text.txt > /dev/null
bad_at=$(((48 + 7) * 16 + 3))
printf '\054\001' | dd of=tokens.bin bs=1 seek=$((1024 + 2 * bad_at)) conv=notrunc status=none # 300, little endian
tokens=(--set data.train=tokens.bin --set data.format=llmc --set data.order=sequential)
for ranks in 1 2; do
    expect 2 train $ranks bad$ranks "${tokens[@]}" 2> /dev/null
    says bad$ranks.log "tokens.bin.*$bad_at.*300\|tokens.bin.*300.*$bad_at"
    [ "$(lines step bad$ranks | grep -c .)" -eq 4 ] || fail "steps before the bad token: $(lines step bad$ranks)"
    [ "$(cat bad$ranks/checkpoints/latest)" = step_00000004 ] || fail "the steps before the bad token are not saved"
done
# In the first batch: nothing is created.
expect 2 train 2 early "${tokens[@]}" --set train.batch_size=60 2> /dev/null
says early.log "300"
[ ! -e early ] || fail "a refused run left a directory"
expect 2 train 2 early --set data.train=missing.txt 2> /dev/null
says early.log "missing.txt"
[ ! -e early ] || fail "a refused run left a directory"

# ------------------------------------------------------------------------------ divergence
expect 5 train 2 wild --set train.lr=1e30 --set train.warmup_steps=0 --set train.grad_clip=0 2> /dev/null
says wild.log "diverged at step"
lines diverged wild | grep -q '"loss":\|"grad_norm":' || fail "no event: $(cat wild/metrics.jsonl)"
[ ! -e wild/checkpoints/latest ] || fail "a diverged state was saved"

# -------------------------------------------------------------------------- directories and disks
touch file
expect 2 mpirun --oversubscribe -n 2 "$GDN" train small.yaml --run-dir file/run 2> file.log > /dev/null
says file.log "file/run"
mkdir -p taken/metrics.jsonl
expect 2 train 2 taken 2> /dev/null
says taken.log "taken/metrics.jsonl: cannot open"
if [ "$(id -u)" -ne 0 ]; then # root may write anywhere
    mkdir locked && chmod 555 locked
    expect 2 mpirun --oversubscribe -n 2 "$GDN" train small.yaml --run-dir locked/run 2> locked.log > /dev/null
    says locked.log "locked/run"
fi

# Metrics cannot be written, on rank 0 alone, but a checkpoint can.
mkdir full && ln -s /dev/full full/metrics.jsonl
expect 1 train 2 full 2> /dev/null
says full.log "full/metrics.jsonl: cannot write: No space left"
grep -q "which are saved" full.log || fail "unexpected: $(cat full.log)"
"$GDN" checkpoint verify full > /dev/null || fail "the checkpoint on the way out is not whole"

# A disk of 4 MiB that fills up during the run: no checkpoint can be saved, the one before is whole, nothing is left half.
on_small_disk() {
    mkdir -p disk
    mount -t tmpfs -o size=4m tmpfs disk
    status=0
    mpirun --oversubscribe -n 2 "$GDN" train small.yaml --run-dir disk/run --set checkpoint.interval=4 > disk.log 2>&1 || status=$?
    echo $status > disk.status
    find disk/run > disk.files
    tail -1 disk/run/metrics.jsonl > disk.last
    "$GDN" checkpoint verify disk/run > disk.verify 2>&1 || true
    umount disk
}
if unshare --mount true 2> /dev/null; then isolate="unshare --mount"; else isolate="unshare --map-root-user --mount"; fi
export -f on_small_disk
if $isolate true 2> /dev/null; then
    $isolate bash -euc on_small_disk
    [ "$(cat disk.status)" -eq 4 ] || fail "status $(cat disk.status) on a full disk: $(cat disk.log)"
    says disk.log "No space left"
    grep -q '"}\|}$' disk.last || fail "metrics end in a part of a line: $(cat disk.last)"
    grep -q "step_0" disk.files || fail "the disk was too small for even one checkpoint: $(cat disk.files)"
    ! grep -q "tmp\|new" disk.files || fail "half a checkpoint was left: $(cat disk.files)"
    grep -q "whole\|ok" disk.verify || fail "the checkpoint before is not whole: $(cat disk.verify)"
else
    echo "not tested: a full disk (mounting needs root or user namespaces)"
fi
