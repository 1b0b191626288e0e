#!/usr/bin/env bash
# Half of a model's connections pruned while it is trained (train.prune), for good or with some that come back:
#
#   train/benchmark/prune_training.sh [CORPUS]      (default: corpus/reference, which train/corpus.sh reference prepares)
#
# PARTS says what of it (default all: "losses bytes time measures"), of the model of prune.sh, with 38 connections:
#   losses    trained with all connections, and with half of them from step 500 on, with each of SEEDS (default 1 2): validation losses, beside
#             that with all; how many connections that are left two runs of a seed have in common
#   bytes     of the first seed, of a further step on two pipeline ranks, the bytes between them, beside gdn plan's of a model that has those
#             left alone
#   time      processor seconds of 40 steps before the first connection goes and after the last has, in turn, beside gdn plan's arithmetic
#   measures  how the connections' order by each measure agrees with that by leave-one-out of gdn prune (Spearman's), in a narrower model
# GDN names the program (default build/gdn). One thread a rank. What is complete is not made again: it lies in runs/prune_training.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/pruned_model.sh" prune_training "$@"
export LC_ALL=C

prune="begin: 100, end: 500, interval: 50, keep: 0.5"
declare -A variants=(
    [all]="by: none"
    [first_order]="by: first_order, $prune"
    [regrow]="by: first_order, $prune, regrow: 0.3"
    [contribution]="by: contribution, $prune"
    [leave_one_out]="by: leave_one_out, $prune"
)
names="all first_order regrow contribution leave_one_out"
for name in $names; do model $name.yaml "eval_interval: 0, eval_batches: 200, prune: {${variants[$name]}}"; done

edges_of() { # RUN: what is left, by what its events say, "[TARGET, SOURCE]" one a line
    { echo '"event":"prune","layer":[],"distance":[]' && grep -E '"event":"(prune|regrow)"' "$1/metrics.jsonl"; } | awk '
        { match($0, /"layer":\[[^]]*/); n = split(substr($0, RSTART + 9, RLENGTH - 9), layer, ",")
          match($0, /"distance":\[[^]]*/); split(substr($0, RSTART + 12, RLENGTH - 12), distance, ",")
          for (i = 1; i <= n; i++) gone[layer[i] + 0, distance[i] + 0] = /"prune"/ }
        END { for (l = 1; l < 12; l++) for (d = 1; d <= 4 && d <= l; d++) if (!gone[l, d]) print "[" l ", " l - d "]" }' | sort
}
plan_of() { # RUN OPTION…: in plan.json, of a model that has those left alone
    "$gdn" plan all.yaml --flops 1e11 "${@:2}" --set model.delta.distances=[] --set "model.delta.edges=[$(edges_of "$1" | paste -sd,)]" --json > plan.json
}

loss_of() { grep '"event":"eval"' "$1/metrics.jsonl" | tail -1 | grep -oE '"loss":[0-9.]+' | cut -d: -f2; }
losses() {
    local seed name run
    for seed in ${SEEDS:-1 2}; do
        for name in $names; do
            run=$name-$seed
            grep -qs '"event":"eval"' $run/metrics.jsonl || "$gdn" train $name.yaml --run-dir $run --set train.seed=$seed >&2
            awk -v name=$run -v loss="$(loss_of $run)" -v all="$(loss_of all-$seed)" 'BEGIN { printf "%s: %s, %+.2f%%\n", name, loss, 100 * (loss / all - 1) }'
        done
        for name in regrow contribution leave_one_out; do
            echo "$name-$seed: $(comm -12 <(edges_of first_order-$seed) <(edges_of $name-$seed) | wc -l) of $(edges_of $name-$seed | wc -l) as first_order-$seed"
        done
    done
}

pipeline_bytes() { # FILE WHICH: what rank 0 sends; of a plan the first is of both
    grep -oE '"communication_bytes": ?\{[^}]*\}' "$1" | $2 | tail -1 | grep -oE '"pipeline": ?[0-9]+' | grep -oE '[0-9]+'
}
bytes() {
    local name run seed=${SEEDS:-1}
    local two=(--set mesh.pipeline=2 --set train.micro_batch_size=2 --set train.steps=801)
    seed=${seed%% *}
    for name in all first_order; do
        run=$name-$seed
        rm -rf on && cp -r $run on
        mpirun -n 2 "$gdn" train $name.yaml --run-dir on --set train.seed=$seed "${two[@]}" >&2
        plan_of $run "${two[@]}"
        echo "$run: $(pipeline_bytes on/metrics.jsonl cat) bytes from rank 0 to rank 1 in a step, by plan $(pipeline_bytes plan.json "head -2")"
    done
}

