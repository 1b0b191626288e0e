#!/usr/bin/env bash
# Connections that are listed one by one (model.delta.edges): what everywhere.sh says of a model that has them; they are part of the model,
# stored and shown like any others, and go to other programs and come back.
. "$SOURCE/tests/program/eight_layers.sh"
. "$SOURCE/tests/program/everywhere.sh"
fewer_steps
sed -i 's/aggregate: mean/aggregate: attention, attention_dim: 3/' listed.yaml

on 1.1.1 listed listed --set train.gate_interval=6 --set delta_store.interval=6 --set delta_store.ratio=0.5 --set monitor.interval=5
everywhere listed

# As listed, once each: layer and distance.
printf '%s\n' '0 1' '2 1' '3 1' '3 3' '3 4' '6 5' '7 1' '7 4' '7 8' > right
h5ls -r listed/checkpoints/step_00000012/checkpoint.h5 | sed -n 's:^/model/layers/\([0-9]*\)/delta/\([0-9]*\)/output_proj/weight .*:\1 \2:p' > stored
cmp right stored || fail "tensors of other connections: $(cat stored)"
grep '"event":"gates"' listed/metrics.jsonl | tail -1 | sed 's/.*"layer":\[//; s/\].*"distance":\[/ /; s/\].*//' > gates
[ "$(cat gates)" = "0,2,3,3,3,6,7,7,7 1,1,1,3,4,5,1,4,8" ] || fail "gates of other connections: $(cat gates)"
grep -q '"active_connections":9' listed/metrics.jsonl || fail "not nine active connections"
h5ls listed/deltas/step_00000006/layer_003.h5 | grep -o 'distance_[0-9]*' | tr '\n' ' ' > differences
[ "$(cat differences)" = "distance_1 distance_3 distance_4 " ] || fail "other differences are stored: $(cat differences)"
expect 0 "$GDN" report listed > report.log

refused "model.delta.edges is [[2, 1]], in the checkpoint [[0, -1], [2, 1]" "$GDN" train listed.yaml --run-dir listed --set 'model.delta.edges=[[2, 1]]'
refused_run "model.delta.edges[1] is [8, 1]: with model.num_layers 8, a target from 0 to 7" 1 listed.yaml --set 'model.delta.edges=[[2, 1], [8, 1]]'

if "$GDN" --version | grep -q float32; then
    expect 0 "$GDN" checkpoint export --format huggingface listed away > export.log
    expect 0 "$GDN" checkpoint import away back.h5 > back.yaml
    grep -q 'edges: \[\[0, -1\], \[2, 1\], ' back.yaml || fail "other edges came back: $(cat back.yaml)"
    expect 1 "$GDN" checkpoint diff listed back.h5 > diff 2> err # which has no optimiser
    ! grep -q "/model/" diff || fail "weights differ: $(cat diff)"
fi
