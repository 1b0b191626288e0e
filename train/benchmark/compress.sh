#!/usr/bin/env bash
# What compression costs in accuracy: compress.sh TEXT [STEPS [SEED …]]
#
# Trains a GDN of 8 layers on TEXT with sources kept as low-rank factors between forward and backward pass
# (train.compress_sources), and on two pipeline ranks with compressed boundaries (mesh.compress_boundary), for a number of
# ratios and seeds (1000 steps, seeds 1 and 2). Prints a Markdown table: the mean over seeds of the loss on the last tenth of
# the text, the difference from the first row, memory of sources or bytes on the pipeline axis of rank 0, seconds a step.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gdn=${GDN:-$source/build/gdn}
text=$(realpath "${1:?usage: compress.sh TEXT [STEPS [SEED …]]}")
steps=${2:-1000}
seeds=("${@:3}")
[ ${#seeds[@]} -gt 0 ] || seeds=(1 2)
export OMPI_MCA_mpi_yield_when_idle=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

number() { # RUN EVENT KEY: of the event's last line
    grep "\"event\":\"$2\"" "$1/metrics.jsonl" | tail -1 | sed -n "s/.*\"$3\":\([^,}]*\).*/\1/p"
}

first=
row() { # NAME RANKS [OPTION …]
    local name=$1 ranks=$2 seed losses="" steps_seconds=""
    shift 2
    for seed in "${seeds[@]}"; do
        rm -rf "$work/run"
        OMP_NUM_THREADS=$((2 / ranks)) mpirun --oversubscribe --bind-to none -n "$ranks" "$gdn" train "$source/configs/shakespeare.yaml" \
            --run-dir "$work/run" --set data.train="$text" --set model.num_layers=8 --set train.steps="$steps" --set train.seed="$seed" \
            --set train.eval_interval=0 --set checkpoint.interval=0 --set mesh.pipeline="$ranks" "$@" > "$work/log" 2>&1 ||
            { cat "$work/log" >&2; exit 1; }
        losses="$losses $(number "$work/run" eval loss)"
        steps_seconds="$steps_seconds $(sed -n 's/.*"event":"step".*"step_seconds":\([^,}]*\).*/\1/p' "$work/run/metrics.jsonl" |
            LC_ALL=C sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }')"
    done
    local mean
    mean=$(echo "$losses" | LC_ALL=C awk '{ for (i = 1; i <= NF; i++) s += $i; printf "%.4f", s / NF }')
    first=${first:-$mean}
    LC_ALL=C awk -v name="$name" -v mean="$mean" -v first="$first" -v each="$losses" -v t="$steps_seconds" \
        -v sources="$(number "$work/run" memory reserved_sources)" -v bytes="$(number "$work/run" step pipeline)" 'BEGIN {
        n = split(t, s, " "); for (i = 1; i <= n; i++) sum += s[i]
        split(each, e, " "); for (i = 1; i <= n; i++) list = list (i > 1 ? ", " : "") sprintf("%.4f", e[i])
        printf "| %s | %s | %s | %+.4f | %.2f | %.3f | %.1f |\n", name, list, mean, mean - first, sources / 1048576, bytes / 1e6, 1000 * sum / n }'
}

echo "| setting | validation losses | mean | difference | sources, MiB | MB to other stages a step | step, ms |"
echo "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
row "one rank" 1
for ratio in 1 0.5 0.25 0.1; do row "compress_sources $ratio" 1 --set train.compress_sources=$ratio; done
first=
micro=(--set train.micro_batch_size=3 --set mesh.narrow_sources=false)
row "two stages, whole sources" 2 "${micro[@]}"
for ratio in 0.5 0.25 0.1; do
    row "compress_boundary $ratio" 2 "${micro[@]}" --set mesh.compress_boundary=$ratio
    row "compress_boundary $ratio, no feedback" 2 "${micro[@]}" --set mesh.compress_boundary=$ratio --set mesh.compress_feedback=false
done
