#!/usr/bin/env bash
# A run that was stopped twice is the run that was not stopped, to the last bit: metrics, weights and optimiser state, on
# one rank and on two.
. "$SOURCE/tests/program/small.sh"

for ranks in 1 2; do
    expect 0 train $ranks "straight$ranks"
    expect 3 train $ranks "broken$ranks" --set train.stop_at=13 2> /dev/null
    expect 3 train $ranks "broken$ranks" --set train.stop_at=27 2> /dev/null
    expect 0 train $ranks "broken$ranks"

    for event in step eval; do
        lines $event "straight$ranks" > "straight.$event"
        lines $event "broken$ranks" > "broken.$event"
        cmp "straight.$event" "broken.$event" || fail "$ranks ranks: $event lines differ after stops"
    done
    [ "$(grep -c . straight.step)" -eq 40 ] || fail "$(grep -c . straight.step) step lines, not 40"
    [ "$(grep -c . straight.eval)" -eq 4 ] || fail "$(grep -c . straight.eval) eval lines, not 4"
    [ "$(lines resume "broken$ranks" | grep -c '"step":\(13\|27\),')" -eq 2 ] || fail "resume events are missing"
    [ "$(lines stop "broken$ranks" | grep -c .)" -eq 2 ] || fail "stop events are missing"
    expect 0 "$GDN" checkpoint diff "straight$ranks" "broken$ranks" > diff
done

# The model must have learned, else all of this could be the sameness of nothing.
LC_ALL=C awk -F'"loss":' '{ split($2, part, ","); loss[NR] = part[1] } END { exit !(loss[40] < 0.8 * loss[1]) }' straight.step ||
    fail "the loss did not fall: $(head -1 straight.step) … $(tail -1 straight.step)"

# Done is done.
before=$(cksum < straight1/metrics.jsonl)
expect 0 train 1 straight1
grep -q "nothing is left to do" straight1.log || fail "no word that the run is complete: $(cat straight1.log)"
[ "$before" = "$(cksum < straight1/metrics.jsonl)" ] || fail "a complete run wrote metrics"

# --resume: none refuses what is there, a path goes on elsewhere, another model is refused.
expect 2 train 1 straight1 --resume none 2> /dev/null
grep -q "has checkpoints already" straight1.log || fail "unexpected: $(cat straight1.log)"
expect 0 train 1 elsewhere --resume broken1/checkpoints/step_00000027
lines step straight1 | tail -13 > straight.step
lines step elsewhere | cmp - straight.step || fail "--resume PATH did not go on from step 27"
# Of a run that has finished: its checkpoint is the directory's, too; once it is, nothing is left to do.
expect 0 train 2 finished --resume straight1
expect 0 "$GDN" checkpoint diff straight1 finished > diff
grep -q '"status":0' finished/metrics.jsonl || fail "no end: $(cat finished/metrics.jsonl)"
before=$(cksum < finished/metrics.jsonl)
for path in finished/checkpoints/latest "$PWD/finished/checkpoints/step_00000040"; do
    expect 0 train 1 finished --resume "$path"
    grep -q "nothing is left to do" finished.log || fail "no word that the run is complete: $(cat finished.log)"
    [ "$before" = "$(cksum < finished/metrics.jsonl)" ] || fail "a complete run wrote metrics"
done
expect 0 train 1 finished --set train.steps=44 && [ "$(lines step finished | grep -c .)" -eq 4 ] || fail "it does not go on"
expect 2 train 2 broken2 --set train.steps=80 --set train.seed=9 --set train.batch_size=24 2> /dev/null
grep -q "train.seed" broken2.log && grep -q "train.batch_size" broken2.log || fail "unexpected: $(cat broken2.log)"

# A line that a dying run left unfinished is cut; what is whole is never rewritten.
expect 3 train 1 cut --set train.stop_at=5 2> /dev/null
grep -q "at train.stop_at after 5 of 40 steps; run it without train.stop_at, or with more, to go on" cut.log ||
    fail "stop_at says that the same command goes on: $(tail -1 cut.log)"
cp cut/metrics.jsonl before
printf '{"event":"step","st' >> cut/metrics.jsonl
expect 3 train 1 cut --set train.stop_at=7 2> /dev/null
cmp -n "$(stat -c %s before)" before cut/metrics.jsonl || fail "lines of the first part were changed"
[ "$(lines step cut | grep -c '}$')" -eq 7 ] || fail "metrics are not seven whole steps: $(cat cut/metrics.jsonl)"

# Data that changed between two starts are refused, unless they are asked for; data that moved are the same.
halves=(--set "data.sources=[{path: half_aa, weight: 1}, {path: half_ab, weight: 3}]" --set 'data.train=""')
split -n l/2 text.txt half_
begin() { # DIRECTORY [OPTION ...]: 5 steps on the halves
    local directory=$1
    shift
    expect 3 train 2 "$directory" --set train.stop_at=5 "${halves[@]}" "$@" 2> /dev/null
}
changed() { # WORDS: the run `halves` is refused, and says why
    local before
    before=$(cksum < halves/metrics.jsonl)
    expect 2 train 2 halves "${halves[@]}" 2> /dev/null
    grep -q "^gdn: .*not those of the checkpoint: $1" halves.log && grep -q -e "--data-changed accept" halves.log ||
        fail "no '$1' in: $(cat halves.log)"
    [ "$before" = "$(cksum < halves/metrics.jsonl)" ] || fail "a refused run wrote metrics"
}
begin halves
cp half_ab kept
tokens=$(stat -c %s kept)
cat kept >> half_ab
changed "half_ab has $((2 * tokens)) tokens, and had $tokens when"
tr a b < kept > half_ab
changed "half_ab has $tokens tokens, and had others when"
cp half_aa half_ab
cp kept half_aa
changed "half_aa has $tokens tokens, and had [0-9]* when"
expect 2 train 1 halves --data-changed=perhaps 2> /dev/null
grep -q "data-changed 'perhaps': refuse or accept is expected" halves.log || fail "unexpected: $(cat halves.log)"
expect 3 train 2 halves "${halves[@]}" --set train.stop_at=7 --data-changed accept 2> /dev/null
grep -q "^gdn: note: .*half_aa has" halves.log || fail "no note: $(cat halves.log)"
lines resume halves | grep -q '"data_changed":true' || fail "no data_changed: $(lines resume halves)"
expect 0 train 1 halves "${halves[@]}" # what was accepted is what the run has from then on
lines resume halves | tail -1 | grep -q '"data_changed":false' || fail "data_changed: $(lines resume halves)"
mkdir elsewhere_data && cp half_aa elsewhere_data/one && cp half_ab elsewhere_data/two
expect 0 train 1 halves "${halves[@]/half_ab/elsewhere_data\/two}" --set train.steps=42 # data.sources has half_aa still
