#!/usr/bin/env bash
# Makes the fuzzers' seeds: seeds.sh BUILD [FOLDER]
#
# BUILD is a build directory with gdn and seed_checkpoint (GDN_FUZZ=ON); FOLDER (tests/fuzz/seeds) receives config/, tokens/,
# checkpoint/, safetensors/, tokenizer/ and huggingface/. Those in the repository were made by it; to be run again when a key, a token format or the checkpoint's changes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$here/../..
[ $# -ge 1 ] || { echo "usage: seeds.sh BUILD [FOLDER]" >&2; exit 2; }
build=$(cd "$1" && pwd)
out=${2:-$here/seeds}
mkdir -p "$out"/{config,tokens,checkpoint,safetensors,tokenizer,huggingface}
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
{ head8 32 3 256 20 240 2; cat "$work/text"; } > text-documents
{ head8 33 7 256 0 240 1; cat "$work/tokens-hdf5"; } > hdf5-documents
{ head8 35 7 256 "$(stat -c %s "$work/tokens-megatron.idx")" 240 1; cat "$work/tokens-megatron.idx" "$work/tokens-megatron.bin"; } > megatron-documents
"$build/gdn" data write --tokenizer "$source/tests/data/tokenizer/golden/qwen.json" --messages chatml --format hdf5 --output "$work/talks" "$source/tests/data/messages/talks.jsonl" > /dev/null
{ head8 33 7 406 0 240 1; cat "$work/talks"; } > hdf5-loss-mask
patch() { printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; } # FILE BYTE BYTES
cp llmc llmc-too-many
patch llmc-too-many 16 '\0\0\0\0100' # 2^30 tokens
cp megatron megatron-past-end
patch megatron-past-end 42 '\0\0\0\0100' # the first sequence has as many

# --------------------------------------------------------------------------------------------------------------- checkpoints
cd "$work"
"$build/tests/fuzz/seed_checkpoint" "$out/checkpoint" "$out"
{ head8 1 7 256 0 240 1; cat huge-tokens.h5; } > "$out/tokens/hdf5-huge"

# -------------------------------------------------------------------------------------------------------------- safetensors
cd "$out/safetensors"
pair() { byte $(($1 & 255)); byte $(($1 >> 8)); byte $(($2 & 255)); byte $(($2 >> 8)); } # INDEX HEADER: the first four bytes
weights='{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b.weight":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},"c":{"dtype":"F16","shape":[],"data_offsets":[20,22]}}'
elements=0123456789012345678901
index='{"metadata":{"total_size":22},"weight_map":{"a":"model.safetensors","b.weight":"model.safetensors","c":"model.safetensors"}}'
{ pair 0 ${#weights}; printf %s "$weights$elements"; } > plain
{ pair ${#index} ${#weights}; printf %s "$index$weights$elements"; } > index
{ pair 0 0; byte ${#weights}; printf '\0\0\0\0\0\0\0%s' "$weights$elements"; } > raw
{ pair 0 0; printf '\0\0\0\0\0\0\0\200{}'; } > endless
odd='{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F64","shape":[0,9223372036854775807],"data_offsets":[1,1]},"a":{}}'
{ pair 0 ${#odd}; printf %s "${odd}0"; } > odd

# ---------------------------------------------------------------------------------------------------------------- tokenizers
cd "$out/tokenizer"
added() { printf '{"id":%s,"content":"%s","single_word":%s,"lstrip":%s,"rstrip":true,"normalized":%s,"special":true}' "$@"; }
template='{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[6],"tokens":["<s>"]}}}'
level='{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}'
split='{"type":"Split","pattern":{"Regex":"[^\\r\\n\\p{L}]?\\p{L}+|\\s+(?!\\S)|\\s+"},"behavior":"MergedWithNext","invert":false}'
model() { printf '{"type":"BPE","unk_token":%s,"fuse_unk":true,"byte_fallback":true,"ignore_merges":%s,"vocab":{%s},"merges":[%s]}' "$@"; }
{
    printf '{"version":"1.0","added_tokens":[%s],"normalizer":{"type":"NFC"},' "$(added 6 '<s>' true true false)"
    printf '"pre_tokenizer":{"type":"Sequence","pretokenizers":[%s,%s]},"post_processor":%s,"decoder":%s,"model":%s}' \
        "$split" "$level" "$template" "$level" "$(model null true '"a":0,"b":1,"ab":2,"\u0120":3,"\u0120ab":4,"c":5' '["a","b"],["\u0120","ab"]')"
    printf '\0ab ab <s> abc\303\251 \377'
} > byte-level
{
    printf '{"added_tokens":[%s],' "$(added 7 '_ x' false true true)"
    printf '"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"_"},{"type":"Replace","pattern":{"String":" "},"content":"_"},{"type":"NFKD"},{"type":"Lowercase"}]},'
    printf '"pre_tokenizer":null,"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":1}]},'
    printf '"model":%s}' "$(model '"?"' false '"_":0,"a":1,"_a":2,"?":3,"<0xC3>":4,"<0xA9>":5,"b":6' '"_ a"')"
    printf '\0a a\303\251\342\202\254b _ x a'
} > fallback
{
    printf '{"added_tokens":[],"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":false},{"type":"Punctuation"},{"type":"Whitespace"},'
    printf '{"type":"Metaspace","replacement":"_","prepend_scheme":"first"}]},"decoder":{"type":"Metaspace","replacement":"_"},"model":%s}' "$(model null false '"a":0,"1":1' '')"
    printf '\0a1 12. a\000b'
} > words

# -------------------------------------------------------------------------------------------------------------- config.json
for name in llama llama-tied mistral qwen2 qwen3 gdn-rules-1 gdn-rules-2 gdn-rules-3; do
    cp "$source/tests/golden/huggingface/$name/config.json" "$out/huggingface/$name"
done
