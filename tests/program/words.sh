#!/usr/bin/env bash
# The way of a user from text to words: a tokenizer of one's own, training on its tokens, and text from the model. What a tokenizer
# makes of text is kept and found again, made anew where it is damaged or was never whole, and the same for any number of ranks; what
# cannot be done ends all ranks with one message.
. "$SOURCE/tests/program/small.sh"

lines_of() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "And the %s said unto the %s of the %s, I am.\n", w(i), w(3 * i), w(7 * i) }
    function w(i) { split("king man priest house land people day son city water", name, " "); return name[i % 10 + 1] }'; }
lines_of 400 > a.text && lines_of 300 | tac > b.text
mkdir tok
"$GDN" data tokenizer --vocab 300 --output tok/tokenizer.json a.text b.text > /dev/null
words=(--set data.train="'?.text'" --set model.vocab_size=300 --set data.tokenizer=tok/tokenizer.json --set data.cache=cache --set train.steps=6
    --set train.eval_interval=3 --set data.validation_fraction=0.2)
tokens() { # OUTPUT-DIRECTORY: how many token files a cache has
    find "$1" -name '*.h5' | wc -l
}

# The cache has what gdn data write makes, whoever makes it; the same run follows.
train 1 one "${words[@]}"
"$GDN" data write --tokenizer tok/tokenizer.json --format hdf5 --output right.h5 a.text b.text > /dev/null
cmp right.h5 cache/*.h5 || fail "other tokens are kept than gdn data write makes"
for ranks in 2 4; do
    train $ranks ranks$ranks "${words[@]}" --set data.cache=cache$ranks
    cmp right.h5 cache$ranks/*.h5 || fail "$ranks ranks make another cache"
    for key in loss bits_per_byte; do close_to $losses $key eval one ranks$ranks; done
done
grep -q 'text was made tokens' one.log || fail "making a cache is not told: $(cat one.log)"
! grep -q 'no token stands between documents' one.log || fail "no separator is known beside a tokenizer of one's own: $(cat one.log)"
# A token file of the same text is the same training.
train 1 written "${words[@]}" --set data.train=right.h5 --set data.format=hdf5
equal one written

# It is found again; by its content, not by names.
before=$(stat -c %Y.%i cache/*.h5)
mkdir moved && cp a.text b.text moved
train 1 again "${words[@]}" --set data.train="'moved/?.text'"
equal one again
[ "$before" = "$(stat -c %Y.%i cache/*.h5)" ] && ! grep -q 'made tokens' again.log || fail "a cache that is there is made again"
# gdn check makes it too, for the run.
expect 0 "$GDN" check small.yaml --run-dir checked "${words[@]}" --set data.cache=checked_cache > checked.log 2>&1
cmp right.h5 checked_cache/*.h5 && [ ! -e checked ] || fail "a check leaves no tokens, or a run: $(cat checked.log)"
# Damaged, half made, gone: made anew, the same.
printf x | dd of="$(echo cache/*.h5)" bs=1 seek=3000 conv=notrunc 2> dd.log
train 1 damaged "${words[@]}"
grep -q 'not whole' damaged.log && cmp right.h5 cache/*.h5 || fail "a damaged cache is not noticed: $(cat damaged.log)"
equal one damaged
truncate -s 1000 cache/*.h5
train 1 short "${words[@]}"
cmp right.h5 cache/*.h5 || fail "half a cache is believed"
rm cache/*.xxh3
train 1 unsigned "${words[@]}"
equal one unsigned

# Uninterrupted, and stopped with the cache gone: the same to the last bit.
expect 3 "$GDN" train small.yaml --run-dir stopped "${words[@]}" --set train.stop_at=4 > stopped.log 2>&1
rm -r cache
train 1 stopped "${words[@]}" --set data.cache=elsewhere/deep
equal one stopped
cmp right.h5 elsewhere/deep/*.h5 || fail "another cache elsewhere"

# Another text, another tokenizer: another file. Lines of JSON with the same documents: the same tokens.
train 1 other "${words[@]}" --set data.train=a.text
[ "$(tokens cache)" = 1 ] || fail "of a text that was not there before no cache was made"
"$GDN" data tokenizer --vocab 280 --output tok280.json a.text > /dev/null
train 1 other280 "${words[@]}" --set data.train=a.text --set data.tokenizer=tok280.json # a model with more tokens than it needs
[ "$(tokens cache)" = 2 ] || fail "another tokenizer finds the first one's tokens"
grep -q 'no token stands between documents' other280.log || fail "no note that documents are not separated: $(cat other280.log)"
for file in a b; do printf '{"n": 1, "body": "%s"}\n' "$(sed 's/$/\\n/' $file.text | tr -d '\n')"; done > all.jsonl
train 1 lines "${words[@]}" --set data.train=all.jsonl --set data.format=jsonl --set data.field=body --set data.cache=lines_cache
cmp right.h5 lines_cache/*.h5 || fail "lines of JSON become other tokens"
equal one lines
gzip -k all.jsonl
train 1 packed "${words[@]}" --set data.train=all.jsonl.gz --set data.format=jsonl --set data.field=body --set data.cache=lines_cache
equal one packed
# Mixtures and further validation sets.
train 2 mixed "${words[@]}" --set data.train="''" --set 'data.sources=[{path: a.text, weight: 2}, {path: b.text}]' --set 'data.validations={b: b.text}'
[ "$(tokens cache)" = 3 ] || fail "a source that has been made tokens is made again: $(ls cache)"
# JSON without a tokenizer: bytes.
train 1 bytes "${words[@]}" --set data.train=all.jsonl --set data.format=jsonl --set data.field=body --set data.tokenizer=bytes

# Killed while it makes the cache: nothing under its name, and the next start makes it.
lines_of 400000 > long.text
"$GDN" train small.yaml --run-dir killed "${words[@]}" --set data.train=long.text --set data.cache=killed_cache > killed.log 2>&1 &
until compgen -G 'killed_cache/.*' > /dev/null || ! kill -0 $! 2> /dev/null; do sleep 0.02; done
kill -9 $! 2> /dev/null && ! wait $! 2> /dev/null
[ "$(tokens killed_cache)" = 0 ] && [ ! -e killed ] || fail "a killed start leaves a cache: $(ls -A killed_cache)"
# Two at a time: one makes it, the other waits.
"$GDN" train small.yaml --run-dir killed "${words[@]}" --set data.train=long.text --set data.cache=killed_cache > killed.log 2>&1 &
train 2 beside "${words[@]}" --set data.train=long.text --set data.cache=killed_cache
wait $! || fail "$(cat killed.log)"
[ "$(grep -l 'made tokens' killed.log beside.log | wc -l)" = 1 ] || fail "two starts make one cache twice: $(cat killed.log beside.log)"

# The tokenizer goes with run and checkpoint: they need neither its file nor an option any more, and refuse another one.
cmp tok/tokenizer.json one/tokenizer.json && cmp tok/tokenizer_config.json one/tokenizer_config.json || fail "the run directory has another tokenizer"
expect 0 "$GDN" checkpoint verify one > verified
mkdir away && cp -r one/checkpoints/step_00000006 away/step
(cd away && "$GDN" generate step --prompt 'And the king — ü' --length 12 --temperature 0 > ../said && "$GDN" generate step --length 12 --temperature 0 --json > ../said.json)
grep -q '^And the king — ü.' said && iconv -f UTF-8 -t UTF-8 said > /dev/null || fail "the words generated are none: $(cat said)"
grep -q '"prompt":"","text":"' said.json || fail "no document is begun: $(cat said.json)"
"$GDN" generate one --ids --prompt "$(sed 's/.*"ids":\[\([0-9,]*\)\].*/\1/' said.json)" --length 1 > /dev/null
# Bits a byte: all nats over the bytes of the text, here of a sequence that is a whole document, but for its first token, "7".
printf '7 kings and the people of the city — ü, I am.\n' > short.text
predicted=$(("$("$GDN" data write --tokenizer tok/tokenizer.json --format hdf5 --output short.h5 short.text | sed -n 's/^tokens *//p')" - 1))
"$GDN" eval away/step --data short.text --format text --set data.cache=short_cache --set train.sequence_length=$predicted --json > short.json
of() { sed -E "s/.*\"$1\":([0-9.e-]*).*/\1/" short.json; }
[ "$(of tokens)" = $predicted ] && awk -v nats="$(of loss)" -v n=$predicted -v bits="$(of bits_per_byte)" -v bytes=$(($(wc -c < short.text) - 1)) \
    'BEGIN { d = nats * n / log(2) / bits / bytes - 1; exit !(d < 1e-6 && d > -1e-6) }' || fail "bits a byte of $predicted tokens: $(cat short.json)"
