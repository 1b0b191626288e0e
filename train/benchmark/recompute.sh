#!/usr/bin/env bash
# Memory and step time with each setting of train.recompute, taken in turn in one process for each model:
#
#   train/benchmark/recompute.sh [SECONDS]      (a model, 60; GDN names the program, default build/gdn)
#
# A GDN and a plain transformer of 12 and 24 layers (configs/bench-deep.yaml). Prints a Markdown table. Activations are what is
# kept for the backward pass, layers' outputs included; workspace holds what is shared. auto may use what lies in the middle
# between the totals of none and full.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gdn=${GDN:-$source/build/gdn}
seconds=${1:-60}

echo "| model | recompute | activations, MiB | of none | workspace, MiB | all memory, MiB | of none | step, ms | of none |"
echo "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
for layers in 12 24; do
    for distances in "[1, 2, 3, 4]" "[]"; do
        name="GDN, $layers layers"
        [ "$distances" != "[]" ] || name="plain, $layers layers"
        "$gdn" bench "$source/configs/bench-deep.yaml" --recompute --json --seconds "$seconds" \
            --set model.num_layers=$layers --set "model.delta.distances=$distances" |
            LC_ALL=C awk -v name="$name" '
                function value(key) { match($0, "\"" key "\":[^,}]*"); return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) }
                /"what":"recompute"/ {
                    kept = value("activations") + value("sources"); all = value("planned"); step = value("step_seconds")
                    setting = value("setting"); gsub(/"/, "", setting)
                    if (setting == "none") { kept0 = kept; all0 = all; step0 = step }
                    printf "| %s | %s | %.1f | %.1f%% | %.1f | %.1f | %.1f%% | %.1f | %.3f |\n", name, setting, kept / 1048576,
                        100 * kept / kept0, value("workspace") / 1048576, all / 1048576, 100 * all / all0, 1000 * step, step / step0
                }'
    done
done
