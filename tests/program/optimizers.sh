#!/usr/bin/env bash
# Muon, and optimisers that the tests add to gdn's (tests/rows/optimizers.c): every mesh trains as one rank does; a stopped run goes on to the
# last bit, and on another mesh; what is reserved is what was planned; checkpoints are written in the background.
. "$SOURCE/tests/program/eight_layers.sh"

settings=(--set train.lr=0.02 --set checkpoint.interval=5 --set checkpoint.keep=0)
chosen=()
checkpoint() { printf '%s/checkpoints/step_%08d/checkpoint.h5' "$1" "$2"; }

optimizer() { # NAME DATASET MESH …: a state that its files have, and where it trains
    local mesh data tensor pipeline settings=("${settings[@]}" "${chosen[@]}")
    [ ${#chosen[@]} -gt 0 ] || export GDN_TEST_OPTIMIZER=$1
    on 1.1.1 mean "$1_one" "${settings[@]}"
    h5ls -r "$(checkpoint "$1_one" 20)" > listed
    grep -q "^/optimizer/$2/" listed || fail "$1: no state $2: $(cat listed)"
    memory_as_planned "$1_one"
    for mesh in "${@:3}"; do
        on "$mesh" mean "$1_$mesh" "${settings[@]}" --set checkpoint.files=node
        close "$1_one" "$1_$mesh"
        memory_as_planned "$1_$mesh"
        [ "$(lines checkpoint "$1_$mesh" | grep -c '"asynchronous":true')" -ge 3 ] || fail "$1 on $mesh: not in the background"
        ! grep -q checkpoint_failed "$1_$mesh/metrics.jsonl" || fail "$1 on $mesh: a checkpoint failed"
        expect 0 "$GDN" checkpoint verify "$(checkpoint "$1_$mesh" 10)" > verified
    done

    # Stopped and gone on with, on the same mesh and over others.
    IFS=. read -r data tensor pipeline <<< "$3"
    ranks=$((data * tensor * pipeline)) mesh=(--set mesh.tensor="$tensor" --set mesh.pipeline="$pipeline")
    expect 3 mpirun --oversubscribe -n $ranks "$GDN" train mean.yaml --run-dir "$1_again" "${settings[@]}" --set train.stop_at=7 "${mesh[@]}" > again.log 2>&1
    cp -r "$1_again" "$1_moved"
    expect 0 mpirun --oversubscribe -n $ranks "$GDN" train mean.yaml --run-dir "$1_again" "${settings[@]}" "${mesh[@]}" >> again.log 2>&1
    equal "$1_$3" "$1_again"
    expect 3 mpirun --oversubscribe -n 4 "$GDN" train mean.yaml --run-dir "$1_moved" "${settings[@]}" --set train.stop_at=13 --set mesh.tensor=4 > moved.log 2>&1
    expect 0 mpirun --oversubscribe -n 3 "$GDN" train mean.yaml --run-dir "$1_moved" "${settings[@]}" --set mesh.pipeline=3 >> moved.log 2>&1
    close "$1_one" "$1_moved"

    # Another optimiser's state is refused.
    unset GDN_TEST_OPTIMIZER
    expect 2 "$GDN" train mean.yaml --run-dir other "${settings[@]}" --set train.optimizer=adamw --resume "$(checkpoint "$1_one" 10)" > other.log 2>&1
    grep -qE "/optimizer/exp_avg|resume-with train.optimizer" other.log || fail "unexpected: $(cat other.log)"
}

optimizer sgd velocity 2.2.2
LC_ALL=C awk -F'"loss":' '/"event":"step"/ { split($2, part, ","); loss[++n] = part[1] } END { exit !(loss[n] < 0.97 * loss[1]) }' sgd_one/metrics.jsonl ||
    fail "the loss did not fall: $(lines step sgd_one | sed -n '1p;$p')"

# Whole matrices: each of one rank, from the parts of others.
optimizer frobenius momentum 2.2.2 4.1.1 1.4.1

# Muon: with each way to cut queries, keys and values, and stages in turns.
chosen=(--set train.optimizer=muon)
optimizer muon momentum 2.2.2 4.1.1 1.4.1 1.1.4 # test_matrices has the others
on 1.1.2 mean interleaved "${settings[@]}" "${chosen[@]}" --set mesh.interleave=2
close muon_one interleaved
for split in whole head; do
    on 1.1.1 attention "$split" "${settings[@]}" "${chosen[@]}" --set train.muon.split=$split
    on 2.2.1 attention "${split}_mesh" "${settings[@]}" "${chosen[@]}" --set train.muon.split=$split --set mesh.sequence_parallel=true
    close "$split" "${split}_mesh"
    memory_as_planned "${split}_mesh"
done

# On to AdamW: what both keep goes on, the rest begins anew, with step counts of its own.
cp -r muon_again changed
expect 0 "$GDN" train mean.yaml --run-dir changed "${settings[@]}" --set train.steps=22 --resume-with train.optimizer=adamw > changed.log 2>&1
for tensor in layers/0/mlp/up_proj=2 norm=22; do
    h5dump -d "/optimizer/step/${tensor%=*}/weight" "$(checkpoint changed 22)" | grep -q "(0): ${tensor#*=}$" || fail "${tensor%=*} has not had ${tensor#*=} steps"
done

# What ranks hand over for them is the plan's too: rank 0's, on each axis.
axes() { sed 's/.*"communication_bytes":{//; s/}.*//' | tr ',' '\n' | sort; }
for mesh in 2.2.1 4.1.1 muon.2.2.1 muon.1.4.1; do
    export GDN_TEST_OPTIMIZER=frobenius
    chosen=()
    [ "${mesh%%.*}" != muon ] || { unset GDN_TEST_OPTIMIZER && chosen=(--set train.optimizer=muon --set train.muon.split=whole); }
    IFS=. read -r data tensor pipeline <<< "${mesh#muon.}"
    options=("${chosen[@]}" --set model.delta.stage_steps=0 --set train.steps=1 --set train.eval_interval=0 --set data.validation_fraction=0)
    on "${mesh#muon.}" mean "counted_$mesh" "${options[@]}"
    grep '"event":"step"' "counted_$mesh/metrics.jsonl" | axes > counted.run
    "$GDN" plan mean.yaml "${options[@]}" --set mesh.data="$data" --set mesh.tensor="$tensor" --set mesh.pipeline="$pipeline" --json |
        sed 's/.*"ranks":\[//; s/,{"rank":1,.*//' | axes > counted.plan
    cmp counted.run counted.plan || fail "bytes on mesh $mesh: $(cat counted.run), the plan says $(cat counted.plan)"
done
