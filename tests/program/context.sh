#!/usr/bin/env bash
# mesh.context: context.sh [all]. Sequences cut over ranks train as whole ones do, by every exchange and on meshes with other axes
# too, up to the order of sums; bytes and memory are as planned; a run goes on with other context ranks and exchanges, and on the same
# to the bit; evaluations of its checkpoints are one rank's. Documents may not see each other, and training may drop. What does not go together is refused. all: every mesh.
. "$SOURCE/tests/program/small.sh"
settings=(--set train.steps=12 --set train.micro_batch_size=2 --set train.gate_interval=5 --set train.noise_interval=5 --set mesh.bucket=4096
    --set mesh.small=512 --set watchdog.replicas=3 --set train.eval_batches=2 --set model.num_layers=4 --set model.delta.stage_steps=3
    --set train.eval_interval=6 --set train.grad_clip=0.7 --set train.z_loss=0.02 --set model.num_heads=8 --set model.num_kv_heads=4)
heads=(--set mesh.context_exchange=heads) ring=(--set mesh.context_exchange=ring)

on() { # DATA.TENSOR.PIPELINE.CONTEXT: sets $options and $ranks
    local data tensor pipeline context
    IFS=. read -r data tensor pipeline context <<< "$1"
    options=("${settings[@]}" --set mesh.data="$data" --set mesh.tensor="$tensor" --set mesh.pipeline="$pipeline" --set mesh.context="$context")
    ranks=$((data * tensor * pipeline * context))
}

run() { # MESH DIRECTORY [OPTION …]
    on "$1"
    train $ranks "$2" "${options[@]}" "${@:3}"
}

without_noise=
close() { # RUN RUN: but for the order of sums
    close_to $losses loss step "$1" "$2"
    close_to $losses sparsity step "$1" "$2"
    close_to $losses entropy step "$1" "$2"
    close_to $norms grad_norm step "$1" "$2"
    close_to $losses loss eval "$1" "$2"
    [ -n "$without_noise" ] || close_to $norms variance noise "$1" "$2"
    lines gates "$1" | grep -oE '[0-9]\.[0-9e-]+' > first.gates
    lines gates "$2" | grep -oE '[0-9]\.[0-9e-]+' > second.gates
    [ -s first.gates ] && paste first.gates second.gates | LC_ALL=C awk -v most=$norms '
        { d = $1 - $2; if (d < 0) d = -d; if (!(d <= most * $1)) { print; exit 1 } }' || fail "gates of $2"
}

# Of rank 0 what it hands over once all connections are there; of the rank that needs most what it reserves.
as_planned() { # MESH RUN [OPTION …]
    on "$1"
    "$GDN" plan small.yaml --ranks $ranks "${options[@]}" --flops 1e11 --json "${@:3}" > plan.json
    bytes_as_planned 11 "$2"
    grep -q '^"context":[1-9]' planned || fail "nothing travels between context ranks: $(paste -sd' ' planned)"
    memory_as_planned "$2"
}

one=one
against_one() { # MESH [OPTION …]
    rm -rf cut
    expect 0 run "$1" cut "${@:2}"
    close $one cut
    as_planned "$1" cut "${@:2}"
}

expect 0 run 1.1.1.1 one
against_one 2.1.1.2 --set train.recompute=full
against_one 1.1.1.4
"$GDN" eval cut --json > eval.json
recorded=$(grep '"event":"eval"' cut/metrics.jsonl | tail -1 | grep -oE '"loss":[0-9.e-]+' | head -1)
again=$(grep -oE '"loss":[0-9.e-]+' eval.json | head -1)
LC_ALL=C awk -v a="${recorded#*:}" -v b="${again#*:}" -v most=$losses 'BEGIN { d = (a - b) / a; if (d < 0) d = -d; exit !(d <= most) }' ||
    fail "evaluated on one rank: $again, in training: $recorded"
against_one 1.2.2.2 --set mesh.sequence_parallel=true --set mesh.schedule=zero_bubble
against_one 2.1.1.2 "${heads[@]}" --set train.recompute=full
against_one 1.2.2.2 "${heads[@]}" --set mesh.sequence_parallel=true --set mesh.schedule=zero_bubble
against_one 1.1.1.4 "${heads[@]}"
mv cut heads
against_one 1.2.2.2 "${ring[@]}" --set train.recompute=full --set mesh.schedule=zero_bubble
against_one 1.1.1.4 "${ring[@]}"
mv cut ring

# A run that stops and goes on, on the same mesh and then on others.
expect 3 run 1.1.1.4 again --set train.stop_at=4 2> /dev/null
expect 0 run 1.1.1.4 again
rm -rf cut && expect 0 run 1.1.1.4 cut
equal cut again
for exchange in heads ring; do
    rm -rf again && expect 3 run 1.1.1.4 again --set mesh.context_exchange=$exchange --set train.stop_at=4 2> /dev/null
    expect 0 run 1.1.1.4 again --set mesh.context_exchange=$exchange
    equal $exchange again
done
expect 3 run 2.1.1.2 moved --set train.stop_at=3 2> /dev/null
expect 3 run 1.1.1.2 moved "${heads[@]}" --set train.stop_at=6 2> /dev/null
expect 3 run 1.1.1.1 moved --set train.stop_at=8 2> /dev/null
expect 3 run 1.1.1.2 moved "${ring[@]}" --set train.stop_at=10 2> /dev/null
expect 0 run 1.1.1.4 moved
close one moved

# Documents that do not see each other, of a token and of several sequences: most begin in another piece than they end in. Whole ones, packed.
# What is dropped of a step is the same too.
mkdir texts
split -n l/2500 -a 3 text.txt texts/
find texts -empty -delete
plain=("${settings[@]}")
settings+=(--set 'data.train=texts/*' --set data.documents=mask --set data.packing=best_fit
    --set 'train.dropout={residual: 0.1, attention: 0.2, gate: 0.1}')
