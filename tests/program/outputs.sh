#!/usr/bin/env bash
# Where commands write is looked at before their work: their own inputs, what is no file and what cannot be written are refused with status 2,
# and everything stays as it was. A symbolic link is followed.
. "$SOURCE/tests/program/small.sh"

sed -i 's/steps: 40/steps: 4/; s/eval_interval: 10/eval_interval: 4/' small.yaml
train 1 run --set 'model.exit.layers=[1]' --set 'model.exit.weights=[0.3]' --set delta_store.interval=2 --set delta_store.ratio=0.5
checkpoint=run/checkpoints/step_00000004/checkpoint.h5
difference=run/deltas/step_00000000/layer_001.h5
printf 'flops: 1e11\nnode: 2\nbandwidth_inside: 1e9\nbandwidth_outside: 1e9\nbandwidth_memory: 1e9\nlatency: 1e-6\n' > machine.yaml
cp "$checkpoint" alone.h5
train 1 nodes --set checkpoint.files=node --set checkpoint.keep=1
cp -r nodes/checkpoints/step_00000004 parts
cp "$SOURCE/tests/data/tokenizer/golden/gpt2.json" tokens.json
cp tokens.json tokens.bin
mkdir named && cp tokens.json named/tokenizer.json && echo '{"eos_token": "<|endoftext|>"}' > named/tokenizer_config.json
cp -r "$SOURCE/tests/golden/huggingface/llama" folder
printf 'some words' > a.txt
mkdir directory
mkfifo pipe
ln -s pipe to_pipe

commands=(
    "data tokenizer --vocab 260 a.txt --output"
    "data write --format hdf5 a.txt --output"
    "data write --tokenizer tokens.json --format hdf5 a.txt --output"
    "report run -o"
    "plan small.yaml --flops 1e9 --svg"
    "rules run --svg"
    "eval run --exits --svg"
    "prune run --keep 0.5 --output pruned --svg"
    "deltas reconstruct run --step 0 --layer 1 --distance 1 --force --out"
    "checkpoint import folder"
)
everything() { # that is there, but what this script itself writes
    find . \( -path ./out -o -path ./err -o -path ./before -o -path ./now \) -prune -o -type f -exec md5sum {} + -o -printf '%p %y %l\n' | sort
}
same() { # COMMAND…
    everything > now
    cmp before now || fail "$*: $(diff before now)"
}
everything > before

for command in "${commands[@]}"; do
    for case in "|is ''" "directory|directory" "pipe|pipe is not a file" "to_pipe|to_pipe is not a file" "nowhere/file|nowhere/file: cannot be written"; do
        refused "${case#*|}" timeout 60 "$GDN" $command "${case%|*}"
        same $command "${case%|*}"
    done
done

# own WORDS COMMAND…: the last argument is an input.
own() {
    refused "$1 and the output; choose another output" "$GDN" "${@:2}"
    same "${@:2}"
}
own "a.txt is both a document" data tokenizer --vocab 260 a.txt --output ./a.txt
own "a.txt is both a document" data write --format llmc a.txt --output a.txt
own "a.txt is both a document" data write --tokenizer tokens.json --format llmc a.txt --output a.txt
own "tokens.json is both the tokenizer" data write --tokenizer ./tokens.json --format hdf5 a.txt --output tokens.json
own "named/tokenizer_config.json is both the tokenizer's configuration" data write --tokenizer named/tokenizer.json --format hdf5 a.txt --output named/tokenizer_config.json
own "tokens.bin is both the tokenizer" data write --tokenizer tokens.bin --format megatron a.txt --output tokens
for file in metrics.jsonl config.yaml metrics.prom checkpoints/latest "${checkpoint#run/}"; do
    own "run/$file is both a file of the run" report run --output "run/$file"
    own "run/$file is both a file of the run" rules run --svg "run/$file"
    own "run/$file is both a file of the run" eval run --exits --svg "run/$file"
    own "run/$file is both a file of the run" prune run --keep 0.5 --output pruned --svg "run/$file"
    own "run/$file is both a file of the run" deltas reconstruct run --step 0 --layer 1 --distance 1 --force --out "run/$file"
done
own "small.yaml is both the configuration" plan small.yaml --flops 1e9 --svg small.yaml
own "machine.yaml is both the machine" plan small.yaml --machine ./machine.yaml --svg machine.yaml
own "alone.h5 is both the checkpoint" rules alone.h5 --svg alone.h5
own "alone.h5 is both the checkpoint" eval alone.h5 --exits --svg alone.h5
own "alone.h5 is both the checkpoint" prune alone.h5 --svg alone.h5
own "$checkpoint is both the checkpoint" eval run/checkpoints/best --exits --svg "$checkpoint"
own "$checkpoint is both the checkpoint" rules run/checkpoints --svg "$checkpoint"
own "parts/part_00000.h5 is both a part of the checkpoint" rules parts/checkpoint.h5 --svg parts/part_00000.h5
own "text.txt is both the data" eval alone.h5 --exits --data text.txt --svg text.txt
own "$difference is both a file of the run" deltas reconstruct run --step 0 --layer 1 --distance 1 --force --out "$difference"
own "$difference is both the stored difference" deltas reconstruct run/deltas --step 0 --layer 1 --distance 1 --force --out "$difference"

# What is no input of a command is written, in a run directory too, and again; through links.
echo old > target.json
ln -s target.json link.json
ln -s new.json dangling.json
for name in link dangling; do
    expect 0 "$GDN" data tokenizer --vocab 260 --output $name.json a.txt > out
    [ -L $name.json ] || fail "$name.json is no link any more"
done
ln -s nowhere.h5 link.h5
refused "link.h5 is there already" "$GDN" checkpoint import folder link.h5
cmp target.json new.json && grep -q '"model"' target.json || fail "a link was not followed"
for again in 1 2; do
    expect 0 "$GDN" deltas reconstruct run --step 0 --layer 1 --distance 1 --force --out run/delta.h5
    command -v gnuplot > /dev/null || continue
    expect 0 "$GDN" report run > out
    expect 0 "$GDN" plan small.yaml --flops 1e9 --svg run/step.svg > out
    expect 0 "$GDN" eval run --exits --svg run/exits.svg > out
done
[ -z "$(find . -name '.*.partial*' -o -name '.*.pieces')" ] || fail "left behind: $(find . -name '.*')"
