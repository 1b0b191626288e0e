#!/usr/bin/env bash
# Step time and exposed communication of one model on every mesh of up to RANKS ranks on this machine:
#
#   train/benchmark/meshes.sh [RANKS] [-- MPIRUN OPTION …]      (RANKS: 16; GDN names the program, default build/gdn)
#
# One thread a rank. Prints a Markdown table: the median step, tokens per second beside those of one rank, the part of
# the step that rank 0 spent in calls of each axis (which is exposed: nothing is computed meanwhile), and the bytes it
# handed over. More ranks than cores share them: their numbers tell what the program costs, not how it scales.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gdn=${GDN:-$source/build/gdn}
most=${1:-16}
shift $(($# > 0 ? 1 : 0))
[ "${1:-}" != -- ] || shift
export OMP_NUM_THREADS=1 OMPI_MCA_mpi_yield_when_idle=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

seq 200000 > "$work/text"
cat > "$work/mesh.yaml" <<YAML
model: {vocab_size: 257, hidden_size: 256, num_layers: 8, num_heads: 8, intermediate_size: 704, delta: {hidden: 64, gate_hidden: 16}}
train: {batch_size: 32, micro_batch_size: 2, sequence_length: 128, steps: 12}
data: {train: $work/text}
YAML

# The median over all steps but the first two of a number in the metrics' step lines: "KEY" or "OBJECT KEY".
median() { # RUN KEY [KEY IN IT]
    sed -n 's/.*"event":"step"/&/p' "$1/metrics.jsonl" | tail -n +3 |
        sed -n "s/.*\"$2\":${3:+{[^\}]*\"$3\":}\([^,}]*\).*/\1/p" | LC_ALL=C sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'
}

echo "| mesh (data.tensor.pipeline) | ranks | step, ms | tokens/s | of one rank | in data / tensor / pipeline calls | MB a step: data / tensor / pipeline |"
echo "| --- | ---: | ---: | ---: | ---: | --- | --- |"
one=
measure() { # NAME DATA TENSOR PIPELINE [OPTION …]
    local name=$1 ranks=$(($2 * $3 * $4)) mesh=(--set mesh.data="$2" --set mesh.tensor="$3" --set mesh.pipeline="$4")
    shift 4
    [ $ranks -le "$most" ] || return 0
    rm -rf "$work/run"
    # shellcheck disable=SC2086
    mpirun --oversubscribe --bind-to none -n $ranks "$gdn" train "$work/mesh.yaml" --run-dir "$work/run" "${mesh[@]}" "$@" > "$work/log" 2>&1 ||
        { cat "$work/log" >&2; exit 1; }
    local seconds data tensor pipeline
    seconds=$(median "$work/run" step_seconds)
    one=${one:-$seconds}
    for axis in data tensor pipeline; do
        read -r "$axis" <<< "$(median "$work/run" communication_seconds $axis) $(median "$work/run" communication_bytes $axis)"
    done
    LC_ALL=C awk -v name="$name" -v ranks=$ranks -v s="$seconds" -v one="$one" -v d="$data" -v t="$tensor" -v p="$pipeline" 'BEGIN {
        split(d, D, " "); split(t, T, " "); split(p, P, " ")
        printf "| %s | %d | %.1f | %.0f | %.2f | %.0f%% / %.0f%% / %.0f%% | %.2f / %.2f / %.2f |\n", name, ranks, 1000 * s,
            32 * 128 / s, one / s, 100 * D[1] / s, 100 * T[1] / s, 100 * P[1] / s, D[2] / 1e6, T[2] / 1e6, P[2] / 1e6 }'
}

measure 1.1.1 1 1 1
measure 2.1.1 2 1 1
measure "2.1.1, no overlap" 2 1 1 --set mesh.overlap=false
measure 1.2.1 1 2 1
measure "1.2.1, whole connections" 1 2 1 --set mesh.delta=connection
measure "1.2.1, sequence parallel" 1 2 1 --set mesh.sequence_parallel=true
measure 1.1.2 1 1 2
measure "1.1.2, interleave 2" 1 1 2 --set mesh.interleave=2
measure "1.1.2, whole sources" 1 1 2 --set mesh.narrow_sources=false
measure 2.2.1 2 2 1
measure 2.1.2 2 1 2
measure 1.2.2 1 2 2
measure 1.4.1 1 4 1
measure 1.1.4 1 1 4
measure 2.2.2 2 2 2
measure 1.1.8 1 1 8
measure 4.2.2 4 2 2
