# gdn data: writes, shows and samples as its help says, and refuses bad usage with status 2 and one message.

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# expect STATUS WORDS COMMAND...: runs it, and checks its status, and that its output (standard error where the
# status is not 0) has WORDS.
expect() {
    local status=0
    "${@:3}" >out 2>err || status=$?
    [ "$status" = "$1" ] || fail "'${*:3}' returned $status: $(cat out err)"
    if [ "$1" = 0 ]; then
        [ ! -s err ] || fail "'${*:3}' printed an error: $(cat err)"
        grep -qF -- "$2" out || fail "'${*:3}' does not print '$2': $(cat out)"
    else
        [ "$(wc -l <err)" = 1 ] || fail "'${*:3}' printed other than one line: $(cat err)"
        grep -qF -- "$2" err || fail "'${*:3}' does not say '$2': $(cat err)"
    fi
}

printf 'Hello,\nworld' >a.txt
printf 'b\303\251"' >b.txt

"$GDN" data write --format hdf5 --output all.h5 a.txt b.txt
"$GDN" data write --format llmc --output all.bin a.txt b.txt
"$GDN" data write --format megatron --output pair a.txt b.txt
expect 0 'text       "Hello,\nworld<separator>b\xc3\xa9\""' "$GDN" data show --format hdf5 all.h5
expect 0 'tokens     17' "$GDN" data show --format llmc all.bin
expect 0 'documents  2' "$GDN" data show --format megatron pair
expect 0 'values     10 to 256' "$GDN" data show --format text '[ab].txt'
"$GDN" data write --format nanogpt --output raw.bin a.txt b.txt
expect 0 'tokens     17' "$GDN" data show --format nanogpt raw.bin
# What is not named is found; what cannot be read says what it is.
for file in all.h5 all.bin pair pair.bin a.txt; do "$GDN" data show $file; done | grep ^format | xargs >found
[ "$(cat found)" = 'format hdf5 format llmc format megatron format megatron format text' ] || fail "found: $(cat found)"
expect 0 '0: 72 101 108 108' "$GDN" data sample --length 3 --first 0 --count 1 all.h5
expect 2 'raw.bin is no text: it has a NUL byte at position 1' "$GDN" data show raw.bin
expect 2 'all.h5 is an HDF5 file, which format text cannot read; format hdf5 is expected' "$GDN" data show --format text all.h5
gzip -k a.txt
expect 2 'a.txt.gz is compressed by gzip, which no format reads; unpack it with gzip -d' "$GDN" data show a.txt.gz
expect 0 '{"format":"hdf5","files":1,"first_file":"all.h5","last_file":"all.h5","tokens":17,"documents":2,"bytes":' "$GDN" data show --json all.h5
expect 0 '"documents":2,"bytes":16,"stored_as":"bytes","smallest_token":10,"largest_token":256,"examined_tokens":17,"first":[72,101,' "$GDN" data show --json a.txt b.txt
[ "$(wc -l <out)" = 1 ] || fail "--json prints $(cat out)"
expect 2 'raw.bin is no text' "$GDN" data show --json raw.bin
if command -v h5dump >/dev/null; then
    h5dump -d tokens all.h5 | grep -q 'H5T_STD_U16LE' || fail "h5dump does not find the tokens"
    h5dump -d tokens -y -w 0 all.h5 | grep -q '72, 101, 108, 108, 111, 44, 10, 119, 111, 114, 108, 100, 256, 98, 195, 169, 34' ||
        fail "h5dump does not find the text"
fi

# 17 tokens are 5 samples of 3 + 1; sample 5 is sample 0 again.
expect 0 '5: 72 101 108 108' "$GDN" data sample --format hdf5 --length 3 --first 4 --count 2 all.h5
expect 0 '4: 256 98 195 169' "$GDN" data sample --format hdf5 --length 3 --first 4 --count 2 all.h5
"$GDN" data sample --format llmc --length 3 --order shuffle --seed 7 --first 0 --count 5 all.bin >shuffled
"$GDN" data sample --format hdf5 --length 3 --first 0 --count 5 all.h5 >sequential
cut -d: -f2 shuffled | sort | cmp - <(cut -d: -f2 sequential | sort) || fail "a shuffle loses samples"

expect 0 'write|tokenizer|show|sample' "$GDN" data --help
expect 0 'Example: gdn data write' "$GDN" data write --help
expect 0 'Usage: gdn data sample' "$GDN" data sample --help
expect 2 'write, tokenizer, show or sample' "$GDN" data
expect 2 "'shwo'" "$GDN" data shwo
expect 2 "--format 'h5'" "$GDN" data show --format h5 all.h5
expect 2 '--fromat' "$GDN" data show --fromat hdf5 all.h5
expect 2 'argument' "$GDN" data show --format hdf5
expect 2 'argument' "$GDN" data write --format hdf5 --output x.h5
expect 2 '--output is missing' "$GDN" data write --format hdf5 a.txt
expect 2 '--length' "$GDN" data sample --format text --length 0 --first 0 --count 1 a.txt
expect 2 '--count is missing' "$GDN" data sample --format text --length 3 --first 0 a.txt
expect 2 "--order 'random'" "$GDN" data sample --format text --order random --length 3 --first 0 --count 1 a.txt
expect 2 "--seed '-1'" "$GDN" data sample --format text --seed -1 --length 3 --first 0 --count 1 a.txt
expect 2 'a.txt has 12 tokens' "$GDN" data sample --format text --length 12 --first 0 --count 1 a.txt
expect 2 'c.txt' "$GDN" data write --format hdf5 --output x.h5 a.txt c.txt
expect 2 'megatron' "$GDN" data write --format text --output x.txt a.txt
expect 2 "a.txt.gz is compressed" "$GDN" data write --format hdf5 --output x.h5 a.txt.gz
[ ! -e x.h5 ] && [ ! -e x.txt ] || fail "a refused write left a file"
expect 2 'a.txt is not an HDF5 file' "$GDN" data show --format hdf5 a.txt
expect 1 'standard output' bash -c '"$GDN" data show --format text a.txt >/dev/full'

# Documents of 2, 7 and 10 tokens in samples of 10 tokens: two samples when packed, three alone, and in classes of 10, 5, 3 and 2 they take 2, 10 and 10.
printf ab > d1 && printf cdefgh > d2 && printf ijklmnopq > d3
"$GDN" data write --format hdf5 --output lengths.h5 d1 d2 d3
expect 0 'left over  of samples of 10 tokens: 0.0500 packed by best fit, 0.3667 a document each, 0.1364 by classes of lengths down to 1' "$GDN" data show --length 10 lengths.h5
expect 0 '"left_over":{"length":10,"packed":0.05' "$GDN" data show --length 10 --json lengths.h5
expect 2 'raw.bin: files of format nanogpt do not tell where documents start' "$GDN" data show --format nanogpt --length 10 raw.bin
