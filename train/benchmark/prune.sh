#!/usr/bin/env bash
# Half of a model's connections pruned after training:
#
#   train/benchmark/prune.sh [CORPUS]      (default: corpus/reference, which train/corpus.sh reference prepares)
#
# Trains twelve layers of width 96 with 38 connections, judges these by every second file of the validation data (gdn prune), keeps
# half, and prints the losses on the other files: with all, with half, and of both after 100 more steps; what gdn plan says of both on two
# pipeline ranks; and processor seconds of 59 steps of each, in turn. GDN names the program (default build/gdn). One thread. What
# is complete is not made again: it lies in runs/prune.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/pruned_model.sh" prune "$@"

model whole.yaml "eval_interval: 400, eval_batches: 40"

halves
[ -d whole ] || "$gdn" train whole.yaml --run-dir whole >&2
[ -d half ] || "$gdn" prune whole --keep 0.5 --output half --data 'choose/*.txt' --svg curve.svg | tee half.txt >&2

config_of() { if [ "$1" = whole ]; then echo whole.yaml; else echo half/config.yaml; fi; }
weights=(whole/checkpoints/step_*/checkpoint.h5)
for model in whole half; do # healing, and as many steps of what needs none
    [ $model = whole ] || weights=(half/checkpoint.h5)
    [ -d $model-on ] || "$gdn" train "$(config_of $model)" --run-dir $model-on --set train.steps=100 --set train.lr=3e-4 --set train.min_lr_ratio=0.3 \
        --set train.warmup_steps=10 --set train.eval_interval=0 --set train.seed=7 --set checkpoint.init_from="${weights[-1]}" >&2
done
for model in whole half whole-on half-on; do
    echo "$model: $("$gdn" eval $model --data 'judge/*.txt' | grep '^loss')"
done
grep '^correlation' half.txt

for model in whole half; do
    "$gdn" plan "$(config_of $model)" --flops 1e11 --set mesh.pipeline=2 --set train.micro_batch_size=2 --json > plan.json
    echo "$model: $(grep -oE '"(parameters|flops)": ?[0-9.e+]+|"communication_bytes": ?\{[^}]*\}' plan.json | head -3 | paste -sd' ')"
done
seconds() { # MODEL STEPS: of the processor
    rm -rf timed
    TIMEFORMAT=%U
    { time "$gdn" train "$(config_of "$1")" --run-dir timed --set train.steps="$2" --set train.schedule=constant --set train.eval_interval=0 \
        --set train.gate_interval=0 --set "checkpoint.init_from=''" > timed.log 2>&1; } 2>&1
}
for round in 1 2; do
    for model in whole half; do
        echo "$model, processor seconds of 59 steps, round $round: $(seconds $model 60) less $(seconds $model 1)"
    done
done
