#!/usr/bin/env bash
# Half of a model's connections pruned while it is trained (train.prune), for good or with some that come back:
#
#   train/benchmark/prune_training.sh [CORPUS]      (default: corpus/reference, which train/corpus.sh reference prepares)
#
# Trains the model of prune.sh with all 38 connections, and with half of them from step 500 on, with each of SEEDS (default 1 2), and
# prints validation losses, beside that with all; how many connections that are left two runs of a seed have in common; and of the first
# seed, of a further step on two pipeline ranks, the bytes between them, beside gdn plan's of a model that has those left alone. GDN names
# the program (default build/gdn). One thread a rank. What is complete is not made again: it lies in runs/prune_training.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/pruned_model.sh" prune_training "$@"

prune="begin: 100, end: 500, interval: 50, keep: 0.5"
declare -A variants=(
    [all]="by: none"
    [first_order]="by: first_order, $prune"
    [regrow]="by: first_order, $prune, regrow: 0.3"
    [contribution]="by: contribution, $prune"
)
names="all first_order regrow contribution"
for name in $names; do model $name.yaml "eval_interval: 0, eval_batches: 200, prune: {${variants[$name]}}"; done

loss_of() { grep '"event":"eval"' "$1/metrics.jsonl" | tail -1 | grep -oE '"loss":[0-9.]+' | cut -d: -f2; }
for seed in ${SEEDS:-1 2}; do
    for name in $names; do
        run=$name-$seed
        grep -qs '"event":"eval"' $run/metrics.jsonl || "$gdn" train $name.yaml --run-dir $run --set train.seed=$seed >&2
        awk -v name=$run -v loss="$(loss_of $run)" -v all="$(loss_of all-$seed)" 'BEGIN { printf "%s: %s, %+.2f%%\n", name, loss, 100 * (loss / all - 1) }'
    done
done

edges_of() { # RUN: what is left, by what its events say, "[TARGET, SOURCE]" one a line
    { echo '"event":"prune","layer":[],"distance":[]' && grep -E '"event":"(prune|regrow)"' "$1/metrics.jsonl"; } | awk '
        { match($0, /"layer":\[[^]]*/); n = split(substr($0, RSTART + 9, RLENGTH - 9), layer, ",")
          match($0, /"distance":\[[^]]*/); split(substr($0, RSTART + 12, RLENGTH - 12), distance, ",")
          for (i = 1; i <= n; i++) gone[layer[i] + 0, distance[i] + 0] = /"prune"/ }
        END { for (l = 1; l < 12; l++) for (d = 1; d <= 4 && d <= l; d++) if (!gone[l, d]) print "[" l ", " l - d "]" }' | sort
}
for seed in ${SEEDS:-1 2}; do
    for name in regrow contribution; do
        echo "$name-$seed: $(comm -12 <(edges_of first_order-$seed) <(edges_of $name-$seed) | wc -l) of $(edges_of $name-$seed | wc -l) as first_order-$seed"
    done
done

set -- ${SEEDS:-1 2}
two=(--set mesh.pipeline=2 --set train.micro_batch_size=2 --set train.steps=801)
pipeline_bytes() { # FILE WHICH: what rank 0 sends; of a plan the first is of both
    grep -oE '"communication_bytes": ?\{[^}]*\}' "$1" | $2 | tail -1 | grep -oE '"pipeline": ?[0-9]+' | grep -oE '[0-9]+'
}
for name in all first_order; do
    run=$name-$1
    rm -rf on && cp -r $run on
    mpirun -n 2 "$gdn" train $name.yaml --run-dir on --set train.seed="$1" "${two[@]}" >&2
    "$gdn" plan all.yaml --flops 1e11 "${two[@]}" --set model.delta.distances=[] --set "model.delta.edges=[$(edges_of $run | paste -sd,)]" --json > plan.json
    echo "$run: $(pipeline_bytes on/metrics.jsonl cat) bytes from rank 0 to rank 1 in a step, by plan $(pipeline_bytes plan.json "head -2")"
done
