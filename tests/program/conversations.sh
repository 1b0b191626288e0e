#!/usr/bin/env bash
# Training on lines of messages: the tokens kept are those of gdn data write --messages, on any number of ranks; only answers count; another template
# and a text under the same member are other tokens; a checkpoint is evaluated on other data of another format; what cannot be is refused.
. "$SOURCE/tests/program/small.sh"

cp "$SOURCE/tests/data/tokenizer/golden/qwen.json" tok.json
for i in {1..60}; do sed "s/}\$/, \"id\": $i}/" "$SOURCE/tests/data/messages/talks.jsonl"; done > talks.jsonl
talks=(--set data.train=talks.jsonl --set data.format=jsonl --set data.messages=chatml --set data.tokenizer=tok.json --set model.vocab_size=512
    --set data.cache=cache --set train.steps=6 --set train.eval_interval=3 --set data.validation_fraction=0.2)
tokens() { find "$1" -name '*.h5' | wc -l; }

train 1 one "${talks[@]}"
"$GDN" data write --tokenizer tok.json --messages chatml --format hdf5 --output right.h5 talks.jsonl > /dev/null
cmp right.h5 cache/*.h5 || fail "other tokens are kept than gdn data write makes"
train 2 two "${talks[@]}" --set data.cache=cache2
cmp right.h5 cache2/*.h5 || fail "two ranks make another cache"
for key in loss counted; do close_to $losses $key step one two; done
lines step one | awk -F'"counted":' -v all="$(grep -c . talks.jsonl)" '{ if ($2 + 0 <= 0) exit 1; if (seen[$2 + 0]++) next; kinds++ } END { exit kinds < 2 }' ||
    fail "what counts: $(lines step one)"
train 1 written "${talks[@]}" --set data.train=right.h5 --set data.format=hdf5 --set data.messages=none
equal one written

# Goes on with the tokens that are there; the template is no part of what must match, the tokens are.
expect 3 "$GDN" train small.yaml --run-dir again "${talks[@]}" --set train.stop_at=4 > again.log 2>&1
train 1 again "${talks[@]}"
equal one again
[ "$(tokens cache)" = 1 ] || fail "the tokens are made twice: $(ls cache)"
train 1 again "${talks[@]}" --set train.steps=7 --set data.train=right.h5 --set data.format=hdf5 --set data.messages=none
sed 's/"content"/"text"/g; s/"messages": *\[.*\]/"messages": "a text"/' talks.jsonl > texts.jsonl
refused "training data" "$GDN" train small.yaml --run-dir one "${talks[@]}" --set data.train=texts.jsonl --set data.field=messages --set data.messages=none --set train.steps=8

# Another member; the same lines as text are other tokens.
sed 's/"messages"/"turns"/' talks.jsonl > turns.jsonl
train 1 turns "${talks[@]}" --set data.train=turns.jsonl --set data.field=turns
equal one turns

# A checkpoint needs no option; data of another format are text.
"$GDN" eval one > evaluated && grep -q 'bits a byte' evaluated || fail "$(cat evaluated)"
"$GDN" eval one --data text.txt --format text --set data.cache=texts > evaluated && [ "$(tokens texts)" = 1 ] || fail "$(cat evaluated)"

refused_run "format jsonl is expected" 1 small.yaml "${talks[@]}" --set data.format=text
refused_run "has no special token '<|begin_of_text|>', which the template llama3 needs" 2 small.yaml "${talks[@]}" --set data.messages=llama3
refused_run "a tokenizer.json that has the template's special tokens" 1 small.yaml "${talks[@]}" --set data.tokenizer=bytes
refused_run "has no special token '<|im_start|>', which the template chatml needs" 1 small.yaml "${talks[@]}" --set data.tokenizer="''"
refused_run "none, chatml or llama3 is expected" 1 small.yaml "${talks[@]}" --set data.messages=alpaca
refused_run "there is no list of messages" 2 small.yaml "${talks[@]}" --set data.field=id
