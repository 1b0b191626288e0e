# gdn data write --tokenizer: what is written are the tokenizer's tokens of each document and one separator, whatever
# the files are packed in and however many threads there are; what cannot be done leaves nothing behind.

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# expect STATUS WORDS COMMAND...: as in command.sh.
expect() {
    local status=0
    "${@:3}" >out 2>err || status=$?
    [ "$status" = "$1" ] || fail "'${*:3}' returned $status: $(cat out err)"
    if [ "$1" = 0 ]; then
        grep -qF -- "$2" out || fail "'${*:3}' does not print '$2': $(cat out)"
    else
        [ "$(wc -l <err)" = 1 ] || fail "'${*:3}' printed other than one line: $(cat err)"
        grep -qF -- "$2" err || fail "'${*:3}' does not say '$2': $(cat err)"
    fi
}
write() { "$GDN" data write --tokenizer tok/tokenizer.json "$@"; }

mkdir tok
cp "$SOURCE/tests/data/tokenizer/golden/gpt2.json" tok/tokenizer.json
printf 'a b\n' >a.txt
printf 'b<|endoftext|>' >b.txt
printf '{"id": 1, "text": "a b\\n"}\n\n{"text": "", "body": "b"}\r\n{"text": "b<|endoftext|>", "body": ""}' >all.jsonl

# The reference implementation's ids: 'a b\n' is 65 324 199, 'b<|endoftext|>' 66 0.
expect 0 'tokens     5' write --format hdf5 --output a.h5 a.txt b.txt
grep -q 'no token stands between documents' err || fail "no note: $(cat err)"
expect 0 '0: 65 324 199 66 0' "$GDN" data sample --length 4 --first 0 --count 1 a.h5
printf '{"eos_token": {"content": "<|endoftext|>", "lstrip": false}}' >tok/tokenizer_config.json
expect 0 'documents  2' write --format hdf5 --output a.h5 a.txt b.txt
[ ! -s err ] || fail "a note: $(cat err)"
expect 0 '0: 65 324 199 0 66 0 0' "$GDN" data sample --length 6 --first 0 --count 1 a.h5
expect 0 'tokens     7' write --separator a --format llmc --output a.bin a.txt b.txt
expect 0 '0: 65 324 199 65 66 0 65' "$GDN" data sample --length 6 --first 0 --count 1 a.bin
# Lines of JSON, an empty document among them; packed files; Megatron's documents.
expect 0 'documents  3' write --format megatron --output lines all.jsonl
expect 0 '0: 65 324 199 0 0 66 0 0' "$GDN" data sample --length 7 --first 0 --count 1 lines
expect 0 'documents  3' "$GDN" data show lines
sed -n 3,4p all.jsonl >bodies.jsonl
expect 0 'tokens     3' write --field body --format nanogpt --output body.bin bodies.jsonl
gzip -k all.jsonl a.txt
zstd -q all.jsonl
for file in all.jsonl.gz all.jsonl.zst; do
    write --format megatron --output packed $file >out
    cmp lines.bin packed.bin && cmp lines.idx packed.idx || fail "$file gives other tokens"
done
expect 0 'tokens     4' write --format hdf5 --output packed.h5 a.txt.gz
# Members beside the text may be numbers beyond 64 bits.
printf '{"id": 12345678901234567890, "text": "a b\\n"}\n{"text": "b", "id": -98765432109876543210}' >numbers.jsonl
expect 0 'tokens     6' write --format nanogpt --output numbers.bin numbers.jsonl
# Any number of threads, over several batches.
awk 'BEGIN { for (i = 0; i < 6000; i++) printf "{\"text\": \"%s the number %d is \\u00e9 <|endoftext|>\"}\n", substr("xxxxyyyyaaaabbbbcccc", 1, i % 20), i }' >more.jsonl
OMP_NUM_THREADS=1 write --format hdf5 --output many_1.h5 more.jsonl >/dev/null
sleep 1 # no time is written, either
OMP_NUM_THREADS=3 write --format hdf5 --output many_3.h5 more.jsonl >/dev/null
cmp many_1.h5 many_3.h5 || fail "the number of threads changes what is written"
# Bytes are a tokenizer, too, with their own separator.
expect 0 'tokens     20' "$GDN" data write --tokenizer bytes --format hdf5 --output bytes.h5 a.txt b.txt
# A vocabulary beyond 65536 takes four bytes a token.
sed 's/"<|endoftext|>":0/"<|endoftext|>":70000/; s/{"id":0,/{"id":70000,/' tok/tokenizer.json >tok/wide.json
for format in hdf5 llmc megatron; do
    "$GDN" data write --tokenizer tok/wide.json --format $format --output wide.$format a.txt >/dev/null
    path=wide.$format
    [ $format != megatron ] || path=wide.megatron.idx
    expect 0 '0: 65 324 199 70000' "$GDN" data sample --format $format --length 3 --first 0 --count 1 $path
