#!/usr/bin/env bash
# Makes the fuzzers' seeds: seeds.sh BUILD [FOLDER]
#
# BUILD is a build directory with gdn and seed_checkpoint (GDN_FUZZ=ON); FOLDER (tests/fuzz/seeds) receives config/, tokens/ and
# checkpoint/. Those in the repository were made by it; to be run again when a key, a token format or the checkpoint's changes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$here/../..
[ $# -ge 1 ] || { echo "usage: seeds.sh BUILD [FOLDER]" >&2; exit 2; }
build=$(cd "$1" && pwd)
out=${2:-$here/seeds}
mkdir -p "$out"/{config,tokens,checkpoint}
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ------------------------------------------------------------------------------------------------------------- configurations
cd "$out/config"
cp "$source"/configs/tiny.yaml tiny
cp "$source"/tests/golden/adaptive-attention-normalize.yaml golden
printf 'train: {steps: 3}\n' > short
printf 'model: {vocab_size: 257}\ntrain: {steps: 3}\n\0model.delta.distances=[1, 2]\0train.lr=1e-4\0data.train=\x27*.txt\x27' > overrides
printf 'a: &x {hidden_size: 8}\nmodel: *x\ntrain: {steps: &n 3, batch_size: *n}\n' > anchors
printf 'model: {vocab_size: 257}\ndata: {sources: [{path: "b/*.txt", weight: 3}, {path: "\\u00e9\\t\\"", weight: 1.5}]}\ntrain:\n  steps: 1\n  seed: 18446744073709551615\n' > sources
printf '%%YAML 1.2\n---\nmodel: {vocab_size: 300}\ntrain:\n  ? steps\n  : 7\ndata:\n  train: |\n    a\n    b\n...\n' > document
printf 'model: {vocab_size: 257}\ntrain: {steps: 9007199254740993, lr: 1e-30}\ncheckpoint: {interval: 4294967297}\n' > large
printf 'model: {delta: {distances: [%s]}}\n' "$(seq -s, 1 64)" > distances
printf 'train: %s' "$(printf '[%.0s' $(seq 200))" > nested

# Keys, for the dictionary; what YAML gives a meaning to is in yaml.dict.
"$build/gdn" train --help-config | sed -n 's/^\([a-z_0-9]*\(\.[a-z_0-9]*\)*\): .*/\1/p' > "$work/keys"
{ tr . '\n' < "$work/keys" | sort -u | sed 's/.*/"&:"/'; sed 's/.*/"&="/' "$work/keys"; } > "$out/keys.dict"

# -------------------------------------------------------------------------------------------------------------- token files
cd "$out/tokens"
printf 'some text to train on, long enough for a few samples of it\n' > "$work/text"
byte() { printf "\\x$(printf %x "$1")"; }
# head FORMAT LENGTH VOCABULARY CUT PART SEED: the first eight bytes (fuzz_tokens.c)
head8() { byte "$1"; byte "$2"; byte $(($3 & 255)); byte $(($3 >> 8)); byte $(($4 & 255)); byte $(($4 >> 8)); byte "$5"; byte "$6"; }
for format in hdf5 llmc megatron nanogpt; do
    "$build/gdn" data write --format $format --output "$work/tokens-$format" "$work/text" "$work/text" > /dev/null
done
{ head8 0 7 255 0 240 1; cat "$work/text"; } > text
{ head8 4 3 256 20 240 2; cat "$work/text"; } > text-two
{ head8 1 7 256 0 240 1; cat "$work/tokens-hdf5"; } > hdf5
{ head8 2 7 256 0 240 1; cat "$work/tokens-llmc"; } > llmc
{ head8 6 3 256 "$(stat -c %s "$work/tokens-llmc")" 242 3; cat "$work/tokens-llmc" "$work/tokens-llmc"; } > llmc-two
{ head8 3 7 256 "$(stat -c %s "$work/tokens-megatron.idx")" 240 1; cat "$work/tokens-megatron.idx" "$work/tokens-megatron.bin"; } > megatron
{ head8 8 7 256 0 240 1; cat "$work/tokens-nanogpt"; } > nanogpt
patch() { printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; } # FILE BYTE BYTES
cp llmc llmc-too-many
patch llmc-too-many 16 '\0\0\0\0100' # 2^30 tokens
cp megatron megatron-past-end
patch megatron-past-end 42 '\0\0\0\0100' # the first sequence has as many

# --------------------------------------------------------------------------------------------------------------- checkpoints
cd "$work"
"$build/tests/fuzz/seed_checkpoint" "$out/checkpoint" "$out"
{ head8 1 7 256 0 240 1; cat huge-tokens.h5; } > "$out/tokens/hdf5-huge"
