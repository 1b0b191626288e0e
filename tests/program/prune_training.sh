#!/usr/bin/env bash
# Connections that go while training goes on, and come back (train.prune): the same ones on every mesh, and to the bit where a run was stopped; steps
# are then those of a model without them, to the byte on the wire and the bit; every command takes the checkpoint as one
# of the connections that are left; what does not go together is refused. prune_training.sh [short]: stopped less often.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps
sed -i 's/stage_steps: [0-9]*/stage_steps: 0/' ./*.yaml

prune() { # MODEL PRUNE: MODEL.yaml has it
    sed -i "s/^train: {/&prune: {$2}, /" "$1.yaml"
}
prune mean "by: first_order, begin: 2, end: 8, interval: 3, keep: 0.4"
prune attention "by: first_order, begin: 2, end: 8, interval: 2, keep: 0.3"
prune learned "by: contribution, begin: 1, end: 7, interval: 4, keep: 0.5"
prune heads "by: first_order, begin: 3, end: 9, interval: 6, keep: 0.5"
prune full "by: contribution, begin: 2, end: 8, interval: 3, keep: 0"
prune full_heads "by: first_order, begin: 2, end: 6, interval: 4, keep: 0.25"
prune listed "by: contribution, rule: adaptive, threshold: 1000, begin: 2, end: 8, interval: 3, keep: 0.5"
prune adaptive "by: first_order, rule: threshold, threshold: 1.0e-9, begin: 2, end: 8, interval: 3, keep: 0.25"

for name in mean full_heads; do # by what validation data lose without each
    sed "s/by: [a-z_]*/by: leave_one_out/; s/keep: /batches: 2, &/" $name.yaml > left_$name.yaml
done

gone() { # RUN [EVENT]: STEP LEFT LAYER DISTANCE of each, sorted: of two with shares that are even effects are opposite, so as important
    lines "${2:-prune}" "$1" | sed -E 's/,"importance":.*//; s/"[a-z_]*":/ /g; s/[],]+/ /g' | awk -F'[' '
        { split($1, head, " "); n = split($2, layer, " "); split($3, distance, " ")
          for (i = 1; i <= n; i++) print head[3], head[4], layer[i], distance[i] }' | sort
}
last() { grep '"event":"step"' "$1/metrics.jsonl" | tail -1 | grep -oE "\"$2\":[0-9]+" | tail -1 | cut -d: -f2; }
wire() { grep '"event":"step"' "$1/metrics.jsonl" | sed -n "${2}p" | grep -oE '"communication_bytes":\{[^}]*\}' | grep -oE '"pipeline":[0-9]+' | cut -d: -f2; }

against() { # MESH MODEL: beside one rank
    on "$1" "$2" "$2_$1" "${@:3}"
    close "one_$2" "$2_$1"
    gone "one_$2" > first && gone "$2_$1" > second
    cmp first second || fail "$2 on $1: other connections go: $(cat first second)"
    gone "one_$2" regrow > first && gone "$2_$1" regrow > second
    cmp first second || fail "$2 on $1: other connections come back: $(cat first second)"
    memory_as_planned "$2_$1"
}

if "$GDN" --version | grep -q float64; then # meshes differ by the order of sums alone
    for name in mean attention learned heads full full_heads listed left_mean left_full_heads; do
        on 1.1.1 $name one_$name
        [ -s "one_$name/metrics.jsonl" ] && [ -n "$(gone one_$name)" ] || fail "$name: none goes"
    done
    against 1.1.4 mean
    against 2.1.2 learned
    against 1.2.2 heads
    against 1.2.2 attention --set mesh.delta=connection --set mesh.sequence_parallel=true
    against 1.1.4 full_heads --set mesh.interleave=2
    against 1.2.1 full
    against 2.2.2 listed --set mesh.wire=stored
    against 2.1.2 left_mean
    against 1.2.2 left_full_heads --set mesh.interleave=2
    close_to $losses loss leave_one_out one_left_mean left_mean_2.1.2
    for name in learned full full_heads listed; do # changes before every step, with some that come back
        sed "s/interval: [0-9]*, keep/interval: 1, regrow: 0.5, keep/" $name.yaml > back_$name.yaml
        on 1.1.1 back_$name one_back_$name
        [ -n "$(gone one_back_$name regrow)" ] || fail "$name: none comes back"
    done
    against 1.1.4 back_learned
    against 2.1.2 back_full_heads --set mesh.interleave=2
    against 1.2.2 back_full
    against 2.2.1 back_listed
    exit 0