# A run of 200 steps that keeps a checkpoint every 50: in the first all connections are left, in the last half.
seconds() { # STEP STEPS: of the processor, of so many steps from that checkpoint on
    local status=0
    rm -rf timed
    TIMEFORMAT=%U
    { time "$gdn" train short.yaml --run-dir timed --resume "short/checkpoints/step_$(printf %08d "$1")" --set train.steps=300 --set train.stop_at=$(($1 + $2)) \
        --set "data.validation=''" > timed.log 2>&1 || status=$?; } 2>&1
    [ $status -eq 3 ] || { cat timed.log >&2 && exit 1; }
}
more() { awk -v a="$(seconds "$1" 41)" -v b="$(seconds "$1" 1)" 'BEGIN { printf "%.4f", a - b }'; }
flops() { grep -oE '"flops": ?[0-9.e+]+' plan.json | head -1 | grep -oE '[0-9.e+]+$'; }
time_saved() {
    local round before after ratios=
    model short.yaml "eval_interval: 0, eval_batches: 4, prune: {by: first_order, begin: 50, end: 150, interval: 50, keep: 0.5}"
    [ -d short/checkpoints/step_00000200 ] ||
        "$gdn" train short.yaml --run-dir short --set train.steps=200 --set checkpoint.interval=50 --set checkpoint.keep=100 >&2
    for round in $(seq "${ROUNDS:-5}"); do
        before=$(more 50) after=$(more 200)
        echo "processor seconds of 40 steps, round $round: $before with all, $after with $(edges_of short | wc -l)"
        ratios+="$(awk -v a="$after" -v b="$before" 'BEGIN { print a / b }') "
    done
    echo "ratios: $(tr ' ' '\n' <<< "$ratios" | sed '/^$/d' | sort -n | paste -sd' ')"
    "$gdn" plan all.yaml --flops 1e11 --json > plan.json
    before=$(flops)
    plan_of short
    awk -v a="$(flops)" -v b="$before" 'BEGIN { printf "arithmetic of a step by plan: %.4f\n", a / b }'
}

averages() { # RUN: TARGET DISTANCE AVERAGE of each connection, as its last checkpoint has it
    local last=("$1"/checkpoints/step_*/checkpoint.h5)
    h5dump -d /pruning -b -o pruning.txt "${last[-1]}" > /dev/null
    sed 1d pruning.txt | awk 'NF == 4 { print $1, $1 - $2, $4 }' | sort
}
rank_correlation() { # FILE FILE: of the third columns of lines with the same first two (Spearman's)
    paste -d' ' "$1" "$2" | awk '
        { if ($1 != $4 || $2 != $5) exit 1; x[NR] = $3; y[NR] = $6 }
        function place(v, i, j, r) { r = 0; for (j = 1; j <= NR; j++) r += v[j] < v[i] ? 1 : v[j] == v[i] && j != i ? 0.5 : 0; return r }
        END { m = (NR - 1) / 2
              for (i = 1; i <= NR; i++) { a = place(x, i) - m; b = place(y, i) - m; ab += a * b; aa += a * a; bb += b * b }
              printf "%.3f\n", ab / sqrt(aa * bb) }'
}
measures() { # of a run of a narrower model in which none goes
    halves
    model judged.yaml "eval_interval: 0, eval_batches: 12, prune: {by: leave_one_out, begin: 500, end: 600, interval: 50, keep: 1}"
    sed -i "s|validation: [^}]*|validation: choose/*.txt|; s/hidden_size: 96/hidden_size: 48/; s/intermediate_size: 256/intermediate_size: 128/
        s/hidden: 24, gate_hidden: 12/hidden: 12, gate_hidden: 6/; s/steps: 800, batch_size: 8, sequence_length: 96, lr: 3.0e-3/steps: 600, batch_size: 4, sequence_length: 64, lr: 5.0e-3/
        s/warmup_steps: 60/warmup_steps: 40/" judged.yaml
    [ -d judged/checkpoints ] || "$gdn" train judged.yaml --run-dir judged >&2
    [ -s exact.json ] || "$gdn" prune judged --data 'judge/*.txt' --points 2 --json > exact.json
    tr '{' '\n' < exact.json | sed -nE 's/^"target": ?([0-9]+), ?"source": ?-?[0-9]+, ?"distance": ?([0-9]+),.*"increase": ?([-0-9.e]+).*/\1 \2 \3/p' | sort > exact
    echo "contribution and first order, on those data at once: $(grep -oE '"(effect_)?correlation": ?[-0-9.]+' exact.json | paste -sd' ')"
    averages judged > averages
    echo "leave_one_out, averaged in training, on others: $(rank_correlation averages exact)"
}

for part in ${PARTS:-losses bytes time measures}; do
    case $part in
        losses | bytes | measures) $part ;;
        time) time_saved ;;
        *) echo "prune_training.sh: PARTS has $part: some of losses bytes time measures are expected" >&2; exit 2 ;;
    esac
done