done
expect 2 "nanogpt's tokens are at most 65535" "$GDN" data write --tokenizer tok/wide.json --format nanogpt --output narrow a.txt
[ ! -e .narrow.pieces ] || fail "a.txt was encoded for a format without room for its tokens"

# A tokenizer of one's own: the same for any number of threads, packed or not.
printf 'the cat, the hat; the cat in the hat: aaaaaaa 12345 \303\251\303\251 \303\251\n' >rhyme.txt
awk '{ print "{\"text\": \"" $0 "\\n\"}" }' rhyme.txt | gzip >rhyme.jsonl.gz
for threads in 1 3; do OMP_NUM_THREADS=$threads "$GDN" data tokenizer --vocab 300 --output many_$threads.json more.jsonl >/dev/null; done
cmp many_1.json many_3.json || fail "the number of threads changes the tokenizer"
expect 0 'tokens     264' "$GDN" data tokenizer --vocab 264 --output own.json rhyme.txt
"$GDN" data tokenizer --vocab 264 --output own2.json rhyme.jsonl.gz >/dev/null
cmp own.json own2.json || fail "lines of JSON give another tokenizer"
# Pairs that stand 6 times (aa), then 4 (at, he, th, then the blank with t), of equals those of the least ids first.
[ "$(tr -d ' \n' <own.json | grep -o '"merges":\[\(\["[^]]*\],\)\{3\}')" = '"merges":[["a","a"],["a","t"],["h","e"],' ] ||
    fail "the first merges: $(tr -d ' \n' <own.json | grep -o '"merges".*' | head -c 200)"
expect 0 'documents  1' "$GDN" data write --tokenizer own.json --format hdf5 --output own.h5 rhyme.txt
expect 0 'tokens     257' "$GDN" data tokenizer --vocab 257 --output least.json rhyme.txt
printf 'ab' >ab.txt
expect 0 'tokens     257' "$GDN" data tokenizer --vocab 400 --output less.json ab.txt
grep -qF 'no pair of tokens stands twice' err || fail "no note: $(cat err)"
# What ends a text is said beside a tokenizer.json, unless something says it there; not of files of other names.
[ ! -e tokenizer_config.json ] || fail "a tokenizer_config.json beside own.json"
mkdir new stays
expect 0 'tokens     264' "$GDN" data tokenizer --vocab 264 --output new/tokenizer.json rhyme.txt
cmp own.json new/tokenizer.json && [ "$(ls -A new | xargs)" = 'tokenizer.json tokenizer_config.json' ] || fail "new has $(ls -A new)"
expect 0 'documents  2' "$GDN" data write --tokenizer new/tokenizer.json --format hdf5 --output own.h5 ab.txt ab.txt
[ ! -s err ] || fail "a note: $(cat err)"
expect 0 '0: 65 66 0 65 66' "$GDN" data sample --length 4 --first 0 --count 1 own.h5
printf '{}' >stays/tokenizer_config.json
"$GDN" data tokenizer --vocab 264 --output stays/tokenizer.json rhyme.txt >out
[ "$(cat stays/tokenizer_config.json)" = '{}' ] || fail "what lay there is replaced"
mkdir -p bad/tokenizer.json # which no file replaces
expect 2 'bad/tokenizer.json' "$GDN" data tokenizer --vocab 264 --output bad/tokenizer.json rhyme.txt
[ "$(ls -A bad)" = tokenizer.json ] || fail "left behind: $(ls -A bad)"
expect 2 '--vocab' "$GDN" data tokenizer --vocab 256 --output no a.txt
expect 2 '--vocab is missing' "$GDN" data tokenizer --output no a.txt
expect 2 'missing.txt' "$GDN" data tokenizer --vocab 300 --output no missing.txt

printf '{"text": "a"}\n{"text": 5}\n{"no": 1}\n' >wrong.jsonl
printf '{"text": "a"}\n{"text"' >broken.jsonl
printf '{"text": 12345678901234567890}' >number.jsonl
printf 'a\0b' >nul.txt
head -c 40 all.jsonl.gz >cut.jsonl.gz
head -c 40 all.jsonl.zst >cut.jsonl.zst
cp a.txt plain.gz
# Two members, as of files packed one by one: with zeros behind them, the second one's first byte another, only that byte there.
{ cat all.jsonl; echo; } | gzip >member.gz
cat member.gz member.gz >two.jsonl.gz
head -c 512 /dev/zero | cat two.jsonl.gz - >padded.jsonl.gz
{ cat member.gz; printf x; tail -c +2 member.gz; } >spoilt.jsonl.gz
head -c $(($(stat -c %s member.gz) + 1)) two.jsonl.gz >begun.jsonl.gz
: >empty.txt
expect 2 "wrong.jsonl, line 2: there is no text under 'text'" write --format hdf5 --output no wrong.jsonl
expect 2 "number.jsonl, line 1: there is no text under 'text'" write --format hdf5 --output no number.jsonl
expect 2 'broken.jsonl, line 2' write --format hdf5 --output no broken.jsonl
expect 2 'nul.txt is no text: it has a NUL byte at position 1' write --format hdf5 --output no nul.txt
expect 2 'empty.txt is empty' write --format hdf5 --output no a.txt empty.txt
expect 2 'cut.jsonl.gz cannot be unpacked by gzip' write --format hdf5 --output no cut.jsonl.gz
expect 2 'cut.jsonl.zst cannot be unpacked by zstd' write --format hdf5 --output no cut.jsonl.zst
expect 2 'plain.gz cannot be unpacked by gzip: it is not compressed' write --format hdf5 --output no plain.gz
for file in two padded; do expect 0 'documents  6' write --format hdf5 --output $file.h5 $file.jsonl.gz; done
expect 2 'spoilt.jsonl.gz cannot be unpacked by gzip: behind a member' write --format hdf5 --output no spoilt.jsonl.gz
expect 2 'begun.jsonl.gz cannot be unpacked by gzip: it is truncated' write --format hdf5 --output no begun.jsonl.gz
expect 2 'missing.txt' write --format hdf5 --output no missing.txt
expect 2 "no token '<eos>'" write --separator '<eos>' --format hdf5 --output no a.txt
expect 2 'text is no format' write --format text --output no a.txt
expect 2 'both a document and the output' write --format hdf5 --output a.txt b.txt ./a.txt
cp a.txt memo.bin
cp a.txt memo.idx
expect 2 'memo.bin is both a document and the output' write --format megatron --output memo b.txt memo.bin
expect 2 'memo.idx is both a document and the output' write --format megatron --output memo b.txt ./memo.idx
cmp a.txt memo.bin && cmp a.txt memo.idx || fail "a document was replaced"
expect 2 'nothing.json' "$GDN" data write --tokenizer nothing.json --format hdf5 --output no a.txt
expect 2 '--tokenizer' "$GDN" data write --separator x --format hdf5 --output no a.txt
expect 2 '--tokenizer' "$GDN" data write --field x --format hdf5 --output no a.txt
# What does not fit below the limit of a file's size ends with words, as on a full disk, and not by the signal.
limited() { (ulimit -f 1 && "$@"); }
expect 2 'no.h5: cannot be written: File too large' limited "$GDN" data write --format hdf5 --output no.h5 a.txt b.txt
expect 2 'no.h5: cannot be written: File too large' limited write --format hdf5 --output no.h5 a.txt b.txt
expect 2 'no.json: cannot be written: File too large' limited "$GDN" data tokenizer --vocab 264 --output no.json rhyme.txt
printf '{"eos_token": "<none>"}' >tok/tokenizer_config.json
expect 2 "no token '<none>'" write --format hdf5 --output no a.txt
[ "$(cat a.txt)" = 'a b' ] || fail "the document is gone"
[ -z "$(ls -A | grep -E '^no|partial|\.tokens')" ] || fail "left behind: $(ls -A)"
