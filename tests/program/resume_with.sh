#!/usr/bin/env bash
# Another batch size and sequence length from a checkpoint on, by --resume-with: told once, recorded, and from then on the
# run goes on to the same bits however often it is stopped and started, with the option or without. resume_with.sh [short]: with fewer
# stops, and without what is refused.
. "$SOURCE/tests/program/small.sh"
all=1
[ "${1:-}" != short ] || all=

with=(--resume-with train.batch_size=24 --resume-with train.sequence_length=28)
expect 3 train 1 base --set train.stop_at=13 2> /dev/null
like_base() { cp -r base "$1"; }
says() { grep -qE -e "$2" "$1.log" || fail "no '$2' in: $(cat "$1.log")"; }
silent() { ! grep -q "gdn: note: .*\(from step\|stays\)" "$1.log" || fail "notes in: $(cat "$1.log")"; }

# ------------------------------------------------------------------------------------------ exact afterwards
like_base straight
expect 0 train 1 straight "${with[@]}"
says straight 'from step 13 on train.batch_size is 24, before it was 12$'
says straight 'from step 13 on train.sequence_length is 28, before it was 16$'
grep -q 'batch_size: 24$' straight/config.yaml || fail "config.yaml does not say what is in force"
lines resume straight | grep -q '"batch_size":24,"sequence_length":28,' || fail "the event: $(lines resume straight)"

like_base broken # a command that is repeated, then the plain one, and one whose configuration has followed
expect 3 train 1 broken "${with[@]}" --set train.stop_at=13 2> /dev/null # before a step: saved all the same
expect 3 train 1 broken --set train.stop_at=17 2> /dev/null
says broken 'train.batch_size stays 24, as --resume-with has set it; the configuration says 12$'
if [ -n "$all" ]; then
    expect 3 train 1 broken "${with[@]}" --set train.stop_at=20 2> /dev/null
    silent broken
    expect 3 train 1 broken --set train.stop_at=27 2> /dev/null
    says broken 'train.sequence_length stays 28'
    expect 3 train 1 broken --set train.batch_size=24 --set train.sequence_length=28 --set train.stop_at=30 2> /dev/null
    silent broken
fi
expect 0 train 1 broken
for event in step eval; do
    lines $event straight > first && lines $event broken | cmp - first || fail "$event lines differ after stops"
done
[ "$(grep -c '"step"' first)" -eq 4 ] || fail "$(grep -c . first) evaluations"
expect 0 "$GDN" checkpoint diff straight broken > diff

# Consumed: 13 steps of 12 x 16 tokens, 27 of 24 x 28. The position: the first of 28 tokens behind 2496, and 27 x 24 more.
lines step straight | awk -F'"tokens":' '{ split($2, n, /[,}]/); if (n[1] != (NR <= 13 ? NR * 192 : 2496 + (NR - 13) * 672)) exit 1 }' ||
    fail "tokens: $(lines step straight | tail -28)"
"$GDN" checkpoint ls straight | awk '$1 == 40 { exit $2 == 90 + 27 * 24 ? 0 : 1 } END { if (!NR) exit 1 }' || fail "position: $("$GDN" checkpoint ls straight)"

# On other ranks, from there on and from the change on.
like_base other
expect 3 train 2 other "${with[@]}" --set train.stop_at=20 2> /dev/null
[ -n "$all" ] || exit 0
expect 0 mpirun --oversubscribe -n 4 "$GDN" train small.yaml --run-dir other --set mesh.pipeline=2 --set train.micro_batch_size=4 > other.log 2>&1
close_to $losses loss step straight other
close_to $norms grad_norm step straight other

# ------------------------------------------------------------------------------------------ what is refused
refused_start() { # WORDS OPTION …: and nothing has changed
    before=$(cksum base/config.yaml base/metrics.jsonl)
    refused "$1" mpirun --oversubscribe -n 2 "$GDN" train small.yaml --run-dir base "${@:2}"
    [ "$before" = "$(cksum base/config.yaml base/metrics.jsonl)" ] || fail "a refused start has written"
}
refused_start 'train.batch_size is 24, in the checkpoint 12 (to change it: --resume-with train.batch_size=24)' --set train.batch_size=24
refused_start 'train.lr=1: one of these is expected: train.batch_size=' --resume-with train.lr=1
refused_start 'train.batch_size: one of these is expected' --resume-with train.batch_size
refused_start '--resume-with train.batch_size=x' --resume-with train.batch_size=x
refused_start 'train.batch_size 9 cannot be divided among 2' --resume-with train.batch_size=9
refused_start 'train.seed is 9' "${with[@]}" --set train.seed=9
expect 2 train 1 fresh "${with[@]}" 2> /dev/null
says fresh 'no checkpoint to go on from'
expect 2 "$GDN" check small.yaml --run-dir fresh "${with[@]}" > fresh.log 2>&1
says fresh 'no checkpoint to go on from'
[ ! -e fresh ] || fail "a refused run left a directory"
expect 2 train 1 broken --set train.batch_size=6 2> /dev/null # neither what is in force nor what was
says broken 'train.batch_size is 6, in the checkpoint 24'

# `gdn check` looks at the run that would go on: with what is in force there.
expect 0 "$GDN" check small.yaml --run-dir broken > check.log 2>&1
says check 'train.batch_size stays 24'

# ------------------------------------------------------------------------------------------ the best so far
# A loss that was measured otherwise has no order with later ones: the best begins anew. So it does with other validation data, here without
# a learning rate, so that the weights remain, on text that the model cannot know.
tr 'a-z' 'n-za-m' < text.txt > strange.txt
other=(--set data.validation_fraction=0 --set train.eval_interval=3 --set train.eval_batches=0)
expect 3 train 1 best "${other[@]}" --set data.validation=text.txt --set train.stop_at=6 2> /dev/null
loss_of() { "$GDN" checkpoint ls best --json | tail -n 1 | tr '{' '\n' | sed -nE "/\"step\": ?$1,/s/.*\"loss\": ?([^,}]*).*/\1/p"; }
loss=$(loss_of 6)
[[ $loss =~ ^[0-9.]+$ ]] || fail "no loss in $("$GDN" checkpoint ls best --json)"
expect 3 train 1 best "${other[@]}" --set data.validation=text.txt --resume-with train.batch_size=24 --set train.stop_at=6 2> /dev/null
[ "$(loss_of 6)" = "$loss" ] || fail "saved again without a step, the loss is $(loss_of 6) instead of $loss"
expect 3 train 1 best "${other[@]}" --set data.validation=strange.txt --set train.lr=0 --set train.stop_at=9 2> /dev/null
[ "$(cat best/checkpoints/best)" = step_00000009 ] || fail "best is $(cat best/checkpoints/best), of other validation data: $(lines eval best)"
awk -v a="$loss" -v b="$(loss_of 9)" 'BEGIN { exit b > a ? 0 : 1 }' || fail "the strange text is not the harder one: $(lines eval best)"
