#!/usr/bin/env bash
# Dropout of what blocks add to the stream, of attention and of gates: masks are the same on every mesh and with micro-batches of any size; what is computed
# again and a stopped run that goes on change no bit; what is reserved is what was planned.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps
sed -i 's/grad_clip: 0.7/&, dropout: {residual: 0.1, attention: 0.3, gate: 0.2}, noise_interval: 4/' ./*.yaml

for name in mean full_heads adaptive; do
    on 1.1.1 $name $name
    memory_as_planned $name
    on 2.1.1 $name ${name}_data --set train.micro_batch_size=4
    on 1.2.1 $name ${name}_tensor --set mesh.sequence_parallel=true
    on 1.2.1 $name ${name}_connection --set mesh.delta=connection
    on 1.1.2 $name ${name}_stages
    for run in ${name}_data ${name}_tensor ${name}_connection ${name}_stages; do
        close $name $run
        close_to $norms noise_scale noise $name $run
        memory_as_planned $run
    done
    on 1.1.1 $name ${name}_full --set train.recompute=full
    equal $name ${name}_full
done

expect 3 "$GDN" train mean.yaml --run-dir again --set train.stop_at=5 > again.log 2>&1
expect 0 "$GDN" train mean.yaml --run-dir again >> again.log 2>&1
equal mean again

# Masks change losses and follow from the seed; evaluation has none: with a rate of 0 it finds the same loss.
on 1.1.1 mean none --set train.dropout.residual=0 --set train.dropout.attention=0 --set train.dropout.gate=0 --set train.lr=0
on 1.1.1 mean still --set train.lr=0
! cmp -s <(lines step none) <(lines step still) || fail "dropout changes nothing"
close_to 1e-15 loss eval none still

# Layers left out, of a rule for which the lowest layer of a chunk computes what those above it use, and the highest begins
# what they leave: whichever layers of the pass these are.
sed 's/dropout: {.*0.2}/dropout: {layer: 0.6}/; s/^  num_heads.*/&\n  rules: [{kind: value, form: residual, lr_scale: 5}]/' plain.yaml > values.yaml
on 1.1.1 values values
memory_as_planned values
on 2.1.1 values values_data --set train.micro_batch_size=4
on 1.2.1 values values_tensor
on 1.1.2 values values_stages
on 1.1.2 values values_interleaved --set mesh.interleave=2
for run in values_data values_tensor values_stages values_interleaved; do
    close values $run
    memory_as_planned $run
done
on 1.1.1 values values_full --set train.recompute=full
equal values values_full
expect 3 "$GDN" train values.yaml --run-dir values_again --set train.stop_at=5 > again.log 2>&1
expect 0 "$GDN" train values.yaml --run-dir values_again >> again.log 2>&1
equal values values_again
