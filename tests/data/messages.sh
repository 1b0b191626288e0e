# gdn data write --messages: ids of conversations and which of them count are transformers' (messages/golden.py), on any number of threads; the
# separator does not count; what is no conversation, and a tokenizer without the template's tokens, is refused.

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
refused() { # WORDS COMMAND …: status 2, one line that has the words, and no output
    local status=0
    "${@:2}" >out 2>err || status=$?
    [ "$status" = 2 ] && [ "$(wc -l <err)" = 1 ] && [ ! -s out ] || fail "'${*:2}' returned $status: $(cat out err)"
    grep -qF -- "$1" err || fail "'${*:2}' does not say '$1': $(cat err)"
    [ -z "$(ls -A refused* 2>/dev/null)" ] || fail "'${*:2}' leaves $(ls -A refused*)"
}
golden=$SOURCE/tests/data/messages talks=$SOURCE/tests/data/messages/talks.jsonl
cp "$SOURCE/tests/data/tokenizer/golden/qwen.json" chatml.json
sed 's/<|im_start|>/<|start_header_id|>/g; s/<|im_end|>/<|end_header_id|>/g; s/<|endoftext|>/<|eot_id|>/g' \
    "$SOURCE/tests/data/tokenizer/golden/llama3.json" >llama3.json
values() { h5dump -d "$2" -y -w 0 "$1" | awk '/DATA \{/ { on = 1; next } /\}/ { on = 0 } on' | tr -d ' \n' | tr ',' ' '; }

for name in chatml llama3; do
    for threads in 1 3; do
        OMP_NUM_THREADS=$threads "$GDN" data write --tokenizer $name.json --messages $name --format hdf5 --output $name.h5 "$talks" >out 2>err ||
            fail "$(cat err)"
        [ "$(values $name.h5 tokens)" = "$(sed -n 1p "$golden/$name.txt")" ] || fail "$name: other ids: $(values $name.h5 tokens)"
        [ "$(values $name.h5 loss_mask)" = "$(sed -n 2p "$golden/$name.txt")" ] || fail "$name: others count: $(values $name.h5 loss_mask)"
    done
    grep -q 'documents  5' out || fail "$(cat out)"
done
"$GDN" data show chatml.h5 | grep -q '^counted    0\.' || fail "$("$GDN" data show chatml.h5)"

# A separator behind each conversation does not count.
"$GDN" data write --tokenizer chatml.json --separator '<|endoftext|>' --messages chatml --format hdf5 --output separated.h5 "$talks" >out
[ "$(values separated.h5 tokens | tr ' ' '\n' | paste -d' ' - <(values separated.h5 loss_mask | tr ' ' '\n') | grep '^400 ' | sort | uniq -c | tr -s ' ')" = ' 5 400 0' ] ||
    fail "separators: $(values separated.h5 tokens) $(values separated.h5 loss_mask)"

write() { "$GDN" data write --format hdf5 --output refused.h5 "$@"; }
refused "chatml.json has no special token '<|begin_of_text|>', which the template llama3 needs" write --tokenizer chatml.json --messages llama3 "$talks"
refused "chatml|llama3 is expected" write --tokenizer chatml.json --messages alpaca "$talks"
refused "--messages is of documents that a tokenizer takes" write --messages chatml "$talks"
refused "cannot say which tokens count" "$GDN" data write --format llmc --output refused.bin --tokenizer chatml.json --messages chatml "$talks"
echo 'a text' >a.txt
refused "a.txt: --messages takes lines of JSON" write --tokenizer chatml.json --messages chatml a.txt
bad() { # WORDS LINE
    printf '{"messages": [{"role": "user", "content": "a"}]}\n%s\n' "$2" >bad.jsonl
    refused "bad.jsonl, line 2: $1" write --tokenizer chatml.json --messages chatml bad.jsonl
}
bad "there is no list of messages" '{"text": "a"}'
bad "there is no list of messages" '{"messages": []}'
bad "message 1 is no object with texts under 'role' and 'content'" '{"messages": [{"role": "user"}]}'
bad "message 1 is no object" '{"messages": ["a"]}'
bad "message 2 has the role 'gpt'; system, user or assistant is expected" '{"messages": [{"role": "user", "content": ""}, {"role": "gpt", "content": "a"}]}'
bad "message 1 has 'tool_calls'; 'role' and 'content' alone are expected" '{"messages": [{"role": "assistant", "content": "", "tool_calls": []}]}'
sed 's/"content": *"<|im_start|>", *"single_word": *false, *"lstrip": *false/"content": "<|im_start|>", "single_word": false, "lstrip": true/' chatml.json >lstrip.json
if ! cmp -s chatml.json lstrip.json; then
    refused "takes white space before it" write --tokenizer lstrip.json --messages chatml "$talks"
else
    fail "no tokenizer with lstrip was made: $(grep -o '.\{40\}<|im_start|>.\{80\}' chatml.json | head -1)"
fi
sed 's/<unk>/<|begin_of_text|>/g; s/<s>/<|start_header_id|>/g; s/<\/s>/<|end_header_id|>/g; s/<mask>/<|eot_id|>/g; s/"normalized":false/"normalized":true/g' \
    "$SOURCE/tests/data/tokenizer/golden/llama2.json" >normalized.json
refused "its token '<|start_header_id|>' takes white space before it (lstrip), or is normalized" write --tokenizer normalized.json --messages llama3 "$talks"
