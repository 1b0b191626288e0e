#!/usr/bin/env bash
# gdn prune: losses are those that gdn eval measures of models written without the connections; on ranks the same; what is written has the
# tensors kept, to the bit, and is read by every command; where anything is wrong nothing is written.
. "$SOURCE/tests/program/small.sh"

value() { "$JSON_VALUE" "${@:2}" < "$1" || fail "$1 has no ${*:2}: $(cat "$1")"; }
prune() { # OUT ARGUMENT…: with --json
    expect 0 "$GDN" prune "${@:2}" --json > "$1" 2> err
    [ "$(wc -l < "$1")" -eq 1 ] || fail "prune ${*:2}: not one line: $(cat "$1" err)"
}
loss_of() { expect 0 "$GDN" eval "$1" --validation validation --json > eval && value eval loss; } # of the first set, whose sequences are computed by as many
close_numbers() { # TOLERANCE A B
    LC_ALL=C awk -v t="$1" -v a="$2" -v b="$3" 'BEGIN { d = a - b; exit !(d * d <= (t * a) ^ 2) }' || fail "$2 and $3 differ"
}
same_weights() { # A B: one has tensors that the other lacks, and nothing else differs
    expect 1 "$GDN" checkpoint diff "$1" "$2" > diff 2> err
    ! grep -v "only in\|/optimizer/" diff | grep "/model/" || fail "tensors differ: $(cat diff)"
}

cat > shared.yaml <<'YAML'
model:
  vocab_size: 257
  hidden_size: 32
  num_layers: 4
  num_heads: 2
  intermediate_size: 48
  delta: {distances: [1, 2], embedding_source: true, aggregate: attention, attention_dim: 4, hidden: 8, gate_hidden: 4}
train: {steps: 25, batch_size: 12, sequence_length: 16, lr: 0.02, warmup_steps: 3, eval_interval: 25, eval_batches: 4}
data: {train: text.txt, validation_fraction: 0.1, validations: {words: text.txt}}
YAML
expect 0 "$GDN" train shared.yaml --run-dir whole > train.log 2>&1

# Half of seven.
prune half.json whole --keep 0.5 --output half --points 20
value half.json connections 6 target > /dev/null
! "$JSON_VALUE" connections 7 target < half.json > /dev/null 2>&1 || fail "more than 7 connections: $(cat half.json)"
[ "$(value half.json kept)" -eq 4 ] || fail "not 4 of 7 are kept: $(cat half.json)"
[ "$(value half.json loss)" = "$(loss_of whole)" ] || fail "another loss with all: $(cat half.json eval)"
[ "$(value half.json kept_loss)" = "$(loss_of half)" ] || fail "another loss with half: $(cat half.json eval)"
[ "$(value half.json tokens)" = "$(value eval tokens)" ] || fail "other tokens: $(cat half.json eval)"
same_weights whole half
[ "$(h5ls -r half/checkpoint.h5 | grep -c '/output_proj/weight')" -eq 4 ] || fail "not four connections' tensors"
expect 0 "$GDN" checkpoint verify half > verified
for at in 0 1 2 3 4 5 6; do # falling importance, and the first four
    printf '%s %s %s %s\n' "$(value half.json connections $at increase)" "$(value half.json connections $at target)" \
        "$(value half.json connections $at source)" "$(value half.json connections $at kept)"
done > connections
LC_ALL=C sort -rg -k1,1 -c connections || fail "not by importance: $(cat connections)"
[ "$(awk '{ print $4 }' connections | paste -sd' ')" = "true true true true false false false" ] || fail "others are kept: $(cat connections)"
head -4 connections | sort -k2,2n -k3,3nr | awk '{ printf "%s[%d, %d]", (NR > 1) ? ", " : "", $2, $3 }' > edges
close_numbers 1e-14 "$(value half.json curve 1 loss)" "$(LC_ALL=C awk -v a="$(value half.json loss)" -v b="$(value half.json connections 6 increase)" \
    'BEGIN { printf "%.17g", a + b }')" # without the least important alone
grep -qxF "    edges: [$(cat edges)]" half/config.yaml || fail "other edges than $(cat edges): $(grep edges half/config.yaml)"

