#!/usr/bin/env bash
# What samples of real documents leave empty, and how many tokens that count a step learns from in a second, by how documents become samples:
#
#   train/benchmark/documents.sh [STEPS [ROUNDS]]      (timed steps a run, 12, and rounds, 2; GDN names the program, default build/gdn)
#
# Documents are the entries of `train/corpus.sh dictionary`, bytes as tokens; the model is configs/plain.yaml's, one thread, 4096 tokens a step, with
# filling. Each way is timed once a round, in turn, by the processor's seconds of a run less those of a run of one step; the least counts.
# Batches of filled rows are no setting of gdn's: their steps are timed as steps of so many rows of that length, whose tokens are all computed.
set -euo pipefail
export LC_ALL=C OMP_NUM_THREADS=1
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gdn=${GDN:-$source/build/gdn} steps=${1:-12} rounds=${2:-2} per_step=4096
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bash "$source/train/corpus.sh" dictionary > "$scratch/log"
cd "$scratch"

as_lines() { awk '{ gsub(/[\\"]/, "\\\\&"); gsub(/[\001-\011\013-\037]/, " "); gsub(/\n/, "\\n"); print "{\"text\": \"" $0 "\"}" }' "$@"; }
written() { # NAME: a token file of NAME.jsonl
    "$gdn" data write --tokenizer bytes --format hdf5 --output "$1.h5" "$1.jsonl" > log
}
cat "$source"/corpus/dictionary/train/*.txt | as_lines RS= > entries.jsonl
written entries
for length in 1024 512 256 128; do # every document of so many tokens, the separator among them
    awk -v n=$((length - 1)) '{ text = text $0 "\n"; while (length(text) >= n) { printf "%s%c", substr(text, 1, n), 1; text = substr(text, n + 1); if (++count == 2000) exit } }' \
        "$source"/corpus/dictionary/train/*.txt | as_lines RS='\001' > "of$length.jsonl"
    written "of$length"
done

user_seconds() { # STEPS LENGTH FILE [OPTION …]: of a processor
    local TIMEFORMAT=%U
    rm -rf run
    { time "$gdn" train "$source/configs/plain.yaml" --run-dir run --set train.steps="$1" --set train.warmup_steps=0 --set train.sequence_length="$2" \
        --set train.batch_size=$((per_step / $2)) --set data.train="$3" --set data.format=hdf5 --set data.validation_fraction=0 \
        --set train.eval_interval=0 "${@:4}" > log 2>&1; } 2>&1 || { cat log >&2; return 1; }
}
step_seconds() { # LENGTH FILE [OPTION …]: of one step
    awk -v all="$(user_seconds $((steps + 1)) "$@")" -v one="$(user_seconds 1 "$@")" -v n="$steps" 'BEGIN { print (all - one) / n }'
}
declare -A seconds
take() { # NAME LENGTH FILE [OPTION …]
    local now
    now=$(step_seconds "${@:2}")
    seconds[$1]=$(awk -v a="${seconds[$1]:-1e9}" -v b="$now" 'BEGIN { print a < b ? a : b }')
}
mask='data.documents=mask' packed='data.packing=best_fit'

for ((round = 0; round < rounds; round++)); do
    for length in 2048 1024 512 256 128 64 32; do take "join $length" $length entries.h5; done
    for length in 512 2048; do
        take "mask $length" $length entries.h5 --set $mask
        take "best_fit $length" $length entries.h5 --set $mask --set $packed
    done
    for length in 1024 512 256 128; do
        take "joined of$length" 2048 "of$length.h5"
        take "masked of$length" 2048 "of$length.h5" --set $mask
    done
done

echo "| samples of | documents become | empty | seconds a step of $per_step | tokens that count a second | of stream, join |"
echo "| ---: | --- | ---: | ---: | ---: | ---: |"
for length in 512 2048; do
    empty=$("$gdn" data show --length $length --json entries.h5)
    part() { echo "$empty" | sed -E "s/.*\"$1\": *([0-9.e-]+).*/\1/"; }
    # Of the tokens of filled batches, the part in each class: pieces of at most `length`, each in the shortest class that holds it.
    classes=$(h5dump -d documents -y -w 0 entries.h5 | sed -n '/DATA {/,/}/p' | tr -dc '0-9,\n' | tr ',' '\n' |
        awk -v S=$length 'NF { if (seen++) for (n = $1 - last; n > 0; n -= S) { piece = n < S ? n : S; room = S; for (i = 1; i < 5 && piece <= room / 2; i++) room /= 2; all[room] += room; sum += room } last = $1 }
            END { for (r in all) printf "%d:%.6f ", r, all[r] / sum }')
    in_classes=0
    for class in $classes; do in_classes=$(awk -v a="$in_classes" -v t="${seconds[join ${class%:*}]}" -v p="${class#*:}" 'BEGIN { print a + t * p }'); done
    row() { # WORDS EMPTY SECONDS
        awk -v s=$length -v words="$1" -v empty="$2" -v t="$3" -v n=$per_step -v base="${seconds[join $length]}" \
            'BEGIN { printf "| %d | %s | %.3f | %.3f | %.0f | %.2f |\n", s, words, empty, t, n * (1 - empty) / t, (1 - empty) * base / t }'
    }
    row "stream, \`documents: join\`" 0 "${seconds[join $length]}"
    row "stream, \`documents: mask\`" 0 "${seconds[mask $length]}"
    row "best fit, \`documents: mask\`" "$(part packed)" "${seconds[best_fit $length]}"
    row "batches by five classes of length, filled up" "$(part classes)" "$in_classes"
    row "each alone, filled up" "$(part alone)" "${seconds[join $length]}"
done
echo
echo "| documents of | 1024 | 512 | 256 | 128 tokens |"
echo "| --- | ---: | ---: | ---: | ---: |"
printf '| a step of samples of 2048 with `mask`, of its time with `join` |'
for length in 1024 512 256 128; do
    awk -v a="${seconds[masked of$length]}" -v b="${seconds[joined of$length]}" 'BEGIN { printf " %.2f |", a / b }'
done
echo
