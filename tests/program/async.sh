#!/usr/bin/env bash
# Checkpoints written while training goes on: those of every step, and the run's metrics, are to the last bit what they are
# where training waits; on one rank and on two, in one file and in one a node, with tokens read through the HDF5 library and
# differences made with it at the same time. Runs go on from them. A disk that fails for a while costs checkpoints and not
# the run; one that goes on failing ends it with status 4.
. "$SOURCE/tests/program/small.sh"

# In chunks, which the library reads: in one piece the file would be mapped.
"$GDN" data write --format hdf5 --output whole.h5 text.txt > /dev/null
h5repack -l CHUNK=500 whole.h5 tokens.h5 || fail "h5repack cannot make a chunked file"
settings=(--set checkpoint.interval=2 --set checkpoint.keep=0 --set train.steps=12 --set train.eval_interval=4
    --set data.train=tokens.h5 --set data.format=hdf5 --set delta_store.interval=1 --set delta_store.ratio=0.2)

checkpoint() { printf '%s/checkpoints/step_%08d/checkpoint.h5' "$1" "$2"; }

for ranks in 1 2; do
    files=$([ $ranks -eq 2 ] && echo node || echo one)
    for way in true false; do
        expect 0 train $ranks "run$ranks.$way" "${settings[@]}" --set checkpoint.asynchronous=$way --set checkpoint.files=$files
    done
    for event in step eval; do
        lines $event "run$ranks.true" > true.$event
        lines $event "run$ranks.false" > false.$event
        cmp true.$event false.$event || fail "$ranks ranks: $event lines differ"
    done
    diff -r "run$ranks.true/deltas" "run$ranks.false/deltas" > diff || fail "$ranks ranks: stored differences differ: $(cat diff)"
    [ "$(find "run$ranks.true/deltas" -name 'layer_*.h5' | wc -l)" -eq 24 ] || fail "stored: $(find "run$ranks.true/deltas")"
    [ "$(grep -c . true.step)" -eq 12 ] || fail "not 12 steps: $(cat true.step)"
    for step in 2 4 6 8 10 12; do
        expect 0 "$GDN" checkpoint diff "$(checkpoint "run$ranks.true" $step)" "$(checkpoint "run$ranks.false" $step)" > diff
        expect 0 "$GDN" checkpoint verify "$(checkpoint "run$ranks.true" $step)" > diff
    done
    [ "$(lines checkpoint "run$ranks.true" | grep -c '"asynchronous":true')" -eq 5 ] || fail "not 5 in the background"
    [ "$(lines checkpoint "run$ranks.true" | grep -c '"asynchronous":false')" -eq 1 ] || fail "not 1 in the foreground"
    [ "$(lines checkpoint "run$ranks.false" | grep -c '"asynchronous":false')" -eq 6 ] || fail "not 6 in the foreground"
    ! grep -q checkpoint_failed "run$ranks.true/metrics.jsonl" || fail "a checkpoint failed"

    # One of the background's is where a run goes on from.
    expect 0 train $ranks "again$ranks" "${settings[@]}" --resume "$(checkpoint "run$ranks.true" 6)"
    lines step "again$ranks" > again
    tail -6 true.step | cmp - again || fail "$ranks ranks: the run from a checkpoint of the background differs"
done

# keep and keep_every; minutes so few that every step is due.
expect 0 train 2 kept --set train.steps=9 --set checkpoint.interval_minutes=0.00001 --set checkpoint.keep=2 \
    --set checkpoint.keep_every=3
kept=$(cd kept/checkpoints && echo step_*)
for step in 3 6 8 9; do [[ $kept == *step_0000000$step* ]] || fail "step $step is not kept: $kept"; done
for step in 1 2 4 5 7; do [[ $kept != *step_0000000$step* ]] || fail "step $step is kept: $kept"; done

# A link to nowhere in the folder's place stands for a full disk. It goes once a failure is recorded.
mkdir failing
ln -s nowhere failing/checkpoints
expect 4 train 2 failing --set train.steps=12 --set checkpoint.interval=2 2> /dev/null
[ "$(lines checkpoint_failed failing | grep -c '"step":[246],.*cannot be .*"asynchronous":true')" -eq 3 ] ||
    fail "not 3 failures: $(lines checkpoint_failed failing)"
grep -q "3 checkpoints in a row could not be saved; the last, after 6 steps: .*checkpoints" failing.log ||
    fail "$(cat failing.log)"
grep -q "warning: the checkpoint after 2 steps could not be saved" failing.log || fail "no warning: $(cat failing.log)"

mkdir passing
ln -s nowhere passing/checkpoints
{ until grep -qs checkpoint_failed passing/metrics.jsonl; do sleep 0.05; done; rm -f passing/checkpoints; } &
expect 0 train 2 passing --set train.steps=600 --set train.eval_interval=0 --set checkpoint.interval=150 --set checkpoint.keep=1
wait
grep -q checkpoint_failed passing/metrics.jsonl || fail "no checkpoint failed"
expect 0 "$GDN" checkpoint verify passing > verified

# In the foreground one failure is the end, as it always was.
mkdir waiting
ln -s nowhere waiting/checkpoints
expect 4 train 1 waiting --set train.steps=4 --set checkpoint.interval=2 --set checkpoint.asynchronous=false 2> /dev/null
[ "$(lines step waiting | grep -c .)" -eq 2 ] || fail "it went on after a failure: $(lines step waiting)"
