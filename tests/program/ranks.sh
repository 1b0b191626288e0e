#!/usr/bin/env bash
# The same training whatever the number of ranks and the micro-batch size, and the same evaluation: ranks.sh [short], of fewer steps.
. "$SOURCE/tests/program/small.sh"

steps=50 stop=23
[ "${1:-}" != short ] || steps=20 stop=13
long=(--set train.steps=$steps)
expect 0 train 1 one "${long[@]}"
expect 0 train 2 two "${long[@]}"
expect 0 train 3 three "${long[@]}"
expect 0 train 4 four "${long[@]}"
expect 0 train 1 micro1 "${long[@]}" --set train.micro_batch_size=1
expect 0 train 1 micro4 "${long[@]}" --set train.micro_batch_size=4
expect 0 train 2 two_micro3 "${long[@]}" --set train.micro_batch_size=3
for threads in 1 2 3; do # on sequences long enough for loops to be shared among threads
    OMP_NUM_THREADS=$threads expect 0 train 1 threads$threads "${long[@]}" --set train.sequence_length=64 2> /dev/null
done
OMP_NUM_THREADS=2000 expect 2 train 1 none "${long[@]}" 2> /dev/null
grep -q "OMP_NUM_THREADS is 2000: at most 1024" none.log && [ ! -e none ] || fail "unexpected: $(cat none.log)"
# Another number of ranks in the middle of a run.
expect 3 train 3 changed "${long[@]}" --set train.stop_at=$stop 2> /dev/null
expect 0 train 2 changed "${long[@]}"

for pair in one:two one:three one:four one:micro1 one:micro4 one:two_micro3 one:changed threads1:threads2 threads1:threads3; do
    a=${pair%:*} b=${pair#*:}
    close_to $losses loss step "$a" "$b"
    close_to $norms grad_norm step "$a" "$b"
    close_to $losses loss eval "$a" "$b"
done
[ "$(lines step four | grep -c .)" -eq $steps ] || fail "not $steps steps"

# One checkpoint, evaluated by any number of ranks: sums of doubles in another order, nothing else.
for ranks in 1 2 3; do
    mpirun --oversubscribe -n $ranks "$GDN" eval one --set train.eval_batches=0 > eval$ranks 2> eval.log || fail "$(cat eval.log)"
    sed -n 's/^loss *\([^ ]*\) nats.*/\1/p' eval$ranks > loss$ranks
done
[ -s loss1 ] && cmp loss1 loss2 && cmp loss1 loss3 || fail "evaluations differ: $(cat loss1 loss2 loss3)"

# All of a mixture is every held-out sequence once, whatever the weights: its loss is the sources' own losses by their numbers of
# sequences, which rounding of float losses a group of sequences at a time leaves to a part in 1e6.
split -n l/3 text.txt part_
evaluate() {
    local ranks=$1 sources=$2
    mpirun --oversubscribe -n "$ranks" "$GDN" eval one --set train.eval_batches=0 --set 'data.train=""' --set "data.sources=[$sources]" > eval 2> eval.log ||
        fail "$(cat eval.log)"
    awk '$1 == "data" { n = $2 } $1 == "loss" { print n, $2 }' eval
}
{
    evaluate 1 "{path: part_aa, weight: 1}"
    evaluate 1 "{path: part_ab, weight: 1}"
    for ranks in 1 3; do evaluate $ranks "{path: part_aa, weight: 1000}, {path: part_ab, weight: 1}"; done
} > evaluated
awk 'NR < 3 { all += $1; sum += $1 * $2; next }
     { d = $2 / (sum / all) - 1; if ($1 != all || d * d > 1e-12) { print "all of a mixture:", $0, "for", all, sum / all; exit 1 } }
     END { if (NR != 4 || !all) exit 1 }' evaluated || fail "$(cat evaluated)"

# What does not fit is refused by name, before anything is created.
expect 2 train 5 five 2> /dev/null
grep -q "^gdn: rank .*train.batch_size 12.*5 data ranks" five.log || fail "unexpected: $(cat five.log)"
expect 2 train 2 five --set train.micro_batch_size=4 2> /dev/null
grep -q "train.micro_batch_size 4" five.log || fail "unexpected: $(cat five.log)"
expect 2 train 2 five --set mesh.data=3 2> /dev/null
grep -q "mesh.data" five.log || fail "unexpected: $(cat five.log)"
expect 2 mpirun --oversubscribe -n 2 bash -c 'exec "$GDN" train small.yaml --run-dir five --set train.lr=0.00$((1 + OMPI_COMM_WORLD_RANK))' \
    > five.log 2>&1
grep -q "^gdn: rank 1 .*than rank 0" five.log && grep -q "train.lr is 0.002, on rank 0 0.001" five.log || fail "unexpected: $(cat five.log)"
[ ! -e five ] || fail "a refused run left a directory"
