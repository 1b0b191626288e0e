#!/usr/bin/env bash
# A token format that the tests add to gdn's (tests/rows/format_big_endian.c): gdn data writes, recognises, shows and samples it; a model
# trains on it as on the same tokens in gdn's own formats, to the last bit, and goes on from one to the other; damaged files are refused.
. "$SOURCE/tests/program/small.sh"

formats=(hdf5 llmc megatron nanogpt bigendian)
for format in "${formats[@]}"; do expect 0 "$GDN" data write --format "$format" --output "all.$format" text.txt "$SOURCE/tests/program/words.txt"; done

# The word is wherever the others are.
says() { # WORDS COMMAND …: however its lines are broken
    "${@:2}" | tr -s ' \n' ' ' > said
    grep -qF -- "$1" said || fail "${*:2} does not say '$1': $(cat said)"
}
says 'hdf5, llmc, megatron, nanogpt or bigendian' "$GDN" data write --help
says 'nanogpt (raw uint16) or bigendian (big-endian uint16); default: as the first file looks, nanogpt never' "$GDN" data show --help
says '(hdf5, llmc, megatron, nanogpt, bigendian)' "$GDN" data --help
says 'text, hdf5, llmc, megatron, nanogpt, jsonl or bigendian (' "$GDN" eval --help
says 'text, hdf5, llmc, megatron, nanogpt, jsonl or bigendian' "$GDN" train --help-config
refused "text, hdf5, llmc, megatron, nanogpt, jsonl or bigendian is expected" "$GDN" data show --format endian all.bigendian

# It is recognised, shown and sampled like the same tokens in another format, wherever one looks.
"$GDN" data show all.bigendian > shown
[ "$(grep -cE '^(format     bigendian|documents  2|stored as  uint16, high byte first)$' shown)" = 3 ] || fail "shown: $(cat shown)"
"$GDN" data show all.hdf5 > shown.hdf5
same() { grep -E '^(tokens|values|first|text) ' "$1"; }
cmp <(same shown) <(same shown.hdf5) || fail "shown: $(cat shown shown.hdf5)"
for first in 0 1 17 400 123456789012; do
    for order in sequential shuffle; do
        for format in hdf5 bigendian; do
            expect 0 "$GDN" data sample --length 23 --order $order --seed "$first" --first "$first" --count 40 "all.$format" > "sample.$format"
        done
        [ "$(wc -l < sample.hdf5)" = 40 ] || fail "samples: $(cat sample.hdf5)"
        cmp sample.hdf5 sample.bigendian || fail "samples from $first on, $order"
    done
done
cp all.bigendian copy.bigendian
"$GDN" data show --json all.bigendian copy.bigendian > json
grep -q '"format":"bigendian","files":2.*"documents":4,' json || fail "$(cat json)"

# The wrong format is refused, both ways round.
refused "all.bigendian is a file of big-endian tokens, which format hdf5 cannot read; format bigendian is expected" "$GDN" data show --format hdf5 all.bigendian
refused "all.hdf5 is an HDF5 file, which format bigendian cannot read; format hdf5 is expected" "$GDN" data show --format bigendian all.hdf5
refused "text.txt is not a file of big-endian tokens" "$GDN" data show --format bigendian text.txt
refused "both a document and the output" "$GDN" data write --format bigendian --output text.txt text.txt

# Trained on for 20 steps, by one rank and by two.
sed -i "s/steps: 40/steps: 20/" small.yaml
data() { printf -- '--set data.format=%s --set data.train=all.%s' "$1" "$1"; }
for format in hdf5 llmc bigendian; do
    # shellcheck disable=SC2046 # two options
    train 1 "one_$format" $(data $format)
    equal one_hdf5 "one_$format"
done
for format in hdf5 bigendian; do
    # shellcheck disable=SC2046
    train 2 "two_$format" $(data $format)
done
equal two_hdf5 two_bigendian
for format in hdf5 bigendian; do
    expect 0 "$GDN" data write --format $format --output "more.$format" "$SOURCE/tests/program/prose.txt"
    train 1 "mixed_$format" --set train.steps=5 --set data.format=$format --set "data.train=''" \
        --set "data.sources=[{path: all.$format, weight: 2, name: a}, {path: more.$format, weight: 1, name: b}]"
done
equal mixed_hdf5 mixed_bigendian

# The data are the tokens, not the file: a run goes on with another format of them.
# shellcheck disable=SC2046
{
    expect 3 "$GDN" train small.yaml --run-dir again $(data hdf5) --set train.stop_at=17 > again.log 2>&1
    expect 0 "$GDN" train small.yaml --run-dir again $(data bigendian) > again.log 2>&1
}
equal one_hdf5 again

# Measured on like the same tokens; none of them is known to be a byte.
for format in hdf5 bigendian; do
    "$GDN" eval one_hdf5 --data all.$format --format $format --json | sed "s/all.$format//; s/\"[a-z_]*seconds\":[0-9.]*//" > measured.$format
done
grep -q '"loss":' measured.hdf5 || fail "measured: $(cat measured.hdf5)"
cmp measured.hdf5 measured.bigendian || fail "measured: $(cat measured.hdf5 measured.bigendian)"
refused "its tokens are not known to be text" "$GDN" generate one_bigendian --prompt the --length 3
expect 0 "$GDN" generate one_bigendian --ids --prompt "116 104" --length 3 > ids
[ -s ids ] || fail "no ids"
refused "which is outside the vocabulary of 0 to 59" "$GDN" train small.yaml --run-dir no --set model.vocab_size=60 --set data.format=bigendian --set data.train=all.bigendian

# Damaged files: cut anywhere, too long, with another header.
damaged() {
    refused damaged "$GDN" data show --format bigendian damaged
    refused damaged "$GDN" train small.yaml --run-dir no --set data.format=bigendian --set data.train=damaged
}
size=$(stat -c %s all.bigendian)
for length in 0 1 8 23 24 25 26 $((size - 2)) $((size - 1)); do
    head -c "$length" all.bigendian > damaged
    damaged
done
for tail in x xx; do
    { cat all.bigendian && printf %s $tail; } > damaged
    damaged
done
for at in 0 7 8 15 16; do # the mark, the number of tokens and that of documents
    cp all.bigendian damaged
    printf '\377' | dd of=damaged bs=1 seek=$at conv=notrunc status=none
    damaged
done