# Layers: the least important go, by leaving each out or by angle; the loss is that of the model written, which goes on like any other.
prune layers.json whole --layers 2 --output less
[ "$(value layers.json kept_loss)" = "$(loss_of less)" ] && [ "$(value layers.json loss)" = "$(value half.json loss)" ] || fail "other losses: $(cat layers.json eval)"
for at in 0 1 2 3; do printf '%s %s %s\n' "$(value layers.json layers $at increase)" "$(value layers.json layers $at layer)" "$(value layers.json layers $at kept)"; done > layers
LC_ALL=C sort -rg -k1,1 -c layers && [ "$(awk '{ print $3 }' layers | paste -sd' ')" = "true true false false" ] || fail "not by importance: $(cat layers)"
grep -q "^  num_layers: 2$" less/config.yaml || fail "not two layers: $(grep num_layers less/config.yaml)"
prune alone.json whole --layers 1 --output without # what leaving one out has measured
close_numbers 1e-14 "$(loss_of without)" "$(LC_ALL=C awk -v a="$(value layers.json loss)" -v b="$(value layers.json layers 3 increase)" 'BEGIN { printf "%.17g", a + b }')"
prune angle.json whole --layers 3 --by angle
expect 0 mpirun --oversubscribe -n 3 "$GDN" prune whole --layers 3 --by angle --json > angle_3.json 2> err
for at in 0 1 2 3; do
    [ "$(value angle.json layers $at layer)" = "$(value angle_3.json layers $at layer)" ] || fail "another order on ranks: $(cat angle_3.json)"
    close_numbers 1e-5 "$(value angle.json layers $at angle)" "$(value angle_3.json layers $at angle)"
done
[ "$(value angle.json layers 0 increase)" = null ] || fail "measured what was not asked for"
expect 0 "$GDN" train less/config.yaml --run-dir less_healed --set train.steps=2 > train.log 2>&1
refused "one at least stays" "$GDN" prune whole --layers 4
refused "of layers leave-one-out or angle is expected" "$GDN" prune whole --layers 1 --by contribution
refused "--layers leaves out layers" "$GDN" prune whole --layers 1 --keep 0.5

# Without one alone: the model written without the least important.
prune one.json whole --keep 0.86 --output one --points 2
[ "$(value one.json kept)" -eq 6 ] || fail "not 6 of 7 are kept"
close_numbers 1e-14 "$(loss_of one)" "$(LC_ALL=C awk -v a="$(value one.json loss)" -v b="$(value one.json connections 6 increase)" 'BEGIN { printf "%.17g", a + b }')"
[ "$(value one.json curve 2 kept)" -eq 0 ] && [ "$(value one.json curve 2 loss)" = "$(value half.json curve 7 loss)" ] || fail "curves differ"
# By first order: one pass, on ranks the same; leave-one-out has it beside its own, and how well they agree.
prune effects.json whole --by first-order --points 2
grep -q "\"by\":\"first-order\",\"correlation\":null,\"effect_correlation\":null" effects.json || fail "$(cat effects.json)"
expect 0 mpirun --oversubscribe -n 3 "$GDN" prune whole --by first-order --points 2 --json > effects_3.json 2> err
for at in 0 1 2 3 4 5 6; do
    [ "$(value effects.json connections $at target)" = "$(value effects_3.json connections $at target)" ] || fail "another order on ranks: $(cat effects_3.json)"
    close_numbers 1e-4 "$(value effects.json connections $at effect)" "$(value effects_3.json connections $at effect)"
    printf '%s\n' "$(value effects.json connections $at effect)"
done > effects
LC_ALL=C sort -rg -c effects && [ "$(sort -u effects | wc -l)" -ge 6 ] || fail "not by effect: $(cat effects)"
for at in 0 1 2 3 4 5 6; do value half.json connections $at effect; done | sort -g > beside
sort -g effects | cmp - beside || fail "other effects beside leave-one-out"
LC_ALL=C awk -v r="$(value half.json effect_correlation)" 'BEGIN { exit !(r >= -1 && r <= 1) }' || fail "no correlation: $(cat half.json)"
refused "leave-one-out, contribution or first-order (of --layers angle too) is expected" "$GDN" prune whole --by second-order

prune none.json whole --keep 0 --output none --by contribution
[ "$(value none.json correlation)" = null ] && [ "$(value none.json connections 0 increase)" = null ] || fail "measured what was not asked for"
[ "$(value none.json kept_loss)" = "$(loss_of none)" ] && [ "$(value none.json kept_loss)" = "$(value half.json curve 7 loss)" ] || fail "another loss without any"
! h5ls -r none/checkpoint.h5 | grep -q delta || fail "tensors of connections are left"

# On two ranks, and in words.
expect 0 mpirun --oversubscribe -n 2 "$GDN" prune whole --keep 0.5 --json > ranks.json 2> err
for key in "loss" "kept_loss" "connections 0 increase" "connections 3 gate" "connections 3 contribution" "curve 5 loss"; do
    tolerance=1e-6
    case $key in *increase) tolerance=1e-2 ;; esac # a difference of losses of floats
    close_numbers $tolerance "$(value half.json $key)" "$(value ranks.json $key)"
