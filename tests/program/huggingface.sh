#!/usr/bin/env bash
# Models out and in as Hugging Face's programs keep them: byte for byte what it was, whichever way round; used by every command that takes a
# checkpoint; on ranks from the folder itself; refused by name, leaving nothing, where anything is not understood.
. "$SOURCE/tests/program/small.sh"
golden=$SOURCE/tests/golden/huggingface
export_to() { expect 0 "$GDN" checkpoint export --format huggingface "$@"; }

# ------------------------------------------------------------------------------------------------- files of transformers, in and out again
for name in llama llama-2 llama-3.1 llama-linear llama-tied mistral; do
    expect 0 "$GDN" checkpoint import "$golden/$name" $name.h5 > $name.yaml
    expect 0 "$GDN" checkpoint verify $name.h5 > verified
    grep -q '^model:$' $name.yaml && ! grep -q '^train:' $name.yaml || fail "no section model alone: $(cat $name.yaml)"
    expect 0 "$GDN" generate $name.h5 --ids --prompt '1 2 3' --length 4 --temperature 0 > ids
    [ "$(wc -w < ids)" -eq 4 ] || fail "no ids: $(cat ids)"
done
export_to llama.h5 llama
cmp llama/model.safetensors "$golden/llama/model.safetensors" || fail "another file than transformers wrote"
[ "$(grep -ho '"[be]os_token_id": null' llama/*.json | wc -l)" = 4 ] || fail "tokens of an unknown tokenizer have ends: $(grep os_token llama/*.json)"
export_to --dtype float16 mistral.h5 mistral
cmp mistral/model.safetensors "$golden/mistral/model.safetensors" || fail "another file than transformers wrote, of float16"
export_to --dtype bfloat16 --shard-size 12KB llama-tied.h5 tied
export_to llama-3.1.h5 llama-3.1 && export_to llama-linear.h5 llama-linear
for name in llama llama-3.1 llama-linear mistral tied; do
    from=${name/tied/llama-tied}
    expect 0 "$GDN" checkpoint import $name again-$name.h5 > again.yaml
    expect 0 "$GDN" checkpoint diff $from.h5 again-$name.h5 > diff
    cmp again.yaml $from.yaml || fail "$name: another section model"
done
[ "$(find tied -name 'model-*.safetensors' | wc -l)" -gt 1 ] || fail "one file in spite of --shard-size"

# ------------------------------------------------------------------------------------------------- a model of gdn's, out and in again
cat small.yaml > plain.yaml
set_plain=(--set 'model.delta.distances=[]' --set model.delta.regularizer=none --set train.steps=4 --set train.eval_interval=4)
train 1 plain "${set_plain[@]}"
export_to plain away
grep -q '"LlamaForCausalLM"' away/config.json || fail "no LlamaForCausalLM"
[ "$(grep -ho '"[be]os_token_id": 256' away/*.json | wc -l)" = 4 ] || fail "bytes have another end than 256: $(grep os_token away/*.json)"
expect 0 "$GDN" checkpoint import away plain.h5 > plain-model.yaml
if "$GDN" --version | grep -q float32; then
    expect 1 "$GDN" checkpoint diff plain plain.h5 > diff 2> err # which has no optimiser
    ! grep -q "/model/" diff || fail "weights differ: $(cat diff)"
    export_to plain.h5 away-again
    diff -r away away-again || fail "an export of an import is another one"
    for from in plain plain.h5; do
        expect 0 "$GDN" eval $from --data text.txt --format text --set train.sequence_length=16 --set train.eval_batches=16 --set train.batch_size=4 --json > eval-$from
    done
    [ "$(grep -o '"loss": *[^,]*' eval-plain)" = "$(grep -o '"loss": *[^,]*' eval-plain.h5)" ] || fail "another loss: $(cat eval-*)"
