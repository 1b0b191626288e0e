#!/usr/bin/env bash
# What the study has found so far: show.sh [--plots]
#
# Prints, of results.tsv and curves.tsv, a Markdown table a part and shape: final loss by seed and its mean, its time, and what
# part of its base's tokens and time a run needed until it had the base's final loss with that seed (interpolated between
# evaluations; "–": never). Bases are of the same shape, in whatever part: of plain models the best with AdamW, of models with
# connections, rules, exits, another width or precision the best plain one with their optimiser; one with more seeds first. Times
# are tokens times the speeds of speeds.tsv (speed.sh), where this has all runs of a table, else what each run's own clock said.
# --plots draws PART-SHAPE.svg beside this script: losses against tokens, means over seeds, of a part's runs and of their bases;
# and PART-SHAPE-time.svg, the same against time by speeds.tsv, of those that it has.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case "${1:-}" in '' | --plots) ;; *) echo "usage: show.sh [--plots]" >&2; exit 2 ;; esac
cd "$here"
[ -s results.tsv ] || { echo "show.sh: no results yet: run.sh makes them" >&2; exit 1; }

bases=$(mktemp)
trap 'rm -f "$bases"' EXIT
draw() { # COLUMN LABEL PART-SHAPE ENDING: curves of PART-SHAPE.data that have the column, if any has
    local column=$1 label=$2 name=$3 runs
    runs=$(awk -v column="$column" '/^"/ { index_of++; next } NF == 3 && $column != "NaN" && !seen[index_of]++ { printf "%d ", index_of - 1 }' "$name.data")
    [ -n "$runs" ] || return 0
    gnuplot << END
set terminal svg size 800,500 dynamic background "white"
set output "$name$4.svg"
set title "${name/-/, }: validation loss, nats a byte"
set xlabel "$label"
set grid
set key outside right
set xrange [0:]
plot for [i in "$runs"] "$name.data" index int(i) using $column:2 with linespoints pointsize 0.4 title columnheader(1)
END
}

speeds=/dev/null
[ ! -s speeds.tsv ] || speeds=speeds.tsv
cut -f 1,3 results.tsv | awk '!seen[$0]++' | while IFS=$'\t' read -r part shape; do
    LC_ALL=C awk -F'\t' -v part="$part" -v shape="$shape" -v bases="$bases" '
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
        # The mean over seeds of reach over what the base with that seed took for all its tokens or time.
        function ratio(name, c,   i, run, base, r, sum) {
            for (i = 1; i <= seeds[name]; i++) {
                run = name SUBSEP seed[name, i]
                base = base_of(name) SUBSEP seed[name, i]
                if (!(base in points) || !(r = reach(run, loss[base, points[base]], c))) return "–"
                sum += r / at[base, points[base], c]
            }
            return sprintf("%.2f", sum / seeds[name])
        }
        function better(name, than) { # those swept with one seed stand behind the one that was then taken
            return seeds[name] != seeds[than] ? seeds[name] > seeds[than] : mean_of(name) < mean_of(than)
        }
        function base_of(name) {
            return best[plain[name] ? "adamw" : optimizer[name]]
        }
        FILENAME == "speeds.tsv" {
            if ($3 == shape) speed[$1 ": " $2] = $4
            next
        }
        $3 != shape { next }
        {
            name = $1 ": " $2
            run = name SUBSEP $4
        }
        FILENAME == "curves.tsv" {
            i = ++points[run]
            at[run, i, 1] = $5
            loss[run, i] = $6
            at[run, i, 2] = $7
            next
        }
        {
            if (!seeds[name]++) {
                all[++count] = name
                if ($1 == part) order[++names] = name
                plain[name] = $9 !~ /(model\.(delta|rules|intermediate_size|exit)|train\.precision)/
                optimizer[name] = $9 ~ /train\.optimizer=muon/ ? "muon" : "adamw"
            }
            seed[name, seeds[name]] = $4
            final[name, seeds[name]] = $6
            tokens[name] = $5
            seconds[name] += $7
            if ($1 == part) machine = $10
        }
        # In place of the clock of a run, speeds: seconds are then those that plain AdamW takes for a token.
        function take_speed(name,   j, k, run) {
            if (taken[name]++) return
            seconds[name] = seeds[name] * tokens[name] * speed[name]
            for (j = 1; j <= seeds[name]; j++) {
                run = name SUBSEP seed[name, j]
                for (k = 1; k <= points[run]; k++) at[run, k, 2] = at[run, k, 1] * speed[name]
            }
        }
        END {
            for (i = 1; i <= count; i++) {
                o = optimizer[all[i]]
                if (plain[all[i]] && (!(o in best) || better(all[i], best[o]))) best[o] = all[i]
            }
            clock = "times of speeds.tsv"
            for (i = 1; i <= names; i++)
                if (!(order[i] in speed) || !(base_of(order[i]) in speed)) clock = "times of the runs themselves"
            for (i = 1; i <= names && clock ~ /speeds/; i++) {
                take_speed(order[i])
                take_speed(base_of(order[i]))
            }
            printf "**%s, %s** (%s; %s)\n\n| run | tokens, M | final loss by seed | mean | its base | seconds beside it | tokens to its loss | seconds to its loss |\n", part, shape, machine, clock
            print "| --- | ---: | --- | ---: | --- | ---: | ---: | ---: |"
            for (i = 1; i <= names; i++) {
                name = order[i]
                base = base_of(name)
                print base > bases
                list = ""
                for (j = 1; j <= seeds[name]; j++) list = list (j > 1 ? ", " : "") sprintf("%.4f", final[name, j])
                printf "| %s | %.1f | %s | %.4f | %s | %s | %s | %s |\n", substr(name, length(part) + 3), tokens[name] / 1e6, list, mean_of(name), \
                    substr(base, index(base, ": ") + 2), seeds[base] ? sprintf("%.2f", (seconds[name] / seeds[name]) / (seconds[base] / seeds[base])) : "–", ratio(name, 1), ratio(name, 2)
            }
            print ""
        }' "$speeds" curves.tsv <(sort -s -t $'\t' -k 4,4n results.tsv) # by seed, which may have ended in another order
    [ -n "${1:-}" ] || [ $# -gt 0 ] || continue
    LC_ALL=C awk -F'\t' -v part="$part" -v shape="$shape" '
        FILENAME == "speeds.tsv" {
            if ($3 == shape) speed[$1 ": " $2] = $4
            if ($1 == part && $3 == shape) unit = $7 # microseconds that plain AdamW takes for a token
            next
        }
        FILENAME != "curves.tsv" { base[$0]; next }
        ($1 == part || $1 ": " $2 in base) && $3 == shape {
            if (!(($2, $5) in seeds)) place[$2, ++places[$2]] = $5
            if (places[$2] == 1 && !seeds[$2, $5]) order[++names] = $2
            sum[$2, $5] += $6
            seeds[$2, $5]++
            if ($1 ": " $2 in speed) ratio[$2] = speed[$1 ": " $2]
        }
        END {
            for (i = 1; i <= names; i++) {
                print (i > 1 ? "\n\n" : "") "\"" order[i] "\""
                for (j = 1; j <= places[order[i]]; j++) {
                    at = place[order[i], j]
                    print at / 1e6, sum[order[i], at] / seeds[order[i], at], ratio[order[i]] && unit ? at * ratio[order[i]] * unit / 60e6 : "NaN"
                }
            }
        }' "$speeds" "$bases" curves.tsv > "$part-$shape.data"
    draw 1 "tokens, millions" "$part-$shape" ""
    draw 3 "minutes of one thread" "$part-$shape" -time
    rm "$part-$shape.data"
done