one=documents
expect 0 run 1.1.1.1 documents
! cmp -s <(lines step one) <(lines step documents) || fail "documents see each other"
expect 0 run 1.1.1.1 kept --set 'train.dropout={residual: 0.0, attention: 0.0, gate: 0.0}'
! cmp -s <(lines step kept) <(lines step documents) || fail "nothing is dropped"
against_one 1.1.1.4 --set train.recompute=full
against_one 1.2.2.2 "${ring[@]}" --set mesh.sequence_parallel=true
against_one 2.1.1.2 "${heads[@]}"
expect 3 run 1.1.1.2 sampled --set data.packing=stream "${ring[@]}" --set train.stop_at=5 2> /dev/null
expect 0 run 1.1.1.4 sampled --set data.packing=stream "${heads[@]}"
expect 0 run 1.1.1.1 stream --set data.packing=stream
close stream sampled
settings=("${plain[@]}")
one=one

# Layers left out, rules of every kind; connections that go while training goes on.
beside() { # NAME OPTION …
    expect 0 run 1.1.1.1 "$1" "${@:2}"
    expect 0 run 1.1.1.2 "$1_cut" "${@:2}"
    close "$1" "$1_cut"
}
beside rules --set train.dropout.layer=0.4 --set 'model.rules=[{kind: value, form: residual}, {kind: lane}, {kind: dense, form: dynamic, channels: [key]}, {kind: depth_attention, block: 1}, {kind: mix, form: gated, from: both}]'
streams=(--set model.delta.distances=[] --set 'model.rules=[{kind: hyper, form: dynamic}]')
expect 0 run 1.1.1.1 streams "${streams[@]}"
expect 0 run 1.1.1.2 streams_cut "${streams[@]}"
close_to $losses loss step streams streams_cut
close_to $norms grad_norm step streams streams_cut
beside pruned --set model.delta.stage_steps=0 --set 'train.prune={by: first_order, keep: 0.5, begin: 2, end: 8, interval: 2}'
cmp <(lines prune pruned | grep -o '"edges":.*') <(lines prune pruned_cut | grep -o '"edges":.*') || fail "other connections went"

# Factors of sources, and of what crosses stages, are those of all ranks' tokens together. With 32 channels and 16, 96 or 32 tokens: fewer own tokens
# than singular values, and more. Where a cut falls between singular values that are nearly the same, it magnifies rounding, another processor's
# more than this one's: on four stages 0.3 of 32 values makes 1e-13 of a gradient's norm, a quarter of 16 2e-10 at one step, 10 of 32 2e-8.
one=factors
apart() { # RUN RUN: last gradients, by more than rounding
    lines step "$1" | tail -1 | grep -oE '"grad_norm":[^,]*' > first && lines step "$2" | tail -1 | grep -oE '"grad_norm":[^,]*' > second
    paste -d: first second | LC_ALL=C awk -F: '{ d = $2 / $4 - 1; exit !(d * d > 1e-10) }' || fail "$2 is not compressed"
}
for setting in 0.5:1 0.5:6 0.9:2; do
    factors=(--set train.recompute=full --set "train.compress_sources=${setting%:*}" --set "train.micro_batch_size=${setting#*:}")
    rm -rf factors && expect 0 run 1.1.1.1 factors "${factors[@]}"
    apart one factors
    against_one 1.1.1.4 "${factors[@]}"
    against_one 1.2.1.2 "${factors[@]}" --set mesh.sequence_parallel=true
done
without_noise=1 # whose measurement compressed boundaries refuse
for setting in 2:0.4:6 4:0.3:2; do
    IFS=: read -r stages ratio size <<< "$setting"
    factors=(--set "mesh.compress_boundary=$ratio" --set "train.micro_batch_size=$size" --set mesh.narrow_sources=false --set train.noise_interval=0)
    rm -rf factors && expect 0 run 1.1.$stages.1 factors "${factors[@]}"
    against_one 1.1.$stages.2 "${factors[@]}"
done
without_noise='' one=one

refuse() { refused "$1" "$GDN" plan small.yaml --ranks 2 --set mesh.context=2 "${@:2}"; }
refuse "multiple of" --set train.sequence_length=18
refused "mesh.context 2" "$GDN" plan small.yaml --ranks 4 --set mesh.context=2 --set mesh.pipeline=2 --set mesh.compress_boundary=0.9
refuse "key/value heads" "${heads[@]}" --set model.num_heads=6 --set model.num_kv_heads=3 --set model.hidden_size=24
refuse "mesh.tensor: 2" "${heads[@]}" --set model.num_kv_heads=2 --set mesh.tensor=2
refuse "mesh.context_exchange" --set mesh.context_exchange=tree
refused "mesh.context: 2 need a multiple of 2 ranks" "$GDN" plan small.yaml --ranks 3 --set mesh.context=2

[ "${1:-}" = all ] || exit 0
muon=(--set train.optimizer=muon)
for mesh in 1.1.1.2 1.2.1.2 1.1.2.2 2.2.1.2 2.1.2.2 1.2.1.4 1.1.2.4 2.1.1.4 1.1.1.8; do
    against_one $mesh
    against_one $mesh --set train.recompute=selective --set mesh.overlap=false --set checkpoint.files=node
    against_one $mesh "${ring[@]}"
    case $mesh in 1.2.1.4 | 1.1.1.8) continue ;; esac # four key/value heads
    against_one $mesh "${heads[@]}"
done
rm -rf one && expect 0 run 1.1.1.1 one "${muon[@]}"
against_one 2.1.1.2 "${muon[@]}"
