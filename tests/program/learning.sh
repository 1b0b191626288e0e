#!/usr/bin/env bash
# train/benchmark/learning/: every row of the study is a configuration; runs are appended to the tables once, and tables are shown.
set -euo pipefail
fail() { echo "$*"; exit 1; }
folder=$SOURCE/train/benchmark/learning

declare -A planned=() # rows of other seeds have the same settings
while read -r part name shape seeds settings; do
    case "$part" in '' | '#'*) continue ;; esac
    [ -n "$seeds" ] || fail "$part $name: no seeds"
    [ -z "${planned[$shape $settings]:-}" ] || continue
    planned[$shape $settings]=1
    sets=()
    for key in $settings; do sets+=(--set "$key"); done
    "$GDN" plan "$folder/$shape.yaml" "${sets[@]}" > plan 2>&1 || fail "$part $name: $(cat plan)"
done < "$folder/study.tsv"

# The same scripts in a tree of their own, with a text and a study that take a moment.
mkdir -p tree/train/benchmark tree/corpus/reference/train tree/corpus/reference/validation
cp -r "$folder" tree/train/benchmark/
cp "$SOURCE/train/corpus.sh" tree/train/
cp "$SOURCE/train/benchmark/median.sh" tree/train/benchmark/
head -c 20000 "$SOURCE/model/model.md" | LC_ALL=C tr -cd '\n -~' > tree/corpus/reference/train/a.txt
head -c 3000 tree/corpus/reference/train/a.txt > tree/corpus/reference/validation/a.txt
cd tree/train/benchmark/learning
rm -f ./*.tsv ./*.svg
small="train.steps=4 train.eval_interval=2 train.eval_batches=1 train.batch_size=2 train.warmup_steps=1 model.num_layers=1"
printf '# a comment\ntry adamw-a deep 1,2 %s\ntry half deep 1 %s train.lr=1e-3\nother b deep 1 %s\n' "$small" "$small" "$small" > study.tsv
[ "$(./run.sh --part try --dry-run | grep -c '^==')" -eq 3 ] || fail "a dry run lists other runs: $(./run.sh --part try --dry-run)"
./run.sh --part try > log 2>&1 || fail "$(tail -n 5 log)"
[ "$(cut -f 1-5 results.tsv)" = "$(printf 'try\tadamw-a\tdeep\t1\t1024\ntry\tadamw-a\tdeep\t2\t1024\ntry\thalf\tdeep\t1\t1024')" ] || fail "results: $(cat results.tsv)"
[ "$(cut -f 5 curves.tsv | tr '\n' ' ')" = "512 1024 512 1024 512 1024 " ] || fail "curves: $(cat curves.tsv)"
loss=$(sed -n 's/^validation loss \([0-9.]*\)$/\1/p' log | head -n 1)
awk -F'\t' -v loss="$loss" 'NR == 1 { exit !($6 - loss < 6e-5 && loss - $6 < 6e-5) }' results.tsv || fail "the run said $loss, the table $(head -n 1 results.tsv)"
cp results.tsv before
./run.sh --part try > log 2>&1
cmp -s before results.tsv || fail "a run that is there was made again"
./show.sh > tables
grep -q '^| adamw-a | 0.0 | [0-9.]*, [0-9.]* | [0-9.]* | adamw-a | 1.00 | 1.00 | 1.00 |$' tables || fail "tables: $(cat tables)"
# A model with connections is compared with the best plain one of its optimiser, in whatever part that is.
cp curves.tsv plain-curves
printf 'more\tlane\tdeep\t1\t1024\t1.00000\t9\t9\tmodel.rules=[{"kind":lane}]\there\n' >> results.tsv
printf 'more\tlane\tdeep\t1\t512\t1.00000\t9\n' >> curves.tsv
./show.sh | grep -q '^| lane | 0.0 | 1.0000 | 1.0000 | adamw-a | [0-9.]* | 0.50 | [0-9.]* |$' || fail "tables: $(./show.sh)"
# One in another precision is nobody's base, however good it is.
printf 'more\tnarrow\tdeep\t%d\t1024\t0.50000\t9\t9\ttrain.precision=bf16\there\n' 1 2 3 >> results.tsv
./show.sh | grep -q '^| lane | 0.0 | 1.0000 | 1.0000 | adamw-a | ' || fail "tables: $(./show.sh)"
# What rules gain at each depth, of the seeds that have a plain model.
printf '%s\t%s\t%s\t%d\t1024\t%s\t9\t9\t%s\there\n' \
    final plain shallow 1 2.5 train.lr=1e-3 final plain shallow 2 2.25 train.lr=1e-3 final plain deeper 1 2 train.lr=1e-3 \
    final lane shallow 1 2.25 'train.lr=1e-3 model.rules=[{"kind":lane}]' final lane shallow 2 1.875 'train.lr=1e-3 model.rules=[{"kind":lane}]' \
    final lane deeper 1 2.125 'train.lr=1e-3 model.rules=[{"kind":lane}]' final lane deeper 2 1 'train.lr=1e-3 model.rules=[{"kind":lane}]' > results.tsv
[ "$(./depth.sh | tail -n +3)" = "$(printf '| lane | 8 | 0.312 | 0.250 | 0.375 | 2 |\n| lane | 24 | -0.125 | -0.125 | -0.125 | 1 |')" ] || fail "gains: $(./depth.sh)"
cp before results.tsv
mv plain-curves curves.tsv
# Times on one machine side by side: rows that differ by rate or length are one configuration; the table says whose times it has.
sed -i '/^try half/s/train.steps=4/train.steps=5/' study.tsv
grep -q 'times of the runs themselves' tables || fail "tables: $(cat tables)"
sed -i 's/num_layers: 12/num_layers: 1/; s/batch_size: 16/batch_size: 2/' deep.yaml
printf 'other\tb\tdeep\t7\nother\tgone\tdeep\t7\n' > speeds.tsv
./speed.sh --part try --rounds 2 --steps 2 > log 2>&1 || fail "$(tail -n 5 log)"
[ "$(grep -c '^==' log)" -eq 4 ] || fail "configurations: $(cat log)" # plain AdamW and the study's, twice
[ "$(cut -f 1-3 speeds.tsv)" = "$(printf 'other\tb\tdeep\nother\tgone\tdeep\ntry\tadamw-a\tdeep\ntry\thalf\tdeep')" ] || fail "speeds: $(cat speeds.tsv)"
awk -F'\t' '$1 == "try" && !($5 > 0 && $5 <= $4 && $4 <= $6 && $7 > 0) { exit 1 }' speeds.tsv || fail "speeds: $(cat speeds.tsv)"
printf 'try\tadamw-a\tdeep\t2\ntry\thalf\tdeep\t3\n' > speeds.tsv
./show.sh > tables
grep -q 'times of speeds.tsv' tables && grep -q '^| half | .* | 1.50 | ' tables || fail "tables: $(cat tables)"
if command -v gnuplot > /dev/null; then # against time only those whose speed is known
    printf 'try\tadamw-a\tdeep\t2\t2\t2\t60\n' > speeds.tsv
    ./show.sh --plots > tables
    grep -q '<title>half' try-deep.svg && grep -q '<title>adamw-a' try-deep-time.svg && ! grep -q '<title>half' try-deep-time.svg || fail "plots: $(ls)"
    ! ls ./*.data 2> /dev/null || fail "plots leave their numbers behind"
else
    echo "no gnuplot: plots are not drawn"
fi
status=0
./speed.sh --rounds 0 2> message || status=$?
[ $status -eq 2 ] && grep -q "usage: speed.sh" message || fail "status $status: $(cat message)"
status=0
./run.sh --part none 2> message || status=$?
[ $status -eq 2 ] && grep -q "study.tsv has no part none" message || fail "status $status: $(cat message)"
