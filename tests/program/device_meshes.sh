#!/usr/bin/env bash
# device_meshes.sh: meshes on a device (on_device.sh gives $GDN its device). Losses, norms and evaluations equal one rank's, whichever way buffers
# travel; both ways, recorded passes, recomputation and a stop in the middle change no bit.
. "$SOURCE/tests/program/eight_layers.sh"
sed -i 's/\bsteps: 20/steps: 3/; s/warmup_steps: 5/warmup_steps: 2/; s/eval_interval: 10/eval_interval: 3/; s/batch_size: 16/batch_size: 8/; s/eval_batches: 8/eval_batches: 4/' ./*.yaml
sed -i 's/stage_steps: [0-9]*/stage_steps: 1/; s/\[1, 2, 4, 7\]/[1, 2, 7]/' ./*.yaml # a distance a step

for name in mean full_heads adaptive; do on 1.1.1 $name one_$name; done

against_one() { # MESH MODEL [OPTION …]
    local mesh=$1 name=$2
    shift 2
    rm -rf there
    on "$mesh" "$name" there "$@"
    close "one_$name" there
}
against_one 2.1.2 full_heads --set mesh.transport=staged
against_one 1.2.1 adaptive --set mesh.transport=staged --set mesh.sequence_parallel=true
on 2.2.2 mean staged --set mesh.transport=staged --set mesh.interleave=2
close one_mean staged
if [ "$DEVICE" = emulated ]; then # a GPU is one rank's
    on 2.2.2 mean nccl --set mesh.transport=nccl --set mesh.interleave=2
    equal staged nccl
    on 1.2.2 mean pieces --set mesh.transport=nccl --set mesh.tensor_pieces=3 # sums that travel beside products
    close one_mean pieces
fi
expect 2 mpirun --oversubscribe -n 2 "$GDN" train mean.yaml --run-dir refused --set mesh.tensor=2 --set mesh.transport=staged --set mesh.tensor_pieces=3 > refused.log 2>&1
grep -q "mesh.tensor_pieces: .*nccl alone" refused.log || fail "unexpected: $(cat refused.log)"

dropout=(--set 'train.dropout={residual: 0.1, attention: 0.3, gate: 0.2}')

# Sequences cut over ranks; of documents that do not see each other, with dropout, by each exchange.
cut=(--set mesh.data=1 --set mesh.context=2)
documents=(--set train.sequence_length=12 "${dropout[@]}" --set 'data.train=texts/*' --set data.documents=mask)
mkdir texts
split -n l/1500 -a 4 text.txt texts/
find texts -empty -delete
on 1.1.1 mean whole_documents "${documents[@]}"
for exchange in heads ring gather; do
    mesh=2.1.2
    [ $exchange != gather ] || mesh=2.1.1
    on $mesh mean cut_$exchange "${documents[@]}" "${cut[@]}" --set mesh.context_exchange=$exchange --set mesh.transport=staged
    close whole_documents cut_$exchange
    memory_as_planned cut_$exchange
done
if [ "$DEVICE" = emulated ]; then # what comes round is there before it is used
    on 2.1.2 mean cut_nccl "${documents[@]}" "${cut[@]}" --set mesh.context_exchange=ring --set mesh.transport=nccl
    equal cut_ring cut_nccl
fi

# Activations that travel in bf16, by either way; losses near log V differ as in wire.sh.
on 1.2.2 mean staged_bf16 --set mesh.transport=staged --set mesh.wire=bf16
memory_as_planned staged_bf16
close_to 4e-4 loss step one_mean staged_bf16
if [ "$DEVICE" = emulated ]; then
    on 1.2.2 mean nccl_bf16 --set mesh.transport=nccl --set mesh.wire=bf16
    equal staged_bf16 nccl_bf16
fi

