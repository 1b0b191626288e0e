#!/usr/bin/env bash
# Validation loss and time of a plain transformer and a GDN on the same text, three seeds each:
#
#   train/benchmark/quality.sh TEXT [--seeds "1 2 3"] [--config configs/shakespeare.yaml]
#
# Trains on the first 90% of TEXT, one process on all cores, and prints a Markdown table: the loss per byte on all of the
# last 10% after the last step, and the seconds of the training loop, evaluations left out. GDN names the program
# (default build/gdn). Runs that are complete are not run again: they lie in runs/quality.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../.." && pwd)
gdn=${GDN:-$source/build/gdn}
seeds="1 2 3"
config=$source/configs/shakespeare.yaml
text=${1:?usage: quality.sh TEXT [--seeds "1 2 3"] [--config FILE]}
shift
while [ $# -gt 0 ]; do
    case "$1" in
        --seeds) seeds=${2:?--seeds: numbers are expected} ;;
        --config) config=${2:?--config: a file is expected} ;;
        *) echo "usage: quality.sh TEXT [--seeds \"1 2 3\"] [--config FILE]" >&2; exit 2 ;;
    esac
    shift 2
done

train() { # NAME DISTANCES SEED: prints "loss seconds"
    local run=$source/runs/quality/$1-seed$3
    "$gdn" train "$config" --run-dir "$run" --set data.train="$text" --set model.delta.distances="$2" --set train.seed="$3" >&2
    LC_ALL=C awk -F'[:,}]' '
        /"event":"step"/ { for (i = 1; i < NF; i++) if ($i == "\"step_seconds\"") seconds += $(i + 1) }
        /"event":"eval"/ { for (i = 1; i < NF; i++) if ($i == "\"loss\"") loss = $(i + 1) }
        END { printf "%.4f %.1f\n", loss, seconds }' "$run/metrics.jsonl"
}

echo "$(basename "$config") on $(basename "$text"), $(nproc) cores, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)"
echo
echo "| model | seed | validation loss | seconds |"
echo "| --- | ---: | ---: | ---: |"
for model in plain gdn; do
    distances='[]'
    [ $model = gdn ] && distances='[1, 2, 3, 4]'
    losses=
    for seed in $seeds; do
        read -r loss seconds <<< "$(train $model "$distances" "$seed")"
        echo "| $model | $seed | $loss | $seconds |"
        losses="$losses $loss $seconds"
    done
    echo "$losses" | LC_ALL=C awk -v model=$model '
        { for (i = 1; i < NF; i += 2) { loss += $i; seconds += $(i + 1); n++ } printf "| **%s** | mean | **%.4f** | %.1f |\n", model, loss / n, seconds / n }'
done