fi
expect 0 "$GDN" generate plain.h5 --prompt the --length 8 --set train.sequence_length=12 > text
expect 0 "$GDN" generate plain.h5 --prompt the --length 8 --format text > text
expect 0 "$GDN" generate plain.h5 --prompt the --length 8 --data text.txt --format text --set train.sequence_length=16 > again
cmp text again || fail "--data changes what is generated"
refused "--data: nowhere.txt cannot be read" "$GDN" generate plain.h5 --prompt the --data nowhere.txt --format text
refused "add --format" "$GDN" generate plain.h5 --prompt the --data text.txt
refused "use --ids" "$GDN" generate plain.h5 --prompt the --format nanogpt

# ------------------------------------------------------------------------------------------------- what Python reads, seen without it
# Keys of section model that the program writes are those that configuration_gdn.py has, in a table for each section.
awk -F: '/^[^ ]/ { model = $1 == "model" } !model { next }
    /^  [^ ]/ { section = toupper(substr($1, 3)); print "NAMES", substr($1, 3) }
    /^    / { print section, substr($1, 5) }' plain/config.yaml | sort > written
awk '$2 == "=" && $3 ~ /^dict\(/ { table = $1 }
    table { while (match($0, /[a-z0-9_]+=/)) { print table, substr($0, RSTART, RLENGTH - 1); $0 = substr($0, RSTART + RLENGTH) } }
    /\)$/ { table = "" }' "$SOURCE/model/huggingface/configuration_gdn.py" | sort > known
grep -q '^EXIT layers$' written || fail "no keys: $(cat written)"
diff written known > difference || fail "configuration_gdn.py knows other keys (>) than the program writes (<): $(cat difference)"

# ------------------------------------------------------------------------------------------------- starting weights, on ranks too
train 1 from-file "${set_plain[@]}" --set checkpoint.init_from=plain.h5
train 1 from-folder "${set_plain[@]}" --set checkpoint.init_from=away
equal from-file from-folder
train 2 file-tensor "${set_plain[@]}" --set checkpoint.init_from=plain.h5 --set mesh.tensor=2
train 2 folder-tensor "${set_plain[@]}" --set checkpoint.init_from=away --set mesh.tensor=2
equal file-tensor folder-tensor
train 1 grown --set train.steps=2 --set checkpoint.init_from=away
grep -q "away has no weights for .* tensors of connections and rules between layers: they start fresh" grown.log || fail "no note of what grows: $(cat grown.log)"
refused_run "model.rope_theta is 5000.0, in away 10000.0" 1 small.yaml "${set_plain[@]}" --set checkpoint.init_from=away --set model.rope_theta=5000
refused_run "model.tie_embeddings is true, in away false" 1 small.yaml "${set_plain[@]}" --set checkpoint.init_from=away --set model.tie_embeddings=true

# ------------------------------------------------------------------------------------------------- models with connections and rules
for name in gdn-adaptive-multihead-normalize gdn-rules-1 gdn-rules-2 gdn-rules-3; do
    expect 0 "$GDN" checkpoint import "$golden/$name" $name.h5 > $name.yaml
    export_to --dtype bfloat16 $name.h5 $name
    cmp $name/model.safetensors "$golden/$name/model.safetensors" || fail "$name: another file than transformers wrote"
    cmp $name/modeling_gdn.py "$SOURCE/model/huggingface/modeling_gdn.py" || fail "$name: another modeling_gdn.py"
    expect 0 "$GDN" checkpoint import $name again-$name.h5 > again.yaml
    cmp again.yaml $name.yaml || fail "$name: another section model"
done
train 1 more --set train.steps=2 --set model.delta.stage_steps=0 --set checkpoint.init_from=away
export_to --shard-size 20KB more more-away
expect 0 "$GDN" checkpoint import more-away more.h5 > more.yaml
if "$GDN" --version | grep -q float32; then
    expect 1 "$GDN" checkpoint diff more more.h5 > diff 2> err
    ! grep -q "/model/" diff || fail "weights differ: $(cat diff)"
fi
train 1 on --set train.steps=1 --set model.delta.stage_steps=0 --set checkpoint.init_from=more-away
refused_run "is none of the model that the run's configuration describes" 1 small.yaml "${set_plain[@]}" --set checkpoint.init_from=more-away
! grep -q "has no weights" on.log || fail "connections of a folder were not taken: $(cat on.log)"

