#!/usr/bin/env bash
# Training whose activations travel in bf16 (mesh.wire), from outside: bytes are the plan's, losses are near those of one rank,
# runs repeat and go on with the same bits, and where nothing crosses nothing changes.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps
bf16=(--set mesh.wire=bf16)

value() { sed "s/.*\"$1\":\([^,}]*\).*/\1/"; } # KEY, of a metrics line
holds() { LC_ALL=C awk "BEGIN { exit !($1) }" || fail "$2: $1"; }

# Relative differences. Of a loss near log V, in a step a hundredth of what one rounding to bf16 may do to a value, 2^-8, and
# over 12 steps that follow from each other ten times that: measured 6e-5. Of the first step's gradient two roundings, as in
# tests/train/step/test_wire_run.c; later ones stand on their way to other minima (their norms differ by 8 % by the tenth step).
losses=4e-4
near() { # RUN RUN
    close_to $losses loss step "$1" "$2"
    close_to $losses loss eval "$1" "$2"
    holds "($(lines step "$1" | head -1 | value grad_norm) / $(lines step "$2" | head -1 | value grad_norm) - 1)^2 < (2 / 256)^2" \
        "the first gradient of $2"
}

on 1.1.1 mean one
on 2.1.1 mean data
on 2.1.1 mean data_bf16 "${bf16[@]}"
equal data data_bf16 # sums of gradients are none of it
grep -q "^note  *mesh.wire: bf16 of no effect" data_bf16.log || fail "no note: $(cat data_bf16.log)"

for mesh in 1.1.2 1.2.1 2.2.2; do
    on $mesh mean $mesh "${bf16[@]}"
    near one $mesh
    memory_as_planned $mesh
    IFS=. read -r data tensor pipeline <<< "$mesh"
    for axis in data tensor pipeline; do
        sent=$(grep '"event":"step"' $mesh/metrics.jsonl | tail -1 | sed 's/.*"communication_bytes":{//' | value $axis)
        planned=$("$GDN" plan mean.yaml --set mesh.data="$data" --set mesh.tensor="$tensor" --set mesh.pipeline="$pipeline" --json \
            "${bf16[@]}" | sed 's/.*"ranks":\[//; s/,{"rank":1,.*//; s/.*"communication_bytes":{//' | value $axis)
        [ "$sent" = "$planned" ] || fail "$mesh, $axis: $sent bytes sent, $planned planned"
    done
done
! cmp -s <(lines step one) <(lines step 1.1.2) || fail "nothing was rounded"

# In two parts, computed again, and each stage's messages with the same bits.
mpi=(mpirun --oversubscribe -n 8 "$GDN" train mean.yaml --set mesh.data=2 --set mesh.tensor=2 --set mesh.pipeline=2)
expect 3 "${mpi[@]}" --run-dir parts "${bf16[@]}" --set train.stop_at=5 > parts.log 2>&1
expect 0 "${mpi[@]}" --run-dir parts "${bf16[@]}" --set train.recompute=full > parts.log 2>&1
equal 2.2.2 parts

# It may change at a resume.
expect 3 "${mpi[@]}" --run-dir changed --set train.stop_at=5 > changed.log 2>&1
expect 0 "${mpi[@]}" --run-dir changed "${bf16[@]}" > changed.log 2>&1
near one changed
# A run's own evaluations travel as its steps do; where ranks hold whole models nothing does.
expect 0 "$GDN" eval 1.2.1 --json > eval.json 2> eval.log
alone=$(value loss < eval.json) there=$(lines eval 1.2.1 | tail -1 | value loss)
holds "$there != $alone && ($there / $alone - 1)^2 < $losses^2" "evaluations of 1.2.1"
expect 0 "$GDN" generate 1.2.1 --prompt "a" --length 8 > text 2> generate.log

refused_run "mesh.wire is 'fp8': stored, fp32 or bf16 is expected" 2 mean.yaml --set mesh.pipeline=2 --set mesh.wire=fp8
refused "mesh.wire is 'half'" "$GDN" plan mean.yaml --set mesh.wire=half