# What only changes how a step is done.
on 1.1.1 adaptive ramp --set 'train.batch_ramp=[[0, 4], [2, 8]]' # as many micro-batches as a step has
on 1.1.1 adaptive recorded_ramp --set 'train.batch_ramp=[[0, 4], [2, 8]]' --set train.graphs=true
equal ramp recorded_ramp
on 1.1.1 adaptive recomputed --set train.recompute=full
equal one_adaptive recomputed
# Rules between layers, with what all keep in bf16: near the cpu's, also on a mesh; what is computed again or recorded changes no bit.
sed "s/^  num_heads.*/&\n  rules: [{kind: dense, form: dynamic, channels: [value]}, {kind: value, form: embedding}, {kind: mix, form: gated, from: both}]/" mean.yaml > ruled.yaml
on 1.1.1 ruled ruled --set train.activations=bf16
memory_as_planned ruled
on 1.1.1 ruled ruled_again --set train.activations=bf16 --set train.recompute=full --set train.graphs=true
equal ruled ruled_again
expect 0 "$GDN_BINARY" train ruled.yaml --run-dir ruled_cpu --set train.activations=bf16 > ruled_cpu.log 2>&1
on 1.2.2 ruled ruled_mesh --set train.activations=bf16
for run in ruled_cpu ruled_mesh; do close_to 0.0001 loss step ruled $run; done # as far as gradients of rounded numbers differ
# Masks of dropout are the step's own in recorded passes, which have none of another step's, and the same on tensor ranks.
on 1.1.1 mean dropped "${dropout[@]}"
memory_as_planned dropped
on 1.1.1 mean dropped_again "${dropout[@]}" --set train.graphs=true --set train.recompute=full
equal dropped dropped_again
on 1.2.1 mean dropped_mesh "${dropout[@]}" --set mesh.transport=staged
close dropped dropped_mesh

# Passes that are recorded on several ranks have the bits and bytes of those that are not; what waits on the host cannot be.
refused_run "the transport is staged" 2 mean.yaml --set train.graphs=true --set mesh.transport=staged
refused_run "stages wait for each other" 2 mean.yaml --set train.graphs=true --set mesh.pipeline=2
if [ "$DEVICE" = emulated ]; then
    bytes() { grep -o '"communication_\(bytes\|calls\)":{[^}]*}' "$1/metrics.jsonl"; }
    recorded() { # MESH MODEL [OPTION …]: the second step is recorded, the third and fourth repeat it
        rm -rf plainly recorded
        on "$1" "$2" plainly --set mesh.transport=nccl --set train.steps=4 --set model.delta.regularizer=none "${@:3}"
        on "$1" "$2" recorded --set mesh.transport=nccl --set train.steps=4 --set model.delta.regularizer=none --set train.graphs=true "${@:3}"
        equal plainly recorded
        cmp <(bytes plainly) <(bytes recorded) || fail "recorded steps count other bytes"
    }
    recorded 2.2.1 adaptive --set mesh.tensor_pieces=2
    recorded 2.1.1 full_heads "${cut[@]}" --set train.sequence_length=12 --set mesh.context_exchange=ring
    recorded 1.2.1 full_heads --set mesh.sequence_parallel=true
fi

# From the device to the cpu and back, and from mesh to mesh.
expect 3 "$GDN" train adaptive.yaml --run-dir halves --set train.stop_at=2 > halves.log 2>&1
expect 0 "$GDN" train adaptive.yaml --run-dir halves > halves.log 2>&1
equal one_adaptive halves
expect 3 mpirun --oversubscribe -n 2 "$GDN" train mean.yaml --run-dir moved --set train.stop_at=1 --set mesh.pipeline=2 > moved.log 2>&1
expect 3 "$GDN_BINARY" train mean.yaml --run-dir moved --set train.stop_at=2 > moved.log 2>&1
expect 0 "$GDN" train mean.yaml --run-dir moved > moved.log 2>&1
close one_mean moved

# What crosses stages as factors, what is kept so, of a sequence that is cut over ranks too, and what is stored of differences, are made on the host.
kept=(--set train.sequence_length=12 --set train.compress_sources=0.5)
on 1.1.1 mean whole_kept "${kept[@]}"
on 2.1.1 mean cut_kept "${kept[@]}" "${cut[@]}" --set mesh.context_exchange=heads --set mesh.transport="$([ "$DEVICE" = emulated ] && echo nccl || echo staged)"
close whole_kept cut_kept
on 2.1.2 mean factors "${documents[@]}" "${cut[@]}" --set mesh.compress_boundary=0.3 --set mesh.transport=staged
on 1.1.1 full_heads stored --set delta_store.interval=2 --set delta_store.ratio=0.5
equal one_full_heads stored
expect 0 "$GDN_BINARY" deltas ls stored > list
expect 0 "$GDN" eval one_mean > eval.log 2>&1
grep -q '^loss' eval.log || fail "no loss: $(cat eval.log)"
expect 0 "$GDN" generate one_mean --prompt "a" --length 8 --device "$DEVICE" > text 2> generate.log
