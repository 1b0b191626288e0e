#!/usr/bin/env bash
# Goes on with the study of learning: run.sh [--part NAME] [--minutes N] [--dry-run]
#
# Trains what study.tsv lists and results.tsv does not have yet, in that order, one run after the other on all cores, and appends
# a row a run to results.tsv and its evaluations to curves.tsv, beside this script. A run that was stopped goes on where it was:
# Ctrl-C stops, with a checkpoint, and so does --minutes. Runs lie in runs/learning/, the text in corpus/reference
# (train/corpus.sh reference makes it). GDN names the program (default build/gdn), THREADS OpenMP threads. Several run.sh at once
# share the work: each takes runs that none of the others has begun (two with THREADS=1 make more of two cores than one with 2).
set -euo pipefail
usage() { echo "usage: run.sh [--part NAME] [--minutes N] [--dry-run]" >&2; exit 2; }
part='' minutes='' dry=''
while [ $# -gt 0 ]; do
    case "$1" in
        --part) part=${2:?--part: a name of study.tsv is expected}; shift 2 ;;
        --minutes) minutes=${2:?--minutes: a number is expected}; shift 2 ;;
        --dry-run) dry=1; shift ;;
        *) usage ;;
    esac
done
. "$(dirname "${BASH_SOURCE[0]}")/study.sh"
part_exists "$part"
train/corpus.sh reference
end=$((minutes ? $(date +%s) + minutes * 60 : 0))

figures() { # RUN: prints tokens, final loss, seconds of all steps, parameters, and on descriptor 3 a line for each evaluation: tokens, loss, seconds
    LC_ALL=C awk '
        function figure(key,   at) { # the number behind a key, or ""
            at = index($0, "\"" key "\":")
            return at ? substr($0, at + length(key) + 3) + 0 : ""
        }
        /"event":"start"/ { parameters = figure("parameters") }
        /"event":"step"/ { seconds[figure("step")] = figure("step_seconds"); tokens[figure("step")] = figure("tokens") }
        /"event":"eval"/ { loss[figure("step")] = figure("loss") } # after so many steps
        END {
            for (done = 1; done - 1 in seconds; done++) {
                sum += seconds[done - 1]
                if (done in loss) { printf "%d\t%.5f\t%.3f\n", tokens[done - 1], loss[done], sum > "/dev/fd/3"; last = loss[done] }
            }
            printf "%d\t%.5f\t%.3f\t%d\n", tokens[done - 2], last, sum, parameters
        }' "$1/metrics.jsonl"
}

# One run, which may take several calls; appends its rows when it is complete.
train_one() { # PART NAME SHAPE SEED KEY=VALUE…
    local study=$1 name=$2 shape=$3 seed=$4 key sets=() status=0 run final
    shift 4
    run=runs/learning/$study-$shape-$name-seed$seed
    for key in "$@"; do sets+=(--set "$key"); done
    if [ "$end" -gt 0 ]; then
        [ "$(date +%s)" -lt $((end - 20)) ] || exit 0
        export GDN_END_TIME=$end
    fi
    echo "== $study: $name, $shape, seed $seed"
    [ -z "$dry" ] || return 0
    OMP_NUM_THREADS=$threads "$gdn" train "$here/$shape.yaml" --run-dir "$run" --set "train.seed=$seed" "${sets[@]}" || status=$?
    [ "$status" -ne 3 ] || { echo "run.sh: stopped; the same command goes on" >&2; exit 0; }
    [ "$status" -eq 0 ] || { echo "run.sh: $run ended with status $status" >&2; exit "$status"; }
    final=$(figures "$run" 3> "$run/curve.tsv")
    sed "s/^/$study\t$name\t$shape\t$seed\t/" "$run/curve.tsv" >> "$here/curves.tsv"
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$study" "$name" "$shape" "$seed" "$final" "$*" "$machine" >> "$here/results.tsv"
}

train_seeds() { # PART NAME SHAPE SEEDS KEY=VALUE…
    local seed lock
    for seed in ${4//,/ }; do
        exec {lock}> "runs/learning/$1-$3-$2-seed$seed.lock" # held by whoever trains this run
        if flock -n "$lock" && ! grep -qsP "^$1\t$2\t$3\t$seed\t" "$here/results.tsv"; then
            train_one "$1" "$2" "$3" "$seed" "${@:5}"
        fi
        exec {lock}>&-
    done
}
mkdir -p runs/learning
each_row "$part" train_seeds
echo "run.sh: nothing is left to begin of ${part:-the study}"
