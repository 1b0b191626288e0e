#!/usr/bin/env bash
# The same training whatever the number of ranks and the micro-batch size, and the same evaluation.
. "$SOURCE/tests/program/small.sh"

long=(--set train.steps=50)
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
# Another number of ranks in the middle of a run.
expect 3 train 3 changed "${long[@]}" --set train.stop_at=23 2> /dev/null
expect 0 train 2 changed "${long[@]}"

for pair in one:two one:three one:four one:micro1 one:micro4 one:two_micro3 one:changed threads1:threads2 threads1:threads3; do
    a=${pair%:*} b=${pair#*:}
    close_to $losses loss step "$a" "$b"
    close_to $norms grad_norm step "$a" "$b"
    close_to $losses loss eval "$a" "$b"
done
[ "$(lines step four | grep -c .)" -eq 50 ] || fail "not 50 steps"

# One checkpoint, evaluated by any number of ranks: sums of doubles in another order, nothing else.
for ranks in 1 2 3; do
    mpirun --oversubscribe -n $ranks "$GDN" eval one --set train.eval_batches=0 > eval$ranks 2> eval.log || fail "$(cat eval.log)"
    sed -n 's/^loss *\([^ ]*\) nats.*/\1/p' eval$ranks > loss$ranks
done
[ -s loss1 ] && cmp loss1 loss2 && cmp loss1 loss3 || fail "evaluations differ: $(cat loss1 loss2 loss3)"

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
