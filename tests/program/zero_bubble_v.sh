#!/usr/bin/env bash
# mesh.schedule zero_bubble_v: zero_bubble_v.sh [short]. On each mesh losses, norms and evaluations equal one rank's, memory is as
# planned, also with recomputation, dropout, the tensor axis's ways, narrow sources, rules between layers, batches that grow; the same
# run twice has the same bits; a run goes on under other schedules; mesh.schedule_memory bounds what training takes. A model on each mesh, in turn. short: few meshes.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps
short=${1:-}
v="--set mesh.schedule=zero_bubble_v"

against_one() { # MESH [OPTION …]
    local mesh=$1 name chosen=$models
    shift
    in_turn 1
    for name in $chosen; do
        rm -rf there one
        # shellcheck disable=SC2086
        on $mesh $name there $v "$@"
        memory_as_planned there
        on 1.1.1 $name one "$@" --set mesh.sequence_parallel=false --set mesh.delta=channel
        close one there
    done
}

models=mean against_one 1.1.4
models=adaptive against_one 2.2.2 --set mesh.sequence_parallel=true

# The same bits again, and after stops; under another schedule in between but for the order of sums.
# shellcheck disable=SC2086
on 1.1.4 mean usual $v
for run in same other; do
    for stop in 3 7 12; do
        schedule=zero_bubble_v status=3
        [ $run.$stop != other.7 ] || schedule=1f1b
        [ $stop -ne 12 ] || status=0
        expect $status mpirun --oversubscribe -n 4 "$GDN" train mean.yaml --run-dir $run --set mesh.pipeline=4 --set train.stop_at=$stop \
            --set mesh.schedule=$schedule >> $run.log 2>&1
    done
done
equal usual same
close usual other

# needs GIB: bytes of the rank that training takes most of, with mesh.schedule_memory, but for messages and sums; GiB of a part
needs() {
    # shellcheck disable=SC2086
    "$GDN" plan mean.yaml --ranks 4 --set mesh.pipeline=4 --set checkpoint.asynchronous=false --set data.validation_fraction=0 \
        --set train.eval_interval=0 $v --set mesh.schedule_memory="$1" --json | grep -o '"memory":{[^}]*}' | sed 's,"communication":[0-9]*\,,,' |
        awk '{ all = 0; gsub(/[^0-9,]/, ""); n = split($0, part, ","); for (i = 1; i <= n; i++) all += part[i]; print all }' | sort -n | tail -1
}
gib() { awk -v all="$1" -v part="$2" 'BEGIN { printf "%.9f", all * part / 2^30 }'; }
usual=$(needs 0) # with one weight set, and no bound
for part in 0.9 1.2 1.5; do
    given=$(gib "$usual" $part) bytes=$(needs "$(gib "$usual" $part)")
    awk -v bytes="$bytes" -v given="$given" -v usual="$usual" -v part=$part \
        'BEGIN { exit !(bytes <= given * 2^30 + 1 && (part < 1 || bytes > usual) && bytes > 0.5 * given * 2^30) }' ||
        fail "schedule_memory of $given GiB, $part of $usual bytes: $bytes"
done
# shellcheck disable=SC2086
on 1.1.4 mean more $v --set mesh.schedule_memory="$(gib "$usual" 1.5)"
memory_as_planned more
close usual more
refused_run "GiB, of which pipeline rank" 4 mean.yaml --set mesh.pipeline=4 $v \
    --set mesh.schedule_memory="$(gib "$usual" 0.2)"
refused_run "mesh.schedule_memory" 4 mean.yaml --set mesh.pipeline=4 --set mesh.schedule_memory=1

refused_run "mesh.pipeline" 1 mean.yaml $v
refused_run "mesh.interleave" 2 mean.yaml --set mesh.pipeline=2 --set mesh.interleave=2 $v
refused_run "2 x pipeline stages needs at least one layer" 5 mean.yaml --set mesh.pipeline=5 $v

[ -z "$short" ] || exit 0
against_one 1.1.2
against_one 1.2.2
against_one 1.1.3
against_one 2.1.4
against_one 1.2.4 --set mesh.delta=connection
against_one 1.1.4 --set mesh.overlap=false --set mesh.narrow_sources=false
rules="{kind: lane}, {kind: mix, form: gated, from: both, distances: [1, 3], hidden: 5}, {kind: dense, form: dynamic, channels: [query, key, value], hidden: 5}, {kind: value, sources: [2], distances: [1, 4]}, {kind: value, form: residual}, {kind: value, form: embedding, layers: [0, 3, 6]}"
more="{kind: depth_attention, block: 3}, {kind: depth_attention, place: value, block: 4}, {kind: dense, place: head, form: dynamic, hidden: 3}, {kind: mix, place: value, distances: [3]}"
sed "s/^  num_heads.*/&\n  attention_bias: all\n  qk_norm: head\n  rules: [$rules]/" heads.yaml > rules.yaml
sed "s/^  num_heads.*/&\n  rules: [$more]/" heads.yaml > more.yaml
sed "s/^  num_heads.*/&\n  rules: [{kind: hyper, streams: 2, form: dynamic}]/" plain.yaml > streams.yaml
models=rules against_one 1.2.2 --set mesh.sequence_parallel=true --set train.dropout.residual=0.1 --set train.dropout.gate=0.1
models=more against_one 1.1.4
models=streams against_one 1.2.2
models=learned against_one 1.1.4 --set train.optimizer=muon
models=attention against_one 1.1.2 --set train.batch_ramp='[[0, 8], [4, 16]]'
models=full against_one 1.1.4 --set train.recompute=selective
models=heads against_one 1.1.4 --set train.recompute=full
sed -i '0,/^  intermediate_size.*/s//&\n  exit: {layers: [0, 3, 5], weights: [0.2, 0.3, 0.4], curriculum: gradual}/' mean.yaml
models=mean against_one 1.1.4