fi

# Of 22, 9 by a cubic schedule: before step 5 22 (0.4 + 0.6 / 8) = 10, before step 8 8.8.
on 1.1.4 mean usual
[ "$(grep '"event":"step"' usual/metrics.jsonl | grep -o '"active_edges":[0-9]*' | uniq -c | awk '{ print $1, $2 }' | paste -sd' ')" = \
    '5 "active_edges":22 3 "active_edges":10 4 "active_edges":9' ] || fail "$(grep -o '"active_edges":[0-9]*' usual/metrics.jsonl | uniq -c)"
memory_as_planned usual
gone usual > usual.gone
[ "$(awk '{ print $1, $2 }' usual.gone | uniq -c | awk '{ print $1, $2, $3 }' | paste -sd,)" = "12 5 10,1 8 9" ] || fail "other changes: $(cat usual.gone)"
grep -q '"margin":0\.[0-9]' usual/metrics.jsonl || fail "no margin"

# Stopped before, between and behind changes: the same to the bit.
stopped() { # CONFIG RUN STEP…: the run of this configuration, stopped at these steps, the last of which is its end, is RUN
    local config=$1 run=$2 stop event
    for stop in "${@:3}"; do
        status=3
        [ $stop -ne 12 ] || status=0
        expect $status mpirun --oversubscribe -n 4 "$GDN" train $config.yaml --run-dir ${run}_stopped --set mesh.pipeline=4 --set train.stop_at=$stop >> stopped.log 2>&1
    done
    equal $run ${run}_stopped
    for event in prune regrow leave_one_out; do
        lines $event ${run}_stopped | cmp - <(lines $event $run) || fail "other events $event: $(lines $event ${run}_stopped)"
    done
}
stops="4 5 8" # of the run below with some that come back
if [ "${1:-}" = short ]; then stops=5; else stopped mean usual 4 7 9 12; fi

# By leaving each out, before steps 2, 5 and 8: likewise, also to the bit where it stops before one.
# Where none goes, training is as without.
on 1.1.4 left_mean judged
memory_as_planned judged
"$GDN" eval judged --set train.eval_batches=1 > /dev/null || fail "a trained model is not pruned any more, whatever an evaluation reads"
[ "$(lines leave_one_out judged | grep -oE '"(step|active_edges|sequences)":[0-9]+' | cut -d: -f2 | paste -sd' ')" = "2 22 32 5 22 32 8 10 32" ] ||
    fail "other evaluations: $(lines leave_one_out judged)"
stopped left_mean judged 5 12

on 1.1.1 left_mean spared --set train.prune.keep=1
on 1.1.1 left_mean never --set train.prune.by=none
for event in step eval; do
    lines $event spared | cmp - <(lines $event never) || fail "$event: measuring has changed the training"
done
grep -q "^note  *train.prune.batches: 2 of no effect: train.prune.by is not leave_one_out" never.log || fail "no note: $(cat never.log)"

# What goes at the first change has the importance that gdn prune finds in that model, on the same data.
once="prune: {by: leave_one_out, rule: threshold, threshold: 1000.0, begin: 6, end: 9, interval: 3, keep: 0.4, batches: 8}"
sed "s/prune: {[^}]*}/$once/" mean.yaml > once.yaml
expect 3 "$GDN" train once.yaml --run-dir once --set train.stop_at=6 > once.log 2>&1
expect 0 "$GDN" prune once --json > whole.json 2> err
expect 0 "$GDN" train once.yaml --run-dir once >> once.log 2>&1
gone once | awk '{ print $3, $4 }' > once.gone
[ "$(wc -l < once.gone)" -eq 13 ] || fail "not 13 of 22 go: $(cat once.gone)"
tr '{' '\n' < whole.json | sed -nE 's/^"target": ?([0-9]+), ?"source": ?-?[0-9]+, ?"distance": ?([0-9]+),.*"increase": ?([-0-9.e]+).*/\1 \2 \3/p' | sort > increases
lines prune once | sed -E 's/"layer":\[([^]]*)\],"distance":\[([^]]*)\],"importance":\[([^]]*)\].*/@\1@\2@\3/' | awk -F@ '
    { n = split($2, layer, ","); split($3, distance, ","); split($4, value, ","); for (i = 1; i <= n; i++) print layer[i], distance[i], value[i] }' | sort > found
