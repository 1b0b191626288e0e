#!/usr/bin/env bash
# Exits (model.exit): losses of layers below the last are the same on every mesh, with stages that have exits and not the head,
# tied or not; what is computed again and a stopped run that goes on change no bit; what is reserved is what was planned.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps
sed -i '0,/^  intermediate_size.*/s//&\n  exit: {layers: [0, 3, 5], weights: [0.2, 0.3, 0.4], curriculum: gradual}/' mean.yaml learned.yaml

compared() { # RUN RUN: so are losses at the exits, or null in both
    local values='s/.*"exits":\[([^]]*)\].*/\1/'
    paste -d, <(lines step "$1" | sed -E "$values") <(lines step "$2" | sed -E "$values") | LC_ALL=C awk -F, -v tolerance=$losses '
        { for (i = 1; i <= 3; i++) {
              if (($i == "null") != ($(i + 3) == "null")) { print "step " NR ": " $0; exit 1 }
              if ($i == "null") { left++; continue }
              d = ($i - $(i + 3)) / $i; d = d < 0 ? -d : d
              if (d > tolerance) { print "step " NR ": " $0; exit 1 }
              there++
          } }
        END { if (there < 24 || left != 6) { print there + 0 " losses, " left + 0 " left out"; exit 1 } }' || fail "exits of $1 and $2"
}

for name in mean learned; do # tied, and a head of its own
    on 1.1.1 $name $name
    memory_as_planned $name
    on 2.1.1 $name ${name}_data --set train.micro_batch_size=4
    on 1.2.1 $name ${name}_tensor --set mesh.sequence_parallel=true
    on 1.1.2 $name ${name}_stages --set mesh.interleave=2
    on 1.1.4 $name ${name}_four
    for run in ${name}_data ${name}_tensor ${name}_stages ${name}_four; do
        close $name $run
        compared $name $run
        memory_as_planned $run
    done
done
on 1.1.1 mean full --set train.recompute=full
equal mean full

expect 3 "$GDN" train mean.yaml --run-dir again --set train.stop_at=5 > again.log 2>&1
"$GDN" train mean.yaml --run-dir again > again.log 2>&1 || fail "$(cat again.log)"
equal mean again

refused "as many weights as layers" "$GDN" train mean.yaml --run-dir no --set 'model.exit.weights=[1]'
refused "below the last" "$GDN" train mean.yaml --run-dir no --set 'model.exit.layers=[0, 3, 7]'
refused "kept whole" "$GDN" train mean.yaml --run-dir no --set train.compress_sources=0.5
refused "no exits to choose of" "$GDN" train attention.yaml --run-dir no --set model.exit.curriculum=rotate
refused "several" "$GDN" train plain.yaml --run-dir no --set 'model.exit.layers=[0]' --set 'model.exit.weights=[1]' --set 'model.rules=[{kind: hyper}]'
refused "model.exit" "$GDN" checkpoint export --format huggingface mean exported

# Layers that steps leave out: the same on every mesh, whatever is computed again, in any schedule, and after a stop.
sed 's/grad_clip: 0.7/&, dropout: {layer: 0.7}/' attention.yaml > layers.yaml
on 1.1.1 layers layers
memory_as_planned layers
on 2.1.1 layers layers_data --set train.micro_batch_size=4
on 1.2.1 layers layers_tensor --set mesh.sequence_parallel=true
on 1.1.4 layers layers_four
on 1.1.2 layers layers_two
on 1.1.2 layers layers_bubble --set mesh.schedule=zero_bubble
for run in layers_data layers_tensor layers_four layers_two; do
    close layers $run
    memory_as_planned $run
done
equal layers_two layers_bubble
on 1.1.1 layers layers_full --set train.recompute=full
equal layers layers_full
expect 3 "$GDN" train layers.yaml --run-dir layers_again --set train.stop_at=5 > again.log 2>&1
"$GDN" train layers.yaml --run-dir layers_again > again.log 2>&1 || fail "$(cat again.log)"
equal layers layers_again
on 1.1.1 layers layers_none --set train.dropout.layer=0
! cmp -s <(lines step layers) <(lines step layers_none) || fail "no layer is left out"
refused "nothing is known" "$GDN" train layers.yaml --run-dir no --set train.prune.by=contribution
refused "nothing is known" "$GDN" train layers.yaml --run-dir no --set delta_store.interval=2 --set delta_store.ratio=0.5

# What exits are worth: the last layer's loss is an evaluation's, on any number of ranks; the line behind the table is what generation takes.
"$GDN" eval mean --json > plain.json
"$GDN" eval mean --exits --json --svg depth.svg > one.json
mpirun --oversubscribe -n 2 "$GDN" eval mean --exits --json > two.json
number() { grep -o "\"$1\":[-0-9.e]*" "$2" | head -"${3:-1}" | tail -1 | cut -d: -f2; }
grep -q '</svg>' depth.svg || fail "depth.svg"
for file in one.json two.json; do
    LC_ALL=C awk -v a="$(number loss plain.json)" -v b="$(number loss $file)" 'BEGIN { exit !(a - b < 1e-9 && b - a < 1e-9) }' || fail "$file: loss"
    [ "$(grep -o '"layer":' $file | wc -l)" -eq 3 ] || fail "$file: $(cat $file)"
done
[ "$(number agreement one.json 2)" = "$(number agreement two.json 2)" ] || fail "agreement depends on ranks"
"$GDN" eval mean --exits > table
thresholds=$(sed -n 's/^  gdn generate --exit //p' table)
speak() { "$GDN" generate mean --prompt 'seven ' --length 24 --temperature 0 --context 99 "$@"; }
speak > all && speak --exit 2 > never && cmp all never || fail "exits that are not asked change a text"
speak --exit 0,2,2 --stats > early 2> note
grep -q ' on the mean 1.00 of 8 layers a token' note || fail "$(cat note)"
speak --exit "$thresholds" > wished
refused "one for each exit" speak --exit 0.5,0.5
on 1.1.1 heads heads --set train.steps=2
refused "has no exits" "$GDN" generate heads --prompt a --exit 0.5
refused "has no exits" "$GDN" eval heads --exits
refused "goes with --exits" "$GDN" eval mean --svg x.svg
