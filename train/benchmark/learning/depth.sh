#!/usr/bin/env bash
# What rules between layers gain at each depth: depth.sh [--plot]
#
# Prints, of results.tsv, a Markdown table: for each model of part final that was trained at two depths or more of width 128,
# how far it ends below the plain model of the same depth, optimiser, rate and seed: the mean over the seeds that both have, the
# least, the largest, and how many. --plot draws gain-by-depth.svg beside this script.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case "${1:-}" in '' | --plot) ;; *) echo "usage: depth.sh [--plot]" >&2; exit 2 ;; esac
cd "$here"
[ -s results.tsv ] || { echo "depth.sh: no results yet: run.sh makes them" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
data=$scratch/gains

depths=()
for shape in shallow deep deeper; do
    depths+=("$shape=$(awk '$1 == "num_layers:" { print $2 }' $shape.yaml)")
done
# Lines of name, layers, mean, least, largest, seeds; models in the order of the table, depths rising.
LC_ALL=C awk -F'\t' -v depths="${depths[*]}" '
    BEGIN {
        count = split(depths, list, " ")
        for (i = 1; i <= count; i++) { split(list[i], pair, "="); shape[i] = pair[1]; layers[i] = pair[2] }
    }
    { training = $9; gsub(/ ?model\.[^ ]*/, "", training); key = $3 SUBSEP training SUBSEP $4 }
    $9 == training { plain[key] = $6; next }
    $1 == "final" {
        if (!($2 in known)) { known[$2]; names[++models] = $2 }
        final[$2, $3, $4] = $6
        base[$2, $3, $4] = key
    }
    END {
        for (m = 1; m <= models; m++) {
            found = 0
            text = ""
            for (i = 1; i <= count; i++) {
                sum = seeds = 0
                for (seed = 1; seed <= 9; seed++) {
                    if (!((names[m], shape[i], seed) in final) || !(base[names[m], shape[i], seed] in plain)) continue
                    gain = plain[base[names[m], shape[i], seed]] - final[names[m], shape[i], seed]
                    if (!seeds++) least = largest = gain
                    if (gain < least) least = gain
                    if (gain > largest) largest = gain
                    sum += gain
                }
                if (!seeds) continue
                found++
                text = text sprintf("%s\t%d\t%.6f\t%.6f\t%.6f\t%d\n", names[m], layers[i], sum / seeds, least, largest, seeds)
            }
            if (found > 1) printf "%s", text
        }
    }' results.tsv > "$data"

echo "| model | layers | below plain | least | largest | seeds |"
echo "| --- | ---: | ---: | ---: | ---: | ---: |"
LC_ALL=C awk -F'\t' '{ printf "| %s | %d | %.3f | %.3f | %.3f | %d |\n", $1, $2, $3, $4, $5, $6 }' "$data"
[ $# -gt 0 ] || exit 0
cut -f 1 "$data" | awk '!seen[$0]++' > "$data.names"
awk -F'\t' '$1 != last && NR > 1 { print "\n" } { print; last = $1 }' "$data" > "$data.blocks"
gnuplot << END
set terminal svg size 800,420 dynamic background "white"
set output "gain-by-depth.svg"
set title "nats a byte below the plain model: mean, range"
set xlabel "layers of width 128"
set grid
set key outside right noenhanced
set xrange [6:26]
set xtics ($(cut -f 2 "$data" | sort -nu | paste -sd,))
set datafile separator "\t"
names = "$(paste -sd' ' "$data.names")"
plot 0 notitle linecolor "gray", for [i = 0:words(names) - 1] "$data.blocks" index i using 2:3:4:5 with yerrorlines pointsize 0.6 title word(names, i + 1)
END
