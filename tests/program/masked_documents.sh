#!/usr/bin/env bash
# Documents that do not see each other, and whole documents packed into samples: masked_documents.sh [all]. Each model on some meshes, with
# `all` on every one, is the one that it is on one rank, what is reserved is what was planned, and what is computed again and a stopped
# run that goes on change no bit. A token file has the documents of the texts that it was made of. What does not tell where they start is refused.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps
export LC_ALL=C
mkdir texts
split -n l/1500 -a 4 text.txt texts/ # documents shorter than a sample of 9 tokens, and longer ones
find texts -empty -delete
sed -i "s,^data:.*,data: {train: 'texts/*'\, documents: mask\, validation_fraction: 0.1}," ./*.yaml

for name in plain mean adaptive; do
    on 1.1.1 $name $name
    memory_as_planned $name
    others=mesh # in --full each kind of mesh has another model, but for the first
    on 2.2.2 $name ${name}_mesh
    if [ -n "${1:-}" ] || [ $name = mean ]; then
        on 1.2.2 $name ${name}_rows --set mesh.sequence_parallel=true --set mesh.interleave=2
        others="$others rows"
    fi
    if [ -n "${1:-}" ] || [ $name = adaptive ]; then
        on 1.1.4 $name ${name}_stages
        others="$others stages"
    fi
    for run in $others; do
        close $name ${name}_$run
        memory_as_planned ${name}_$run
    done
    on 1.1.1 $name ${name}_full --set train.recompute=full
    equal $name ${name}_full
done

expect 3 "$GDN" train mean.yaml --run-dir again --set train.stop_at=5 > again.log 2>&1
expect 0 "$GDN" train mean.yaml --run-dir again >> again.log 2>&1
equal mean again
refused "data.documents" "$GDN" train mean.yaml --run-dir mean --set data.documents=join --set train.steps=14

# Not the same as without; and the same from a token file.
on 1.1.1 mean joined --set data.documents=join
! cmp -s <(lines step mean) <(lines step joined) || fail "documents see each other"
"$GDN" data write --format hdf5 --output texts.h5 texts/*
[ "$("$GDN" data show texts.h5 | sed -n 's/^documents *//p')" -eq "$(find texts -type f | wc -l)" ] || fail "$("$GDN" data show texts.h5)"
on 1.1.1 mean file --set data.train=texts.h5 --set data.format=hdf5
cmp <(lines step mean) <(lines step file) || fail "documents of a file are others than those of its texts"
expect 0 "$GDN" checkpoint diff mean file > diff

"$GDN" data write --format nanogpt --output texts.bin texts/*
refused_run "texts.bin: files of format nanogpt do not tell where documents start" 2 mean.yaml --set data.train=texts.bin --set data.format=nanogpt
"$GDN" data write --format llmc --output texts.llmc texts/*
refused_run "texts.llmc does not tell where documents start" 1 mean.yaml --set data.train=texts.llmc --set data.format=llmc

# Whole documents: padding counts on no mesh, in the loss, in the regularisers' terms, in the noise. A run goes on with its packing.
packed() { on "$1" "$2" "$3" --set data.packing=best_fit --set train.noise_interval=4 "${@:4}"; }
for name in mean full adaptive; do
    packed 1.1.1 $name packed_$name
    memory_as_planned packed_$name
    others= policies=full
    if [ -n "${1:-}" ] || [ $name = mean ]; then packed 2.2.2 $name mesh && others=mesh; fi
    if [ -n "${1:-}" ] || [ $name = full ]; then packed 1.2.2 $name rows --set mesh.sequence_parallel=true --set mesh.interleave=2 && others="$others rows"; fi
    if [ -n "${1:-}" ] || [ $name = adaptive ]; then packed 4.1.1 $name copies && others="$others copies"; fi
    for run in $others; do
        close packed_$name $run
        for term in sparsity entropy; do close_to $losses $term step packed_$name $run; done
        close_to $norms noise_scale noise packed_$name $run
        memory_as_planned $run
    done
    if [ -n "${1:-}" ] || [ $name = mean ]; then policies="selective full"; fi
    for policy in $policies; do
        packed 1.1.1 $name $policy --set train.recompute=$policy
        equal packed_$name $policy
    done
    rm -r $others $policies
done
! cmp -s <(lines step packed_mean) <(lines step mean) || fail "nothing is packed"
options="--set data.packing=best_fit --set train.noise_interval=4"
expect 3 "$GDN" train mean.yaml --run-dir packed_again $options --set train.stop_at=5 > again.log 2>&1
expect 0 "$GDN" train mean.yaml --run-dir packed_again $options >> again.log 2>&1
equal packed_mean packed_again
refused "data.packing" "$GDN" train mean.yaml --run-dir packed_mean --set data.packing=stream --set train.steps=14
