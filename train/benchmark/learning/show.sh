#!/usr/bin/env bash
# What the study has found so far: show.sh [--plots]
#
# Prints, of results.tsv and curves.tsv, a Markdown table a part and shape: final loss by seed and its mean, its time,
# and what part of the tokens and of the time of the part's best AdamW run a run needed until it had that run's final loss
# (interpolated between evaluations; "–": never). Times are tokens times the speeds of speeds.tsv (speed.sh), where this has all
# runs of a table, else what each run's own clock said. --plots draws PART-SHAPE.svg of losses against tokens beside this script.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case "${1:-}" in '' | --plots) ;; *) echo "usage: show.sh [--plots]" >&2; exit 2 ;; esac
cd "$here"
[ -s results.tsv ] || { echo "show.sh: no results yet: run.sh makes them" >&2; exit 1; }

speeds=/dev/null
[ ! -s speeds.tsv ] || speeds=speeds.tsv
cut -f 1,3 results.tsv | awk '!seen[$0]++' | while IFS=$'\t' read -r part shape; do
    LC_ALL=C awk -F'\t' -v part="$part" -v shape="$shape" '
        function mean_of(name,   i, sum) {
            for (i = 1; i <= seeds[name]; i++) sum += final[name, i]
            return sum / seeds[name]
        }
        # Where a run falls to `goal`: tokens or seconds, of column c of its curve; 0: never.
        function reach(run, goal, c,   i, f) {
            for (i = 1; i <= points[run]; i++)
                if (loss[run, i] <= goal) {
                    if (i == 1) return at[run, 1, c]
                    f = (loss[run, i - 1] - goal) / (loss[run, i - 1] - loss[run, i])
                    return at[run, i - 1, c] + f * (at[run, i, c] - at[run, i - 1, c])
                }
            return 0
        }
        # The mean over seeds of reach over what the best AdamW run of that seed took for all its tokens or time.
        function ratio(name, c,   i, run, base, r, sum) {
            for (i = 1; i <= seeds[name]; i++) {
                run = name SUBSEP seed[name, i]
                base = best SUBSEP seed[name, i]
                if (!(base in points) || !(r = reach(run, loss[base, points[base]], c))) return "–"
                sum += r / at[base, points[base], c]
            }
            return sprintf("%.2f", sum / seeds[name])
        }
        $1 != part || $3 != shape { next }
        FILENAME == "speeds.tsv" {
            speed[$2] = $4
            next
        }
        FILENAME == "curves.tsv" {
            run = $2 SUBSEP $4
            i = ++points[run]
            at[run, i, 1] = $5
            loss[run, i] = $6
            at[run, i, 2] = $7
            next
        }
        {
            if (!seeds[$2]++) order[++names] = $2
            seed[$2, seeds[$2]] = $4
            final[$2, seeds[$2]] = $6
            tokens[$2] = $5
            seconds[$2] += $7
            machine = $10
        }
        # In place of the clock of each run, speeds: seconds are then those that plain AdamW takes for a token.
        function take_speeds(   i, j, k, run) {
            for (i = 1; i <= names; i++)
                if (!(order[i] in speed)) return 0
            for (i = 1; i <= names; i++) {
                seconds[order[i]] = seeds[order[i]] * tokens[order[i]] * speed[order[i]]
                for (j = 1; j <= seeds[order[i]]; j++) {
                    run = order[i] SUBSEP seed[order[i], j]
                    for (k = 1; k <= points[run]; k++) at[run, k, 2] = at[run, k, 1] * speed[order[i]]
                }
            }
            return 1
        }
        END {
            clock = take_speeds() ? "times of speeds.tsv" : "times of the runs themselves"
            for (i = 1; i <= names; i++)
                if (order[i] ~ /^adamw/ && (best == "" || mean_of(order[i]) < mean_of(best))) best = order[i]
            printf "**%s, %s** (%s; %s)\n\n| run | tokens, M | final loss by seed | mean | of the seconds of %s | tokens to its loss | seconds to its loss |\n", part, shape, machine, clock, best
            print "| --- | ---: | --- | ---: | ---: | ---: | ---: |"
            for (i = 1; i <= names; i++) {
                name = order[i]
                list = ""
                for (j = 1; j <= seeds[name]; j++) list = list (j > 1 ? ", " : "") sprintf("%.4f", final[name, j])
                printf "| %s | %.1f | %s | %.4f | %.2f | %s | %s |\n", name, tokens[name] / 1e6, list, mean_of(name), \
                    (seconds[name] / seeds[name]) / (seconds[best] / seeds[best]), ratio(name, 1), ratio(name, 2)
            }
            print ""
        }' "$speeds" curves.tsv results.tsv
    [ -n "${1:-}" ] || [ $# -gt 0 ] || continue
    LC_ALL=C awk -F'\t' -v part="$part" -v shape="$shape" '
        $1 == part && $3 == shape {
            if ($2 SUBSEP $4 != run) { if (run != "") print "\n"; print "\"" $2 "\""; run = $2 SUBSEP $4 }
            print $5 / 1e6, $6
        }' curves.tsv > "$part-$shape.data"
    runs=$(grep -c '^"' "$part-$shape.data")
    gnuplot << END
set terminal svg size 800,500 dynamic background "white"
set output "$part-$shape.svg"
set title "$part, $shape: validation loss, nats a byte"
set xlabel "tokens, millions"
set grid
set key outside right
plot for [i = 0:$((runs - 1))] "$part-$shape.data" index i using 1:2 with linespoints pointsize 0.4 title columnheader(1)
END
    rm "$part-$shape.data"
done
