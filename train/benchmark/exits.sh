#!/usr/bin/env bash
# What exits cost in training:
#
#   train/benchmark/exits.sh [CORPUS]      (default: corpus/reference, which train/corpus.sh reference prepares)
#
# Trains the model of prune.sh for STEPS (default 200) without exits, with three, and with these in turn (curriculum rotate), and prints the last
# layer's validation loss of each; then processor seconds of 20 steps of each, in turn, in ROUNDS (default 5), start-up taken off, with a
# vocabulary of 257 and one of 4096, of which most stands for nothing and is computed all the same; and gdn plan's arithmetic. GDN names the
# program (default build/gdn). One thread. What is complete is not made again: it lies in runs/exits.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/pruned_model.sh" exits "$@"
export LC_ALL=C

exits="layers: [2, 5, 8], weights: [0.1, 0.2, 0.3]"
for name in none all rotate; do model $name.yaml "eval_interval: 0, eval_batches: 100"; done
sed -i "s/^  num_heads/  exit: {$exits}\n&/" all.yaml
sed -i "s/^  num_heads/  exit: {$exits, curriculum: rotate}\n&/" rotate.yaml

loss_of() { grep '"event":"eval"' "$1/metrics.jsonl" | tail -1 | grep -oE '"loss":[0-9.]+' | cut -d: -f2; }
for name in none all rotate; do
    grep -qs '"event":"eval"' $name/metrics.jsonl || "$gdn" train $name.yaml --run-dir $name --set train.steps="${STEPS:-200}" >&2
    awk -v name=$name -v loss="$(loss_of $name)" -v none="$(loss_of none)" 'BEGIN { printf "%s: %s, %+.2f%%\n", name, loss, 100 * (loss / none - 1) }'
done

seconds() { # NAME VOCABULARY STEPS: of the processor
    rm -rf timed
    TIMEFORMAT=%U
    { time "$gdn" train "$1.yaml" --run-dir timed --set train.steps="$3" --set "data.validation=''" --set model.vocab_size="$2" > timed.log 2>&1; } 2>&1
}
for vocabulary in 257 4096; do
    for name in none all rotate; do
        "$gdn" plan $name.yaml --flops 1e11 --set model.vocab_size=$vocabulary --json > plan.json
        echo "$name, vocabulary $vocabulary: arithmetic of a step by plan $(grep -oE '"flops": ?[0-9.e+]+' plan.json | head -1 | grep -oE '[0-9.e+]+$')"
    done
    rm -f times
    for round in $(seq "${ROUNDS:-5}"); do
        for name in none all rotate; do
            echo "$name $(awk -v a="$(seconds $name $vocabulary 21)" -v b="$(seconds $name $vocabulary 1)" 'BEGIN { print (a - b) / 20 }')"
        done >> times
    done
    for name in none all rotate; do
        echo "$name, vocabulary $vocabulary: processor seconds a step $(awk -v name=$name '$1 == name { print $2 }' times | sort -n | paste -sd' ')"
    done
done