(cd away && "$GDN" eval step --data ../a.text --format text --set data.cache=away_cache > ../evaluated)
grep -q 'bits a byte' evaluated && [ "$(tokens away/away_cache)" = 1 ] || fail "$(cat evaluated)"
for use in eval generate; do refused "tok280.json (xxh3 " "$GDN" $use one --set data.tokenizer=tok280.json; done
refused "is another tokenizer than that of one/checkpoints" "$GDN" train small.yaml --run-dir one "${words[@]}" --set train.steps=7 --set data.tokenizer=tok280.json
refused "is another tokenizer than that of one/checkpoints" "$GDN" train small.yaml --run-dir grown "${words[@]}" --set data.tokenizer=tok280.json \
    --set checkpoint.init_from=one/checkpoints/step_00000006/checkpoint.h5
refused "right.h5 was made by another tokenizer (xxh3 " "$GDN" train small.yaml --run-dir none "${words[@]}" --set data.train=right.h5 --set data.format=hdf5 --set data.tokenizer=tok280.json
"$GDN" data write --format hdf5 --output bytes.h5 a.text
refused "bytes.h5 was made by another tokenizer (bytes) than one/checkpoints" "$GDN" eval one --data bytes.h5 --format hdf5
train 1 grown "${words[@]}" --set data.tokenizer="''" --set checkpoint.init_from=one/checkpoints/step_00000006/checkpoint.h5
cmp tok/tokenizer.json grown/tokenizer.json || fail "a run from other weights has not their tokenizer"
train 2 one "${words[@]}" --set train.steps=8 --set data.tokenizer="''"