[ "$(wc -l < increases)" -eq 22 ] && [ "$(wc -l < found)" -eq 13 ] || fail "not 22 and 13: $(cat increases found)"
LC_ALL=C awk 'NR == FNR { all[$1, $2] = $3; next } { d = all[$1, $2] - $3; if (d * d > 1e-24) { print; exit 1 } }' increases found ||
    fail "another importance than gdn prune finds: $(cat increases found)"

# Some come back: as many are in use, other ones, and stopped or not the same to the bit. Before step 4 p is 4/6:
# 22 (0.4 + 0.6 · 8/27) = 13 places, of which ⌊0.5 · 13 · 4/6⌉ = 4 are for ones that have gone.
sed "s/interval: 3/interval: 1, regrow: 0.5/" mean.yaml > back.yaml
on 1.1.4 back back
memory_as_planned back
counts=$(grep '"event":"step"' back/metrics.jsonl | grep -o '"active_edges":[0-9]*' | cut -d: -f2 | paste -sd' ')
[ "$counts" = "22 22 22 16 13 10 9 9 9 9 9 9" ] || fail "active edges: $counts"
gone back regrow > regrown
[ "$(awk '{ print $1, $2 }' regrown | uniq -c | awk '{ print $1, $2, $3 }' | paste -sd,)" = "4 4 13,3 5 10,2 6 9,1 7 9" ] ||
    fail "other connections come back: $(cat regrown)"
! cmp -s <(gone back | awk '{ print $3, $4 }' | sort -u) <(gone back | awk '{ print $3, $4 }' | sort) || fail "none went twice"
# shellcheck disable=SC2086
stopped back back $stops 12

# Pictures: of each connection a bar for the steps in which it is in use. More than 80 have no names.
if command -v gnuplot > /dev/null; then
    expect 0 "$GDN" deltas plot back --out plots > plot.log 2>&1
    [ "$(cat plot.log)" = plots/connections.svg ] || fail "other words: $(cat plot.log)"
    grep -q 'back: connections in use; 9 of 22 after 12 steps' plots/connections.svg || fail "no title in plots/connections.svg"
    grep -q '7 ← 0' plots/connections.svg && grep -q '0 ← embedding' plots/connections.svg || fail "no names in plots/connections.svg"
    # A path for each bar: all 22 as far as they are left first, and one more for each that came back.
    [ "$(grep -c 'fill = .rgb( 59, 130, 246)' plots/connections.svg)" -eq $((22 + $(wc -l < regrown))) ] ||
        fail "$(grep -c 'fill = .rgb( 59, 130, 246)' plots/connections.svg) bars, $(wc -l < regrown) came back"
    expect 0 "$GDN" report back --output page.html > plot.log 2>&1
    grep -q '9 of 22 connections in use after 12 steps' page.html || fail "the report has no picture of the connections in use"
    refused "choose stored differences" "$GDN" deltas plot back --out plots --layer 3
fi

# As a model of these connections: loss, bytes between stages, text.
expect 0 "$GDN" prune usual --keep 1 --output left --by contribution --json > left.json
[ "$(grep -o '"kept":true' left.json | wc -l)" -eq 9 ] || fail "not 9 are left: $(cat left.json)"
[ "$(h5ls -r left/checkpoint.h5 | grep -c '/output_proj/weight')" -eq 9 ] || fail "not nine connections' tensors"
expect 0 "$GDN" eval usual --json > usual.eval 2> err
expect 0 "$GDN" eval left --json > left.eval 2> err
[ "$(grep -o '"loss":[^,]*' usual.eval | head -1)" = "$(grep -o '"loss":[^,]*' left.eval | head -1)" ] || fail "$(cat usual.eval left.eval)"
for model in usual left; do expect 0 "$GDN" generate $model --prompt the --length 20 --json > $model.text 2> err; done
cmp usual.text left.text || fail "other texts"
expect 0 "$GDN" checkpoint export --format huggingface usual exported > export.log 2>&1
expect 0 "$GDN" checkpoint import exported imported.h5 > import.log 2>&1
expect 0 "$GDN" checkpoint verify usual > verified

expect 0 "$GDN" prune back --keep 1 --output back_left --by contribution --json > left.json
[ "$(grep -o '"kept":true' left.json | wc -l)" -eq 9 ] || fail "not 9 are left: $(cat left.json)"
for model in back back_left; do expect 0 "$GDN" eval $model --json > $model.eval 2> err; done
[ "$(grep -o '"loss":[^,]*' back.eval | head -1)" = "$(grep -o '"loss":[^,]*' back_left.eval | head -1)" ] || fail "$(cat back.eval back_left.eval)"

