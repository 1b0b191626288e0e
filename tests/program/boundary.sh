#!/usr/bin/env bash
# Training with compressed boundaries, from outside: losses fall and stay near the uncompressed ones, bytes are the plan's,
# runs repeat, and go on from a checkpoint, with the same bits, evaluations are exact, and failures end on all ranks.
. "$SOURCE/tests/program/eight_layers.sh"

value() { sed "s/.*\"$1\":\([^,}]*\).*/\1/"; } # KEY, of a metrics line
first() { lines step "$1" | head -1 | value loss; }
last() { lines step "$1" | tail -1 | value loss; }
bytes() { grep '"event":"step"' "$1/metrics.jsonl" | tail -1 | sed 's/.*"communication_bytes":{//' | value pipeline; }
holds() { LC_ALL=C awk "BEGIN { exit !($1) }" || fail "$2: $1"; }

# Blocks of 18 x 16, which factors of rank 8 and 1 stand for. Measured: losses differ by up to 0.0013 and 0.021 of themselves.
half=(--set mesh.compress_boundary=0.5) least=(--set mesh.compress_boundary=0.01)
for mesh in 1.1.2 1.2.2 1.1.4; do
    on $mesh adaptive whole_$mesh
    on $mesh adaptive half_$mesh "${half[@]}"
    on $mesh adaptive least_$mesh "${least[@]}"
    IFS=. read -r data tensor pipeline <<< "$mesh"
    for size in half least; do
        run=${size}_$mesh
        holds "$(last $run) < $(first $run) - 0.3" "the loss does not fall in $run"
        options=("${half[@]}")
        [ $size = half ] || options=("${least[@]}")
        planned=$("$GDN" plan adaptive.yaml --set mesh.data="$data" --set mesh.tensor="$tensor" --set mesh.pipeline="$pipeline" \
            --json "${options[@]}" | sed 's/.*"ranks":\[//; s/,{"rank":1,.*//' | value pipeline)
        holds "$(bytes $run) == $planned" "bytes of $run and of its plan"
    done
    holds "$(bytes least_$mesh) < $(bytes half_$mesh) && $(bytes half_$mesh) < $(bytes whole_$mesh)" "bytes on $mesh"
    holds "($(last half_$mesh) / $(last whole_$mesh) - 1)^2 < 0.01^2" "losses on $mesh"
done

# The same run has the same bits, also in two parts; without feedback it has others.
on 1.1.2 adaptive again "${half[@]}"
equal half_1.1.2 again
mpi=(mpirun --oversubscribe -n 2 "$GDN" train adaptive.yaml --run-dir parts --set mesh.pipeline=2 "${half[@]}")
expect 3 "${mpi[@]}" --set train.stop_at=7 > parts.log 2>&1
expect 0 "${mpi[@]}" > parts.log 2>&1
expect 0 "$GDN" checkpoint diff half_1.1.2 parts > diff
on 1.1.2 adaptive without "${half[@]}" --set mesh.compress_feedback=false
[ "$(last without)" != "$(last half_1.1.2)" ] || fail "feedback changes nothing"

# Evaluations send blocks as they are: the last one's loss is that of a single rank with the whole model, told in 9 digits.
for run in half_1.1.4 least_1.1.4; do
    alone=$("$GDN" eval $run 2> eval.log | sed -n 's/^loss *\([^ ]*\) nats.*/\1/p')
    there=$(lines eval $run | tail -1 | value loss)
    holds "(${alone:-0} / $there - 1)^2 < ($losses + 1e-9)^2" "evaluations of $run"
done

# All ranks end together where training diverges.
expect 5 timeout 400 mpirun --oversubscribe -n 4 "$GDN" train adaptive.yaml --run-dir diverged --set mesh.pipeline=4 "${half[@]}" \
    --set train.lr=1e30 --set train.grad_clip=0 > diverged.log 2>&1
grep -q "gdn: training diverged at step" diverged.log || fail "unexpected: $(cat diverged.log)"

# What cannot be is refused by name, before anything is created; a plan says the same.
expect 2 mpirun --oversubscribe -n 2 "$GDN" train adaptive.yaml --run-dir refused --set mesh.pipeline=2 \
    --set mesh.compress_boundary=0.6 > refused.log 2>&1
expect 2 "$GDN" plan adaptive.yaml --set mesh.pipeline=2 --set mesh.compress_boundary=0.6 > plan.log 2>&1
for log in refused plan; do
    for words in "mesh.compress_boundary: 0.6" "hidden_size 16" "micro_batch_size 2" "sequence_length 9" "at most 0.5"; do
        grep -q "$words" $log.log || fail "no '$words' in: $(cat $log.log)"
    done
done
expect 2 "$GDN" train adaptive.yaml --run-dir refused "${half[@]}" > refused.log 2>&1
grep -q "mesh.pipeline: 1" refused.log || fail "unexpected: $(cat refused.log)"
[ ! -e refused ] || fail "a refused run left a directory"