# Folders of other programs carry it out and in.
train 1 whole "${words[@]}" --set model.delta.stage_steps=0
"$GDN" checkpoint export --format huggingface whole folder
cmp tok/tokenizer.json folder/tokenizer.json && cmp tok/tokenizer_config.json folder/tokenizer_config.json || fail "an export has another tokenizer"
"$GDN" checkpoint import folder folder.h5 > /dev/null
for from in whole folder.h5; do "$GDN" generate $from --prompt 'And the' --length 8 --seed 3 > "said_$from"; done
cmp said_whole said_folder.h5 || fail "an import says something else: $(cat said_whole said_folder.h5)"
# What begins and ends a text there is what the tokenizer's configuration says, by its ids; without one nothing is known to.
ends() { # FOLDER BOS EOS
    for file in config generation_config; do
        [ "$(grep -o '"[be]os_token_id": [a-z0-9]*' $1/$file.json | xargs)" = "bos_token_id: $2 eos_token_id: $3" ] ||
            fail "$1/$file.json: not $2 and $3 but $(grep os_token_id $1/$file.json)"
    done
}
ends folder 0 0
again() { # CONFIGURATION NAME: the folder with another tokenizer_config.json, in and out
    printf '%s' "$1" > folder/tokenizer_config.json
    [ -n "$1" ] || rm folder/tokenizer_config.json
    "$GDN" checkpoint import folder $2.h5 > /dev/null && "$GDN" checkpoint export --format huggingface $2.h5 $2
}
again '{"bos_token": {"content": "a"}, "eos_token": "<|endoftext|>"}' begun && ends begun 65 0
again '{"eos_token": "a", "bos_token": null}' ended && ends ended 65 65
again '' unknown && ends unknown null null
again '{"eos_token": "<none>"}' wrong 2> err && fail "exported with an end that is no token"
grep -q "cannot be exported: tokenizer_config.json: .* has no token '<none>'" err && [ ! -e wrong ] || fail "$(cat err)"
printf '{"eos_token": "<|endoftext|>"}' > folder/tokenizer_config.json
refused "than that of folder" "$GDN" train small.yaml --run-dir none "${words[@]}" --set model.delta.stage_steps=0 --set data.tokenizer=tok280.json --set checkpoint.init_from=folder

