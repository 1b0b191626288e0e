#!/usr/bin/env bash
# Goes on with the study of learning: run.sh [--part NAME] [--minutes N] [--dry-run]
#
# Trains what study.tsv lists and results.tsv does not have yet, in that order, one run after the other on all cores, and appends
# a row a run to results.tsv and its evaluations to curves.tsv, beside this script. A run that was stopped goes on where it was:
# Ctrl-C stops, with a checkpoint, and so does --minutes. Runs lie in runs/learning/, the text in corpus/reference
# (train/corpus.sh reference makes it). GDN names the program (default build/gdn), THREADS OpenMP threads.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../../.." && pwd)
gdn=$(realpath "${GDN:-$source/build/gdn}")
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
[ -z "$part" ] || grep -q "^$part[[:blank:]]" "$here/study.tsv" || { echo "run.sh: study.tsv has no part $part" >&2; exit 2; }
[ -x "$gdn" ] || { echo "run.sh: $gdn is not there: build first, or name the program in GDN" >&2; exit 2; }
cd "$source" # paths of the configurations start there
train/corpus.sh reference
processor=$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)
threads=${THREADS:-$(nproc)}
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
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s threads, %s\n' "$study" "$name" "$shape" "$seed" "$final" "$*" "$threads" "$processor" >> "$here/results.tsv"
}

# The list is read by descriptor 4: a training run must not take it for its input.
while read -r study name shape seeds settings <&4; do
    case "$study" in '' | '#'*) continue ;; esac
    [ -z "$part" ] || [ "$study" = "$part" ] || continue
    for seed in ${seeds//,/ }; do
        grep -qsP "^$study\t$name\t$shape\t$seed\t" "$here/results.tsv" && continue
        # shellcheck disable=SC2086 # settings are words
        train_one "$study" "$name" "$shape" "$seed" $settings
    done
done 4< "$here/study.tsv"
echo "run.sh: nothing is left of ${part:-the study}"
