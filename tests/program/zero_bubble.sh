#!/usr/bin/env bash
# mesh.schedule zero_bubble beside 1f1b: zero_bubble.sh [short]. On each mesh losses, norms, evaluations and final tensors are the
# same to the bit, memory is as planned and for training no more than 1f1b's largest rank has, also with recomputation, dropout,
# the tensor axis's ways, rules between layers, batches that grow; a run goes on under the other schedule.
# A model on each mesh, in turn. short: few meshes.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps
short=${1:-}

# waits CONFIG MESH [OPTION …]: gradients of weights wait on some rank
waits() {
    local config=$1 data tensor pipeline
    IFS=. read -r data tensor pipeline <<< "$2"
    shift 2
    "$GDN" plan "$config.yaml" --ranks $((data * tensor * pipeline)) --set mesh.data="$data" --set mesh.tensor="$tensor" \
        --set mesh.pipeline="$pipeline" --set mesh.schedule=zero_bubble "$@" > planned
    grep -q "^schedule  zero_bubble: gradients of weights wait" planned || fail "nothing waits: $(cat planned)"
}

against_1f1b() { # MESH [OPTION …]
    local mesh=$1 name chosen=$models
    shift
    in_turn 1
    for name in $chosen; do
        rm -rf usual zero
        waits $name $mesh "$@"
        on $mesh $name usual "$@"
        on $mesh $name zero "$@" --set mesh.schedule=zero_bubble
        equal usual zero
        memory_as_planned zero
    done
}

against_1f1b 1.1.4
against_1f1b 2.2.2 --set mesh.sequence_parallel=true

# A run that goes on under the other schedule is the one that never changed it.
rm -rf usual changed
on 1.1.4 mean usual
for stop in 3 7 12; do
    schedule=1f1b
    [ $stop -ne 7 ] || schedule=zero_bubble
    status=3
    [ $stop -ne 12 ] || status=0
    expect $status mpirun --oversubscribe -n 4 "$GDN" train mean.yaml --run-dir changed --set mesh.pipeline=4 --set train.stop_at=$stop \
        --set mesh.schedule=$schedule >> changed.log 2>&1
done
equal usual changed

# A stage that reads the embedding whole, by connections narrow enough for the form whose products share operands.
"$GDN" plan "$SOURCE/configs/tiny.yaml" --ranks 4 --set mesh.pipeline=4 --set mesh.schedule=zero_bubble --set train.micro_batch_size=1 \
    --set model.delta.embedding_source=true > planned || fail "no plan: $(cat planned)"

# With more memory more waits.
on 1.1.4 mean more --set mesh.schedule=zero_bubble --set mesh.schedule_memory=1
equal usual more
memory_as_planned more

# For training no rank needs more than 1f1b's largest, though others have more.
for options in "" "--set train.recompute=full" "--set train.recompute=selective"; do
    for schedule in 1f1b zero_bubble; do
        # shellcheck disable=SC2086
        "$GDN" plan mean.yaml --ranks 4 --set mesh.pipeline=4 --set checkpoint.asynchronous=false --set data.validation_fraction=0 \
            --set train.eval_interval=0 --set mesh.schedule=$schedule $options --json | grep -o '"memory":{[^}]*}' |
            awk '{ all = 0; gsub(/[^0-9,]/, ""); n = split($0, part, ","); for (i = 1; i <= n; i++) all += part[i]; print all }' > all.$schedule
    done
    usual=$(sort -n all.1f1b | tail -1) most=$(sort -n all.zero_bubble | tail -1)
    [ "$most" -le "$usual" ] || fail "$options: $most bytes, of $usual"
    ! cmp -s all.1f1b all.zero_bubble || fail "$options: no rank has weight sets"
done

refused_run "mesh.pipeline" 1 mean.yaml --set mesh.schedule=zero_bubble
refused_run "mesh.interleave" 2 mean.yaml --set mesh.pipeline=2 --set mesh.interleave=2 --set mesh.schedule=zero_bubble
refused_run "1f1b, zero_bubble or zero_bubble_v is expected" 2 mean.yaml --set mesh.pipeline=2 --set mesh.schedule=zero_bubble_w

[ -z "$short" ] || exit 0
against_1f1b 1.1.2
against_1f1b 1.2.2
against_1f1b 1.1.8
against_1f1b 1.1.4 --set mesh.overlap=false --set mesh.narrow_sources=false

# What else passes can be: rules between layers, all that is dropped, recomputation, batches that grow,
# Muon.
rules="{kind: lane}, {kind: mix, form: gated, from: both, distances: [1, 3], hidden: 5}, {kind: dense, form: dynamic, channels: [query, key, value], hidden: 5}, {kind: value, sources: [2], distances: [1, 4]}, {kind: value, form: residual}, {kind: value, form: embedding, layers: [0, 3, 6]}"
more="{kind: depth_attention, block: 3}, {kind: depth_attention, place: value, block: 4}, {kind: dense, place: head, form: dynamic, hidden: 3}, {kind: mix, place: value, distances: [3]}"
sed "s/^  num_heads.*/&\n  attention_bias: all\n  qk_norm: head\n  rules: [$rules]/" heads.yaml > rules.yaml
sed "s/^  num_heads.*/&\n  rules: [$more]/" heads.yaml > more.yaml
sed "s/^  num_heads.*/&\n  rules: [{kind: hyper, streams: 2, form: dynamic}]/" plain.yaml > streams.yaml
dropped=(--set train.dropout.residual=0.1 --set train.dropout.attention=0.1 --set train.dropout.gate=0.1)
models=rules against_1f1b 1.1.4
models=rules against_1f1b 1.2.2 --set mesh.sequence_parallel=true "${dropped[@]}"
models=more against_1f1b 1.1.4
models=streams against_1f1b 1.2.2
models=learned against_1f1b 1.1.4 "${dropped[@]}" --set mesh.delta=connection --set train.optimizer=muon
models=attention against_1f1b 1.1.2 --set train.batch_ramp='[[0, 8], [4, 16]]'
models=mean against_1f1b 1.1.4 --set train.recompute=selective --set train.activations=bf16 --set mesh.wire=bf16
models=adaptive against_1f1b 1.1.4 --set train.recompute=full
models=full against_1f1b 1.2.2 --set train.compress_sources=0.5
