#!/usr/bin/env bash
# Memory of a training run as planned, as reserved and as the system saw it at its greatest, with each recomputation, in fp32 and in bf16:
#
#   train/benchmark/memory.sh [CONFIG]      (default: configs/bench-middle.yaml; needs 4 GB of memory and of disk for that)
#
# Each is a run of STEPS steps (default 2) of made-up text, plain and with distances 1 to 4. bf16 stands for train.precision, train.activations and train.residual.
# Prints a Markdown table in MB. What the peak has beyond what is planned: the program, its libraries with what they keep for products, and MPI, which
# a run of a model of next to nothing has, too (the last line). GDN names the program (default build/gdn).
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gdn=${GDN:-$source/build/gdn} config=$(realpath "${1:-$source/configs/bench-middle.yaml}")
export LC_ALL=C
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
seq 200000 > text.txt

figures() { # OPTION…: MB planned, reserved and at the peak
    rm -rf run
    "$gdn" train "$config" --run-dir run --set data.train=text.txt --set train.steps="${STEPS:-2}" "$@" > log 2>&1 || { cat log >&2; exit 1; }
    grep '"event":"memory"' run/metrics.jsonl | tail -1 | awk '
        function megabytes(key) { match($0, "\"" key "\":[0-9]*"); return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) / 1e6 }
        { printf "%.1f | %.1f | %.1f", megabytes("planned_sum"), megabytes("reserved_sum"), megabytes("peak_resident") }'
}

echo "| distances | recompute | planned fp32 | reserved | peak | planned bf16 | reserved | peak |"
echo "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
for distances in "[]" "[1, 2, 3, 4]"; do
    for recompute in none selective full; do
        set -- --set "model.delta.distances=$distances" --set model.delta.stage_steps=0 --set train.recompute=$recompute
        echo "| $distances | $recompute | $(figures "$@") | $(figures "$@" --set train.precision=bf16 --set train.activations=bf16 --set train.residual=bf16) |"
    done
done
set -- --set model.delta.distances=[] --set model.num_layers=1 --set model.hidden_size=8 --set model.num_heads=1 --set model.intermediate_size=8 --set train.sequence_length=8
echo "next to nothing: $(figures "$@"), in bf16 $(figures "$@" --set train.precision=bf16)"
