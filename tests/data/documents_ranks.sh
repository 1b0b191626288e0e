# gdn data write --tokenizer on ranks, and after a kill: documents_ranks.sh [RANKS], or on one to four. The same bytes whatever their number
# and wherever an earlier start has ended; a rank's failure ends all; what cannot be written leaves no output, and the next start goes on.

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# Six pieces and more: lines that are cut at 1 MiB (the second begins just there, and one is longer), packed lines, and small texts together.
cp "$SOURCE/tests/data/tokenizer/golden/gpt2.json" tok.json
awk 'BEGIN { printf "{\"text\": \""; for (i = 0; i < 1048563; i++) printf i % 5 ? "b" : " "; printf "\"}\n"; for (i = 0; i < 40000; i++) { printf "{\"text\": \"%s the number %d is \\u00e9 of <|endoftext|> and words\"}\n", substr("xxxxyyyyaaaabbbbcccc", 1, i % 20), i
    if (i == 20000) { printf "{\"text\": \""; for (k = 0; k < 200000; k++) printf "longer "; printf "\"}\n\n\n" } } }' >lines.jsonl
head -2000 lines.jsonl | gzip >packed.jsonl.gz
for i in 1 2 3 4 5; do printf 'text %d\n' $i >text$i.txt; done
files='text1.txt lines.jsonl text2.txt text3.txt packed.jsonl.gz text4.txt lines.jsonl text5.txt'
command="data write --tokenizer tok.json --separator <|endoftext|> --format hdf5"
export OMP_NUM_THREADS=1
# write OUTPUT [OPTION...], on $ranks ranks, or without mpirun.
write() { $launch "$GDN" $command --output "$@" $files >out 2>err; }
on() { launch=$([ "$1" = 0 ] || echo "mpirun -n $1"); }

on 0
write right.h5 || fail "$(cat err)"
[ "$(head -1 out)" = 'documents  82009' ] || fail "$(cat out)"
gzip -k lines.jsonl # which is not cut
files=${files//lines.jsonl/lines.jsonl.gz} write packed.h5 || fail "$(cat err)"
cmp right.h5 packed.h5 || fail "lines that are cut are other documents"
for ranks in ${1:-1 2 3 4}; do
    on $ranks
    OMP_NUM_THREADS=$((1 + ranks % 2)) write ranks.h5 || fail "$ranks ranks: $(cat err)"
    cmp right.h5 ranks.h5 || fail "$ranks ranks write other bytes"
    [ "$(grep -c documents out)" = 1 ] || fail "$ranks ranks print $(cat out)"
done
[ -z "$(ls -A | grep pieces)" ] || fail "left behind: $(ls -A)"

pieces() { ls .killed.h5.pieces 2>/dev/null | wc -l; }
# killed COUNT VICTIM: starts, and kills the process, or one of mpirun's, once so many pieces are done.
killed() {
    rm -f killed.h5
    $launch "$GDN" $command --output killed.h5 $files >out 2>err &
    local pid=$! victim
    while [ "$(pieces)" -lt "$1" ] && kill -0 $pid 2>/dev/null; do sleep 0.01; done
    victim=$pid
    [ "$2" = self ] || victim=$(pgrep -P $pid | tail -1)
    kill -9 $victim || fail "it had ended before $1 pieces were done"
    wait $pid && fail "it has ended well, although it was killed"
    [ ! -e killed.h5 ] || fail "an output after a kill"
    [ "$(pieces)" -ge "$1" ] || fail "pieces are gone"
}
on 0
killed 1 self
before=$(ls .killed.h5.pieces)
killed 5 self
for piece in $before; do [ -e ".killed.h5.pieces/$piece" ] || fail "the second start did not go on: $piece is gone"; done
# A damaged piece is written again.
head -c 100 /dev/zero | dd of=".killed.h5.pieces/$(ls -S .killed.h5.pieces | head -1)" conv=notrunc status=none
on 3
write killed.h5 || fail "after two kills: $(cat err)"
grep -q '^going on from [1-9][0-9]*% of the text' err || fail "it does not say that it goes on: $(cat err)"
cmp right.h5 killed.h5 || fail "other bytes after two kills"
[ "$(pieces)" = 0 ] && [ ! -e .killed.h5.pieces ] || fail "pieces stay"

# One rank alone is killed; then pieces of another tokenizer are not taken.
on 2
killed 3 rank
on 0
sed 's/"<|endoftext|>"/"<|begin|>"/g' tok.json >other.json
"$GDN" data write --tokenizer other.json --separator '<|begin|>' --format hdf5 --output other.h5 $files >/dev/null 2>&1
"$GDN" data write --tokenizer other.json --separator '<|begin|>' --format hdf5 --output killed.h5 $files >out 2>err
grep -q 'going on' err && fail "another tokenizer's pieces were taken"
cmp other.h5 killed.h5 || fail "another command's leftovers were taken"
cmp -s right.h5 killed.h5 && fail "the two tokenizers do not differ, so that this shows nothing"
# A file that was changed since is read again.
killed 4 self
cp -p lines.jsonl kept.jsonl
sed -i '2s/number/NUMBER/' lines.jsonl
write killed.h5 && write fresh.h5 || fail "$(cat err)"
cmp fresh.h5 killed.h5 || fail "a changed file's old pieces were taken"
cmp -s right.h5 fresh.h5 && fail "the change does not show"
mv kept.jsonl lines.jsonl

# A file that may grow to 300 KB takes no piece; one of 8 MB takes each piece, but not the whole output.
on 0
for blocks in 300 8000; do
    (trap '' XFSZ && ulimit -f $blocks && write full.h5) && fail "written beyond the limit of $blocks KB"
    [ "$(grep -c '^gdn: ' err)" = 1 ] && grep -q 'cannot be written: File too large' err || fail "no word about the disk: $(cat err)"
    [ ! -e full.h5 ] || fail "an output on a full disk"
done
write full.h5 || fail "$(cat err)"
grep -q 'going on from 100% of the text' err || fail "what was done on the full disk is lost: $(cat err)"
cmp right.h5 full.h5 || fail "other bytes after a full disk"

# A failure in the middle of a file that is cut, at its own line of it; one that only one rank has, too.
printf '{"text": 5}\n' >>lines.jsonl
line=$(wc -l <lines.jsonl)
files='text1.txt lines.jsonl packed.jsonl.gz'
for ranks in 0 1 2 4; do
    on $ranks
    write wrong.h5 && fail "a wrong line is written"
    grep '^gdn: ' err | grep -v '^gdn: note' >words
    [ "$(wc -l <words)" = 1 ] && grep -qF "lines.jsonl, line $line: there is no text under 'text'" words ||
        fail "$ranks ranks do not name line $line: $(cat err)"
    [ ! -e wrong.h5 ] || fail "an output without a line"
done
on 2
files='text1.txt missing.txt'
write missing.h5 && fail "a missing file"
[ "$(grep -c '^gdn: .*missing.txt' err)" = 1 ] || fail "it does not name the file: $(cat err)"
[ ! -e .missing.h5.pieces ] || fail "a folder stays, with nothing in it"
