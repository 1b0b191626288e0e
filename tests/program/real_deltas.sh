#!/usr/bin/env bash
# The randomised factors of differences of a model in training are within 1.02 of the least error at their rank.
. "$SOURCE/tests/program/small.sh"
train 1 whole --set model.hidden_size=64 --set model.intermediate_size=96 --set train.sequence_length=64 --set train.batch_size=4 \
    --set delta_store.interval=20 --set delta_store.ratio=1
expect 0 "$BUILD/tests/train/bench_deltas" whole 1.02 > table
[ "$(wc -l < table)" -ge 18 ] || fail "too few lines: $(cat table)"
expect 1 "$BUILD/tests/train/bench_deltas" whole 0.99 > table 2> words
grep -q "times the least" words || fail "unexpected: $(cat words)"
