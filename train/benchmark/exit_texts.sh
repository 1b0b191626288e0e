#!/usr/bin/env bash
# How fast a model with exits writes, each way beside the others:
#
#   train/benchmark/exit_texts.sh RUN TEXT      (a run directory of a model with model.exit; a text whose lines are prompts)
#
# Texts of LENGTH tokens (default 300) that go on from PROMPTS of TEXT (default 6, as far apart as they can be), the likeliest tokens, by all layers; by
# `--exit` with the thresholds of `gdn eval --exits --data TEXT` for an agreement of 0.98; and by `--speculate`, 1 to 3 drafts of each of the first three exits, whose
# text must be that by all layers. All ways take turns with each prompt. Prints of each way the layers or what drafts came to, and its speed beside
# all layers' of the same prompt: the median, the least and the greatest. GDN names the program (default build/gdn). One thread.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: exit_texts.sh RUN TEXT" >&2; exit 2; }
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gdn=${GDN:-$source/build/gdn} run=$1 text=$2 prompts=${PROMPTS:-6} length=${LENGTH:-300}
export OMP_NUM_THREADS=1 LC_ALL=C
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$gdn" eval "$run" --exits --data "$text" | tee "$scratch/exits" >&2
thresholds=$(awk '/^  gdn generate --exit/ { print $NF }' "$scratch/exits")
drafts=$(awk '/ confidence / && n++ < 3 { print $1 }' "$scratch/exits")
ways=("" "--exit $thresholds")
for layer in $drafts; do for k in 1 2 3; do ways+=("--speculate $k --draft $layer"); done; done

grep -E '.{40}' "$text" | awk -v n="$prompts" '{ line[NR] = substr($0, 1, 60) } END { for (i = 0; i < n; i++) print line[int((i + 0.5) * NR / n) + 1] }' > "$scratch/prompts"
while IFS= read -r prompt <&3; do
    for way in "${ways[@]}"; do
        # shellcheck disable=SC2086 # options are words
        "$gdn" generate "$run" --temperature 0 --length "$length" --prompt "$prompt" --stats $way > "$scratch/text" 2> "$scratch/stats"
        [ -n "$way" ] || cp "$scratch/text" "$scratch/all"
        [[ "$way" != --speculate* ]] || cmp "$scratch/text" "$scratch/all"
        sed -E "s/^gdn: note: ([0-9]+) tokens, (.*), ([0-9.]+) tokens a second/$way\t\2\t\3/" "$scratch/stats"
    done
done 3< "$scratch/prompts" > "$scratch/rows"

# Each way's rows follow its prompt's row of all layers.
awk -F '\t' '
    !$1 { plain = $3; all[++prompts] = $3 }
    { if (!($1 in n)) order[++ways] = $1
      ratio[$1, ++n[$1]] = $3 / plain; what[$1] = what[$1] "\n      " $2 }
    function sorted(way,   i, j, t) {
        for (i = 2; i <= n[way]; i++) for (j = i; j > 1 && ratio[way, j - 1] > ratio[way, j]; j--) { t = ratio[way, j]; ratio[way, j] = ratio[way, j - 1]; ratio[way, j - 1] = t }
    }
    END {
        for (w = 1; w <= ways; w++) {
            way = order[w]; sorted(way)
            printf "%s: speed %.2f (%.2f to %.2f)%s\n", way ? way : "all layers", (ratio[way, int((n[way] + 1) / 2)] + ratio[way, int(n[way] / 2) + 1]) / 2, ratio[way, 1], ratio[way, n[way]], what[way]
        }
        printf "all layers, tokens a second:"
        for (i = 1; i <= prompts; i++) printf " %d", all[i]
        print ""
    }' "$scratch/rows"