done
expect 0 "$GDN" prune whole --keep 0.5 --svg curve.svg > words
grep -q "^connections  7, of which 4 are kept$" words && [ "$(grep -c "  kept$" words)" -eq 4 ] && grep -q "^correlation " words || fail "words: $(cat words)"
grep -q "</svg>" curve.svg || fail "no picture"
expect 0 "$GDN" prune whole --validation words --by contribution > words
expect 0 "$GDN" eval whole --validation words > eval
[ "$(grep "^loss " eval)" = "$(sed -n 's/^\(loss .*\) with all$/\1/p' words)" ] || fail "--validation: $(cat words eval)"

# Read by every command: a training that changes nothing has the same loss; one more pruning.
expect 0 "$GDN" train half/config.yaml --run-dir healed --set train.steps=1 --set train.lr=0 > train.log 2>&1
[ "$(loss_of healed)" = "$(value half.json kept_loss)" ] || fail "training starts from other weights: $(cat train.log)"
expect 0 "$GDN" plan half/config.yaml --flops 1e11 > plan.log
expect 0 "$GDN" generate half --prompt the --length 5 > text
prune again.json half --keep 0.5 --output again
[ "$(value again.json kept)" -eq 2 ] && [ "$(value again.json kept_loss)" = "$(loss_of again)" ] || fail "pruned again: $(cat again.json eval)"

# A distance that is yet to be introduced is none of the model's.
expect 3 "$GDN" train small.yaml --run-dir early --set train.stop_at=5 > train.log 2>&1
prune early.json early --keep 1 --output both
[ "$(value early.json kept)" -eq 2 ] && [ "$(value early.json kept_loss)" = "$(loss_of both)" ] || fail "not yet introduced: $(cat early.json)"
same_weights early both

# What the configuration said of connections that are gone is taken back, so that it can be read.
expect 0 "$GDN" train shared.yaml --run-dir stored --set train.steps=1 --set delta_store.interval=1 --set delta_store.ratio=0.5 --set 'delta_store.layers=[0]' \
    --set model.delta.distances=[1] --set "train.groups=[{match: 'layers.*.delta.*', lr_scale: 2}, {match: '*.mlp.*', lr_scale: 3}]" > train.log 2>&1
prune last.json stored --keep 0.75 --output last --by contribution # all but the embedding's into the first layer, the least, or that among them
prune empty.json stored --keep 0 --output empty --by contribution
for model in last empty; do [ "$(value $model.json kept_loss)" = "$(loss_of $model)" ] || fail "another loss: $(cat $model.json eval)"; done
grep -q "interval: 0" <(sed -n '/^delta_store:/,/^[a-z]/p' empty/config.yaml) || fail "a plain transformer stores differences"
grep -qF "groups: [{match: \"layers.*.delta.*\", lr_scale: 2.0}, {" last/config.yaml || fail "other groups: $(grep groups: last/config.yaml)"
expect 0 "$GDN" train empty/config.yaml --run-dir plain --set train.steps=1 > train.log 2>&1

# So is what it said of layers: settings follow theirs to its new number, and where fewer are left than stages there is one stage.
expect 0 mpirun --oversubscribe -n 2 "$GDN" train shared.yaml --run-dir staged --set train.steps=1 --set mesh.pipeline=2 --set mesh.compress_boundary=0.5 \
    --set "train.groups=[$(for l in 0 1 2 3; do printf "{match: 'layers.%d.*', lr_scale: %d}, " $l $((l + 2)); done){match: 'norm.*', lr_scale: 9}]" > train.log 2>&1
prune staged.json staged --layers 3 --output staged_1
expected="groups: [{match: \"layers.0.*\", lr_scale: $(($(value staged.json layers 0 layer) + 2)).0}, {match: \"norm.*\", lr_scale: 9.0}]"
grep -qF "$expected" staged_1/config.yaml || fail "not $expected: $(grep groups: staged_1/config.yaml)"
expect 0 "$GDN" train staged_1/config.yaml --run-dir staged_2 --set train.steps=1 > train.log 2>&1

# Whatever is wrong, one message and nothing written.
refused "has no delta connections to be pruned" "$GDN" prune none --keep 0.5 --output bad
refused "--keep says what part" "$GDN" prune whole --output bad
refused "--keep is '1.5'" "$GDN" prune whole --keep 1.5 --output bad
refused "--by 'most'" "$GDN" prune whole --by most
refused "half is there already and not empty" "$GDN" prune whole --keep 0.5 --output half
LC_ALL=C refused "in which UTF-8 is expected" "$GDN" prune whole --keep 0.5 --output $'half\xfe'
refused "cannot be written" "$GDN" prune whole --keep 0.5 --output nowhere/bad
refused "'no' is none of the run's validation sets" "$GDN" prune whole --keep 0.5 --validation no --output bad
refused "nowhere" "$GDN" prune nowhere --keep 0.5 --output bad
[ ! -e bad ] && [ -z "$(find . -name '.*.partial')" ] || fail "something is left: $(ls -A)"
