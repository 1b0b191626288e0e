#!/usr/bin/env bash
# How fast a model with exits writes, each way beside the others:
#
#   train/benchmark/exit_texts.sh RUN TEXT      (a run directory of a model with model.exit; a text whose lines are prompts)
#
# Texts of LENGTH tokens (default 300) that go on from PROMPTS of TEXT (default 6, as far apart as they can be), the likeliest tokens, by all layers; by
# `--exit` with the thresholds of `gdn eval --exits --data TEXT` for an agreement of 0.98; and by `--speculate`, 1 to 3 drafts of each of the first three exits, whose
# text must be that by all layers. All ways take turns with each prompt. Prints of each way its speed beside all layers' of the
# same prompt, the median, the least and the greatest, and of each prompt how many layers it took or what drafts came to. GDN names the program (default build/gdn). One thread.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: exit_texts.sh RUN TEXT" >&2; exit 2; }
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gdn=${GDN:-$source/build/gdn} run=$1 text=$2 prompts=${PROMPTS:-6} length=${LENGTH:-300}
export OMP_NUM_THREADS=1 LC_ALL=C
. "$source/train/benchmark/median.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$gdn" eval "$run" --exits --data "$text" | tee "$scratch/exits" >&2
thresholds=$(awk '/^  gdn generate --exit/ { print $NF }' "$scratch/exits")
drafts=$(awk '/ confidence / && n++ < 3 { print $1 }' "$scratch/exits")
ways=("" "--exit $thresholds")
for layer in $drafts; do for k in 1 2 3; do ways+=("--speculate $k --draft $layer"); done; done

grep -E '.{40}' "$text" | awk -v n="$prompts" '{ line[NR] = substr($0, 1, 60) } END { for (i = 0; i < n; i++) print line[int((i + 0.5) * NR / n) + 1] }' > "$scratch/prompts"
while IFS= read -r prompt <&3; do
    for w in "${!ways[@]}"; do
        way=${ways[w]}
        # shellcheck disable=SC2086 # options are words
        "$gdn" generate "$run" --temperature 0 --length "$length" --prompt "$prompt" --stats $way > "$scratch/text" 2> "$scratch/stats"
        speed=$(sed -nE 's/.*, ([0-9.]+) tokens a second$/\1/p' "$scratch/stats")
        [ -n "$way" ] || { cp "$scratch/text" "$scratch/all" && plain=$speed; }
        [[ "$way" != --speculate* ]] || cmp "$scratch/text" "$scratch/all"
        awk -v a="$speed" -v b="$plain" 'BEGIN { print a / b }' >> "$scratch/ratios$w"
        sed -E 's/^gdn: note: [0-9]+ tokens, /      /' "$scratch/stats" >> "$scratch/notes$w"
    done
done 3< "$scratch/prompts"

for w in "${!ways[@]}"; do
    sort -g -o "$scratch/ratios$w" "$scratch/ratios$w"
    printf '%s: speed %.2f (%.2f to %.2f)\n' "${ways[w]:-all layers}" "$(median < "$scratch/ratios$w")" "$(head -n 1 "$scratch/ratios$w")" "$(tail -n 1 "$scratch/ratios$w")"
    cat "$scratch/notes$w"
done