expect 0 "$GDN" prune usual --keep 0.5 --output fewer --by first-order --json > fewer.json 2> err
expect 0 "$GDN" eval fewer --json > fewer.eval 2> err
[ "$(grep -o '"kept_loss":[^,]*' fewer.json | cut -d: -f2)" = "$(grep -o '"loss":[^,]*' fewer.eval | head -1 | cut -d: -f2)" ] || fail "pruned further: $(cat fewer.json fewer.eval)"

# Where sources travel whole (what travels as projections was chosen with all connections), to the byte.
on 1.1.4 learned whole
expect 0 "$GDN" prune whole --keep 1 --output whole_left --by contribution > /dev/null 2> err
expect 0 mpirun --oversubscribe -n 4 "$GDN" train whole_left/config.yaml --run-dir go_on --set mesh.pipeline=4 --set train.steps=1 > go_on.log 2>&1
[ "$(wire whole 12)" -eq "$(wire go_on 1)" ] && [ "$(wire whole 12)" -lt "$(wire whole 1)" ] ||
    fail "bytes between stages: $(wire whole 1), $(wire whole 12), of a model without them $(wire go_on 1)"

# Thresholds: none goes where all are above it; no fewer than keep where none is.
on 1.1.1 adaptive above --set train.prune.threshold=1e-30
[ -z "$(gone above)" ] || fail "some go: $(gone above)"
on 1.1.1 listed below
[ "$(last below active_edges)" -eq 5 ] && [ "$(gone below | wc -l)" -eq 4 ] || fail "not 5 of 9: $(gone below)"

# Without [5, -1], which its distance makes the least, other sources travel, and need a block more than those of all did.
cat > more.yaml <<'YAML'
model: {vocab_size: 257, hidden_size: 16, num_layers: 6, num_heads: 2, intermediate_size: 24,
        delta: {distances: [], edges: [[5, -1], [3, -1], [3, 2], [4, 0], [5, 1], [5, 4]], hidden: 8, gate_hidden: 4, distance_scale: exponential, decay: 1.5}}
train: {steps: 12, batch_size: 4, micro_batch_size: 1, sequence_length: 9, lr: 0.01, warmup_steps: 0, prune: {by: contribution, keep: 0.8, begin: 7, end: 8}}
data: {train: text.txt, validation_fraction: 0.1}
YAML
stages=(--set mesh.pipeline=3 --set mesh.interleave=2 --set mesh.narrow_sources=false)
on 1.1.1 more one_more
on 1.1.3 more more "${stages[@]}"
[ "$(gone more)" = "8 5 5 6" ] || fail "another one goes: $(gone more)"
close one_more more
expect 3 "$GDN" train more.yaml --run-dir more_stopped --set train.stop_at=10 > more.log 2>&1
expect 0 mpirun --oversubscribe -n 3 "$GDN" train more.yaml --run-dir more_stopped "${stages[@]}" >> more.log 2>&1
close one_more more_stopped

refused_run "model.delta.distances" 1 plain.yaml --set train.prune.by=contribution --set train.prune.end=5
refused_run "train.prune.by is leave_one_out, which measures on validation data" 1 once.yaml --set data.validation_fraction=0
refused_run "train.prune.batches: 8" 1 once.yaml --set train.eval_batches=7
refused_run "an end above begin is expected" 1 mean.yaml --set train.prune.end=2
refused_run "model.delta.stage_steps: 3" 1 mean.yaml --set model.delta.stage_steps=3
refused_run "no importance lies below a threshold of 0" 1 mean.yaml --set train.prune.rule=threshold
refused_run "a budget has no threshold" 1 mean.yaml --set train.prune.threshold=1
refused_run "mesh.schedule: zero_bubble" 2 mean.yaml --set mesh.pipeline=2 --set mesh.schedule=zero_bubble
refused_run "train.compress_sources" 1 mean.yaml --set train.compress_sources=0.5
refused_run "mesh.compress_boundary" 2 mean.yaml --set mesh.pipeline=2 --set mesh.compress_boundary=0.5
refused_run "delta_store.interval" 1 mean.yaml --set delta_store.interval=5 --set delta_store.ratio=0.5
refused_run "train.graphs" 1 mean.yaml --set train.graphs=true
refused_run "device" 1 mean.yaml --set device=cuda
refused "train.prune.keep" mpirun --oversubscribe -n 4 "$GDN" train mean.yaml --run-dir usual --set mesh.pipeline=4 --set train.steps=14 --set train.prune.keep=0.5
