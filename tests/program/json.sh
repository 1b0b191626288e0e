#!/usr/bin/env bash
# What --json prints: one line that is JSON, the same figures as in words, whatever bytes a model says; failures print nothing.
. "$SOURCE/tests/program/small.sh"

value() { # FILE KEY…
    "$JSON_VALUE" "${@:2}" < "$1" || fail "$1 has no ${*:2}: $(cat "$1")"
}
one_line() { # COMMAND…: its output, in `out`
    expect 0 "$@" > out 2> err
    [ "$(wc -l < out)" -eq 1 ] || fail "$*: not one line: $(cat out)"
}

train 1 run --set train.steps=10

# ---- generate: what the model adds, as text and as ids; a model of ten steps says any bytes.
"$GDN" generate run --prompt 'It was ' --length 60 --seed 3 > plain
one_line "$GDN" generate run --prompt 'It was ' --length 60 --seed 3 --json
[ "$(value out prompt)" = '"It was "' ] || fail "prompt: $(cat out)"
ids=$(value out ids | tr -d '[]' | tr ',' ' ')
[ "$(for id in $ids; do printf "\\x$(printf %x "$id")"; done | od -c)" = "$(tail -c +8 plain | head -c -1 | od -c)" ] || fail "ids are not the text: $(cat out)"
grep -q $'\xef\xbf\xbd' out && ! printf '%s' "$(tail -c +8 plain)" | iconv -f utf-8 -t utf-8 > /dev/null 2>&1 || fail "no text that needs U+FFFD"
value out text > /dev/null
one_line "$GDN" generate run --prompt $'caf\xc3' --length 3 --json # a prompt that ends within a character
[ "$(value out prompt)" = $'"caf\xef\xbf\xbd"' ] || fail "prompt: $(cat out)"
one_line "$GDN" generate run --ids --prompt '73 116' --length 5 --json
[ "$(value out ids | tr ',' ' ')" = "[$("$GDN" generate run --ids --prompt '73 116' --length 5 | sed 's/ *$//')]" ] || fail "ids: $(cat out)"
expect 2 "$GDN" generate run --prompt 300 --ids --json > out 2> err
[ ! -s out ] && grep -q '^gdn: --prompt: token 300' err || fail "a bad prompt: $(cat out err)"

# ---- tokens that are no bytes: text is not known.
"$GDN" data write --format hdf5 --output text.h5 text.txt > /dev/null
train 1 tokens --set train.steps=2 --set data.train=text.h5 --set data.format=hdf5
one_line "$GDN" generate tokens --ids --prompt 73 --length 4 --json
[ "$(value out text)" = null ] && [ "$(value out ids 3)" -lt 257 ] || fail "text of other tokens: $(cat out)"

# ---- without a prompt: where 256 is known to begin a document, as text or as written by gdn data, and not elsewhere.
for run in run tokens; do expect 0 "$GDN" generate $run --ids --length 2 > out; done
train 1 other --set train.steps=2 --set data.train=text.h5 --set data.format=hdf5 --set model.vocab_size=300
for prompt in '' ' '; do
    expect 2 "$GDN" generate other --ids --prompt "$prompt" --length 2 > out 2> err
    [ ! -s out ] && [ "$(wc -l < err)" -eq 1 ] && grep -q '^gdn: --prompt is empty: .*300' err || fail "no prompt: $(cat out err)"
done
expect 0 "$GDN" generate other --ids --prompt 299 --length 2 > out

# ---- checkpoint ls (its fields: tests/train/command/test_checkpoint.c)
one_line "$GDN" checkpoint ls run --json
[ "$(value out 0 step)$(value out 0 valid)" = 10true ] || fail "ls: $(cat out)"
