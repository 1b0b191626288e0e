#!/usr/bin/env bash
# How long steps of the study's runs take, side by side: speed.sh [--part NAME] [--rounds N] [--steps N]
#
# Runs are trained on different days and machines, so their own clocks cannot be compared. Here each configuration of study.tsv,
# and plain AdamW of its shape, trains a few steps (default 8, after 2 that do not count) in turn, with all its connections in
# place, and this is repeated (default 7 rounds). Writes speeds.tsv, which show.sh takes times from: a row a run with the median
# over rounds of its seconds a token over plain AdamW's in the same round, the least and the largest, plain AdamW's median of
# microseconds a token, and where. Rows of other parts stay. GDN names the program (default build/gdn), THREADS OpenMP threads.
set -euo pipefail
usage() { echo "usage: speed.sh [--part NAME] [--rounds N] [--steps N]" >&2; exit 2; }
part='' rounds=7 steps=8
while [ $# -gt 1 ]; do
    case "$1" in
        --part) part=$2 ;;
        --rounds) rounds=$2 ;;
        --steps) steps=$2 ;;
        *) usage ;;
    esac
    shift 2
done
[ $# -eq 0 ] && [[ "$rounds" =~ ^[1-9][0-9]*$ && "$steps" =~ ^[1-9][0-9]*$ ]] || usage
. "$(dirname "${BASH_SOURCE[0]}")/study.sh"
. "$here/../median.sh"
part_exists "$part"
train/corpus.sh reference
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT

# Rows whose runs differ by rates or length alone have the same speed: they are one configuration, "SHAPE SETTING…".
declare -A number=() # of each configuration
configurations=() rows=()
add_configuration() { # sets $index
    index=${number[$*]:-}
    [ -n "$index" ] && return
    index=${#configurations[@]}
    number[$*]=$index
    configurations+=("$*")
}
add_row() { # PART NAME SHAPE SEEDS SETTING…
    local study=$1 name=$2 shape=$3 plain key settings=()
    shift 4
    for key in "$@"; do
        case "$key" in train.lr=* | train.min_lr_ratio=* | train.steps=*) ;; *) settings+=("$key") ;; esac
    done
    add_configuration "$shape"
    plain=$index
    add_configuration "$shape" "${settings[@]}"
    rows+=("$study"$'\t'"$name"$'\t'"$shape"$'\t'"$index"$'\t'"$plain")
}
each_row "$part" add_row

measure() { # SHAPE SETTING…: prints the median seconds a token
    local key sets=() status=0
    for key in "${@:2}"; do sets+=(--set "$key"); done
    rm -rf "$scratch/run"
    OMP_NUM_THREADS=$threads "$gdn" train "$here/$1.yaml" --run-dir "$scratch/run" "${sets[@]}" --set train.eval_interval=0 \
        --set model.delta.stage_steps=0 --set "train.stop_at=$((steps + 2))" > "$scratch/log" 2>&1 || status=$?
    case $status in 0 | 3) ;; *) cat "$scratch/log" >&2; exit $status ;; esac
    LC_ALL=C awk '
        function figure(key) { return substr($0, index($0, "\"" key "\":") + length(key) + 3) + 0 }
        /"event":"step"/ { if (figure("step") > 1) print figure("step_seconds") / (figure("tokens") - before); before = figure("tokens") }
    ' "$scratch/run/metrics.jsonl" | median
}

for ((round = 1; round <= rounds; round++)); do
    for i in "${!configurations[@]}"; do
        echo "== round $round of $rounds: ${configurations[i]}"
        # shellcheck disable=SC2086 # settings are words
        measure ${configurations[i]} >> "$scratch/times_$i"
    done
done

{
    [ -z "$part" ] || grep -vsP "^$part\t" "$here/speeds.tsv" || true
    for row in "${rows[@]}"; do
        IFS=$'\t' read -r study name shape i plain <<< "$row"
        paste "$scratch/times_$i" "$scratch/times_$plain" | LC_ALL=C awk '{ printf "%.6f\n", $1 / $2 }' | LC_ALL=C sort -g > "$scratch/ratios"
        LC_ALL=C printf '%s\t%s\t%s\t%.4f\t%.4f\t%.4f\t%.3f\t%s\n' "$study" "$name" "$shape" "$(median < "$scratch/ratios")" \
            "$(head -n 1 "$scratch/ratios")" "$(tail -n 1 "$scratch/ratios")" \
            "$(median < "$scratch/times_$plain" | LC_ALL=C awk '{ print $1 * 1e6 }')" "$rounds rounds of $steps steps, $machine"
    done
} > "$scratch/speeds.tsv"
mv "$scratch/speeds.tsv" "$here/speeds.tsv"