# A cache's folder is a name, whatever stands in it: as a pattern this one would find its own file and the others' of the same text.
train 1 filled "${words[@]}"
for folder in 'c*e' '[c]ode'; do
    rm -rf starred
    train 1 starred "${words[@]}" --set "data.cache='$folder'"
    equal filled starred
done

# Bad input ends all ranks with one message, and leaves neither run nor tokens.
mkdir bad && cd bad && cp -r ../tok ../small.yaml ../a.text ../b.text ../all.jsonl .
printf '{"version": "1.0", "model": {"type": "Unigram"}}' > odd.json
printf 'text\n' > not.jsonl && printf '{"body": 3}\n' > number.jsonl && : > empty.text
words=("${words[@]/\'?.text\'/a.text}")
refused_run 'none.json' 2 small.yaml "${words[@]}" --set data.tokenizer=none.json
refused_run 'odd.json' 2 small.yaml "${words[@]}" --set data.tokenizer=odd.json
refused_run 'model.vocab_size is 299, and tok/tokenizer.json has 300 tokens' 2 small.yaml "${words[@]}" --set model.vocab_size=299
refused_run "there is no text under 'text'" 2 small.yaml "${words[@]}" --set data.train=all.jsonl --set data.format=jsonl
refused_run "there is no text under 'body'" 2 small.yaml "${words[@]}" --set data.train=number.jsonl --set data.format=jsonl --set data.field=body
refused_run 'not.jsonl, line 1' 1 small.yaml "${words[@]}" --set data.train=not.jsonl --set data.format=jsonl
refused_run 'data.format jsonl is expected' 1 small.yaml "${words[@]}" --set data.train=all.jsonl
refused_run 'ends in .jsonl' 1 small.yaml "${words[@]}" --set data.train=a.text --set data.format=jsonl
printf 'a' > brief.text
refused_run 'data.sources with train.sequence_length 16: brief.text: the part' 2 small.yaml "${words[@]}" --set data.train="''" \
    --set data.cache=brief_cache --set 'data.sources=[{path: b.text}, {path: brief.text}]'
printf '\n' > blank.jsonl
refused_run 'blank.jsonl: the files have no documents' 1 small.yaml "${words[@]}" --set data.train=blank.jsonl --set data.format=jsonl
refused_run 'none.text' 2 small.yaml "${words[@]}" --set data.train=none.text
refused_run 'empty.text' 1 small.yaml "${words[@]}" --set data.train=empty.text
refused_run 'data.cache' 2 small.yaml "${words[@]}" --set data.cache=a.text/cache
refused_run 'data.field' 1 small.yaml "${words[@]}" --set data.field="''"
refused_run 'data.cache' 1 small.yaml "${words[@]}" --set data.cache="''"
[ ! -e cache ] || [ "$(tokens cache)" = 0 ] || fail "refused data leave tokens: $(ls cache)"
