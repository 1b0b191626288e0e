#!/usr/bin/env bash
# One model on any mesh: meshes.sh [short | some]. Losses, gradient norms and evaluations on every mesh equal one rank's; what only moves
# work around (overlap, buckets, a second run) changes no bit; nor does a pipeline alone. short: few meshes, and what needs no more;
# some: what short leaves, with one model on each mesh, in turn, and few steps; without either all models on each.
. "$SOURCE/tests/program/eight_layers.sh"
short=${1:-} some=
[ "$short" != some ] || short='' some=1

[ -z "$some" ] || fewer_steps
[ -z "$some" ] || models=${models# plain } # which would take the turn of connections
[ -z "$short" ] || models="mean full_heads adaptive"
for name in $models ${some:+plain}; do on 1.1.1 $name one_$name; done

# against_one MESH [OPTION …]: every model on the mesh, or some.
against_one() {
    local mesh=$1 name chosen=$models
    shift
    [ -z "$some" ] || in_turn $some
    for name in $chosen; do
        rm -rf there
        on "$mesh" $name there "$@"
        close one_$name there
    done
}

if [ -n "$short" ]; then
    against_one 2.2.2
    models=mean against_one 1.2.2 --set mesh.interleave=2 --set mesh.sequence_parallel=true
else
    for mesh in $(sed 's/[{} ]//g; s/,$//; s/,/./g' "$SOURCE/tests/support/meshes.inc"); do
        [ $mesh = 1.1.1 ] || against_one $mesh
    done
    interleaved="1.1.2 2.1.2 1.2.2 2.2.2 4.2.2" sequence="1.2.1 1.4.1 1.2.2 2.2.2" connection=$sequence
    [ -z "$some" ] || interleaved="2.1.2 4.2.2" sequence="1.4.1 2.2.2" connection="1.4.1 1.2.2"
    for mesh in $interleaved; do against_one $mesh --set mesh.interleave=2; done
    against_one 1.1.2 --set mesh.interleave=4 --set mesh.narrow_sources=false
    against_one 1.1.4 --set mesh.interleave=2 --set train.micro_batch_size=4
    for mesh in $sequence; do against_one $mesh --set mesh.sequence_parallel=true; done
    for mesh in $connection; do against_one $mesh --set mesh.delta=connection; done
    against_one 2.2.2 --set mesh.sequence_parallel=true --set mesh.delta=connection --set mesh.interleave=2
    against_one 2.2.2 --set mesh.overlap=false --set mesh.narrow_sources=false
    [ -z "$some" ] || models=plain against_one 1.2.2
fi

# What only moves work around. Buckets of one grain, of several to a tensor, one for everything.
moves() { # MESH MODEL
    rm -rf mesh_*
    on $1 $2 mesh_first
    on $1 $2 mesh_late --set mesh.overlap=false --set mesh.bucket=1000000
    equal mesh_first mesh_late
    [ -z "$short" ] || return 0
    on $1 $2 mesh_second
    on $1 $2 mesh_grains --set mesh.bucket=1
    for other in second grains; do equal mesh_first mesh_$other; done
}
[ -n "$some" ] || moves 2.1.2 mean
if [ -z "$short" ]; then moves 2.2.2 adaptive; fi
if [ -z "$short$some" ]; then moves 2.2.2 mean; moves 4.2.2 adaptive; fi

# A pipeline adds nothing up in another order, where sources travel whole: without clipping (the norm's sum is another),
# regularisers (their sums too) and tied embeddings (which two stages hold), all bits are one rank's.
exact=(--set train.grad_clip=0 --set model.delta.regularizer=none --set model.tie_embeddings=false --set mesh.narrow_sources=false)
[ -z "$short" ] || models=adaptive
chosen=$models
[ -z "$some" ] || in_turn $some
for name in $chosen; do
    rm -rf alone_* # the norm is left out of the comparison
    on 1.1.1 $name alone_one "${exact[@]}"
    on 1.1.4 $name alone_four "${exact[@]}"
    on 1.1.2 $name alone_chunks "${exact[@]}" --set mesh.interleave=2
    for other in four chunks; do
        for run in one $other; do lines step alone_$run | sed 's/"grad_norm":[^,]*//' > steps.$run; done
        cmp steps.one steps.$other || fail "$name: losses of a pipeline differ from one rank's"
        expect 0 "$GDN" checkpoint diff alone_one alone_$other > diff
    done
done

# From mesh to mesh in the middle of a run, and evaluation by ranks that each have all of it.
rm -rf moved
changes=("1.2.1 2" "1.1.2 4" "2.2.1 6" "2.1.2 8" "1.2.2 9" "2.2.2 11" "1.1.4 13" "1.4.1 15" "1.1.8 17" "4.2.2 19" "2.1.1 20")
[ -z "$short" ] || changes=("1.2.2 7" "2.1.4 13" "2.2.1 20")
[ -z "$some" ] || changes=("1.1.8 3" "4.2.2 7" "1.4.1 12")
end=${changes[-1]#* }
for change in "${changes[@]}"; do
    set -- $change
    IFS=. read -r data tensor pipeline <<< "$1"
    status=3
    [ "$2" -lt "$end" ] || status=0
    expect $status mpirun --oversubscribe -n $((data * tensor * pipeline)) "$GDN" train mean.yaml --run-dir moved --set train.stop_at="$2" \
        --set mesh.tensor="$tensor" --set mesh.pipeline="$pipeline" > moved.log 2>&1
done
close one_mean moved
for run in one_mean moved; do
    mpirun --oversubscribe -n 2 "$GDN" eval $run 2> eval.log | sed -n 's/^loss *\([^ ]*\) nats.*/\1/p' > loss.$run
done
LC_ALL=C awk -v tolerance=$losses '{ loss[NR] = $1 } END { d = loss[1] - loss[2]; exit !(NR == 2 && d * d <= (tolerance * loss[1]) ^ 2) }' \
    loss.one_mean loss.moved || fail "evaluations differ: $(cat loss.one_mean loss.moved eval.log)"

# The rest is of few meshes, and done with them.
[ -z "$some" ] || exit 0

# Bytes handed over in a step are the plan's: rank 0's, on each axis.
axes() { sed 's/.*"communication_bytes":{//; s/}.*//' | tr ',' '\n' | sort; }
for mesh in 2.2.2 1.4.1 4.1.2; do
    rm -rf counted
    IFS=. read -r data tensor pipeline <<< "$mesh"
    options=(--set model.delta.stage_steps=0 --set train.steps=1 --set train.eval_interval=0 --set data.validation_fraction=0)
    on $mesh mean counted "${options[@]}"
    grep '"event":"step"' counted/metrics.jsonl | axes > counted.run
    "$GDN" plan mean.yaml "${options[@]}" --set mesh.data="$data" --set mesh.tensor="$tensor" --set mesh.pipeline="$pipeline" --json |
        sed 's/.*"ranks":\[//; s/,{"rank":1,.*//' | axes > counted.plan
    [ "$(grep -c '^"[a-z]*":[0-9]' counted.run)" -eq 4 ] && cmp counted.run counted.plan ||
        fail "bytes on mesh $mesh: $(cat counted.run), the plan says $(cat counted.plan)"
done

# All ranks end together where training diverges.
expect 5 timeout 400 mpirun --oversubscribe -n 8 "$GDN" train mean.yaml --run-dir diverged --set mesh.tensor=2 --set mesh.pipeline=2 \
    --set train.lr=1e30 --set train.grad_clip=0 > diverged.log 2>&1
grep -q "gdn: training diverged at step 1" diverged.log || fail "unexpected: $(cat diverged.log)"

# What does not fit is refused by name, before anything is created.
refused_run "mesh.tensor" 3 mean.yaml --set mesh.tensor=3
refused_run "mesh.pipeline: 2" 3 mean.yaml --set mesh.pipeline=2
refused_run "model.num_layers" 4 mean.yaml --set mesh.pipeline=4 --set mesh.interleave=3
refused_run "mesh.interleave" 1 mean.yaml --set mesh.interleave=2
refused_run "train.batch_size 16" 3 mean.yaml
refused_run "train.micro_batch_size 2 times 4 data ranks" 4 mean.yaml --set train.batch_size=12
expect 2 "$GDN" eval one_mean --set mesh.tensor=2 > refused.log 2>&1
grep -q "data parallel" refused.log || fail "unexpected: $(cat refused.log)"