# ------------------------------------------------------------------------------------------------- a tokenizer of more tokens than the model
# Left out with a note, and tokens are ids.
cp -r "$golden/llama" large && cp "$SOURCE/tests/data/tokenizer/golden/qwen.json" large/tokenizer.json
expect 0 "$GDN" checkpoint import large large.h5 > large.yaml 2> err
grep -qF "note: the folder's tokenizer is left out: large/tokenizer.json has 406 tokens, and vocab_size of config.json is 61" err || fail "no note: $(cat err)"
expect 0 "$GDN" generate large.h5 --ids --prompt '1 2 3' --length 4 > ids
# A training that starts from such a folder has text by it, and is refused.
cp -r more-away larger && cp large/tokenizer.json larger
refused_run "larger/tokenizer.json has 406 tokens: as many are expected" 1 small.yaml --set model.delta.stage_steps=0 --set checkpoint.init_from=larger

# ------------------------------------------------------------------------------------------------- what is refused
bad() { # WORDS: import of the folder `bad` is refused in these words, and leaves nothing
    refused "$1" "$GDN" checkpoint import bad bad.h5
    [ -z "$(find . -maxdepth 1 -name '*bad.h5*')" ] || fail "$1: a file is left"
    rm -r bad
}
copy() { cp -r "$golden/${1:-llama}" bad; }
copy && sed -i 's/"hidden_act": "silu"/"hidden_act": "gelu"/' bad/config.json && bad 'hidden_act is "gelu"'
copy && sed -i 's/"intermediate_size": 40/"intermediate_size": 48/' bad/config.json && bad "model.layers.0.mlp.gate_proj.weight has the shape [40, 32], but config.json makes it [48, 32]"
copy && sed -i 's/"num_hidden_layers": 2/"num_hidden_layers": 1/' bad/config.json && bad "tensor model.layers.1.input_layernorm.weight is none of the model"
copy && sed -i 's/"num_hidden_layers": 2/"num_hidden_layers": 3/' bad/config.json && bad "no tensor for layers.2."
copy && sed -i 's/"tie_word_embeddings": false/"tie_word_embeddings": true/' bad/config.json && bad "lm_head.weight is other than model.embed_tokens.weight"
copy llama-2 && sed -i 's/"rope_theta": 10000.0/"rope_theta": 20000.0/' bad/config.json && bad "inv_freq are other rotary frequencies"
copy && sed -i '1s/lm_head.weight":{"dtype":"F32"/lm_head.weight":{"dtype":"I32"/' bad/model.safetensors && bad "lm_head.weight is int32"
copy && truncate -s -4 bad/model.safetensors && bad "model.norm.weight lies at bytes"
copy llama-tied && rm bad/model-00002-of-00003.safetensors && bad "model-00002-of-00003.safetensors: cannot be opened"
copy && rm bad/config.json && bad "bad/config.json cannot be read"
refused "llama.h5 is there already" "$GDN" checkpoint import "$golden/llama" llama.h5

refuse_export() { # WORDS ARGUMENT …
    refused "$1" "$GDN" checkpoint export "${@:2}"
    [ ! -e nowhere ] && [ ! -e .nowhere.partial ] || fail "$1: a folder is left"
}
refuse_export "after 2 steps 1 of the 2 of model.delta.distances are introduced" --format huggingface grown nowhere
refuse_export "'float64': float32, bfloat16 or float16 is expected" --format huggingface --dtype float64 plain nowhere
refuse_export "--shard-size is '5XB': bytes, or KB, MB or GB" --format huggingface --shard-size 5XB plain nowhere
refuse_export "--format huggingface is expected" --format gguf plain nowhere
refuse_export "--format huggingface is expected" plain nowhere
refuse_export "away is there already and not empty" --format huggingface plain away
mkdir empty
refuse_export "empty/./ cannot become a complete folder" --format huggingface plain empty/./
(cd empty && expect 2 "$GDN" checkpoint export --format huggingface ../plain . 2> ../err)
grep -qF ". cannot become a complete folder" err && [ -z "$(ls -A empty)" ] || fail "the current folder: $(cat err; ls -A empty)"
export_to plain empty/
