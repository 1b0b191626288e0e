#!/usr/bin/env bash
# What training waits for a checkpoint, in the foreground and in the background: the same short run both ways, on one
# rank and on two, in a scratch folder that is removed at the end. A line for each: seconds until a checkpoint was there
# and seconds that training waited for it, of the checkpoints during the run the median (the first one is left out), and
# how many times less that is.
#
#     train/benchmark/checkpoints.sh [GDN [SETTING …]]     # GDN: build/gdn; 20 million weights, 240 MB with their averages
set -euo pipefail
gdn=$(realpath "${1:-build/gdn}")
shift || true
settings=()
for setting in "$@"; do settings+=(--set "$setting"); done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
seq 1 60000 > text.txt
cat > run.yaml <<'YAML'
model: {vocab_size: 257, hidden_size: 512, num_layers: 6, num_heads: 8, intermediate_size: 1408, delta: {distances: [1, 2]}}
train: {steps: 36, batch_size: 4, sequence_length: 128, eval_interval: 0}
data: {train: text.txt}
checkpoint: {interval: 6, keep: 1}
YAML

field() { sed -nE "s/.*\"event\":\"checkpoint\".*\"$1\":([^,}]*).*/\1/p" "$2/metrics.jsonl" | tail -n +2 | head -n -1; }
median() { LC_ALL=C sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }
steps() { sed -nE 's/.*"event":"step".*"step_seconds":([^,}]*).*/\1/p' "$1/metrics.jsonl" | median; }

threads=${OMP_NUM_THREADS:-$(nproc)}
for ranks in 1 2; do
    for way in false true; do
        OMP_NUM_THREADS=$((threads / ranks > 0 ? threads / ranks : 1)) mpirun --oversubscribe --bind-to none -n $ranks \
            "$gdn" train run.yaml --run-dir "run$ranks$way" --set checkpoint.asynchronous=$way "${settings[@]}" > log 2>&1 ||
            { cat log >&2; exit 1; }
    done
    waited=$(field stall_seconds run${ranks}false | median) stall=$(field stall_seconds run${ranks}true | median)
    awk -v ranks=$ranks -v waited="$waited" -v stall="$stall" -v there="$(field seconds run${ranks}true | median)" \
        -v bytes="$(field bytes run${ranks}true | head -1)" -v a="$(steps run${ranks}false)" -v b="$(steps run${ranks}true)" 'BEGIN {
        printf "%d rank%s, %.0f MB: foreground %.3f s; background: there after %.3f s, training waits %.4f s (%.0f times less; %.1f GB/s); ",
            ranks, (ranks > 1 ? "s" : ""), bytes / 1e6, waited, there, stall, waited / stall, bytes / 1e9 / stall
        printf "median step %.3f s, %.3f s\n", a, b }'
done
