#!/usr/bin/env bash
# Evaluations on several sets (train/evaluation/validation.h): each by its name, everywhere; the same on every mesh, and to the bit what an
# evaluation on that set alone finds; a mixture's loss is its sources'; perplexity and bits a byte are what they are defined as.
. "$SOURCE/tests/program/small.sh"

value() { # FILE KEY…
    "$JSON_VALUE" "${@:2}" < "$1" || fail "$1 has no ${*:2}: $(cat "$1")"
}
evaluate() { # OUTPUT ARGUMENT…: as JSON
    expect 0 "$GDN" eval "${@:2}" --json > "$1" 2> err
}
same() { # WHAT FIRST SECOND: the same digits
    [ "$2" = "$3" ] || fail "$1: $2 and $3"
}
holds() { # CONDITION VALUE…: of awk, with the values as v[1] …
    LC_ALL=C awk -v values="${*:2}" "BEGIN { split(values, v, \" \"); exit !($1) }" || fail "$1 of ${*:2}"
}
split -n l/4 text.txt part_

sets=(--set data.train=\"\" --set 'data.sources=[{path: part_aa, weight: 3, name: much}, {path: part_ab}]'
    --set 'data.validations={one: part_ac, all: text.txt}')
train 1 one "${sets[@]}"
for mesh in data tensor pipeline; do
    train 2 $mesh "${sets[@]}" --set mesh.$mesh=2
    for key in loss perplexity bits_per_byte validation much source_1 one all; do close_to $losses $key eval one $mesh; done
done

# What training has told at its end is what gdn eval finds, on any number of ranks, and what the checkpoint has as its loss.
lines eval one | tail -n 1 > told
evaluate found one
for key in loss perplexity bits_per_byte losses; do same $key "$(value told $key)" "$(value found $key)"; done
same "first set" "$(value found loss)" "$(value found losses validation)"
same "the checkpoint's loss" "$("$GDN" checkpoint ls one --json | "$JSON_VALUE" 0 loss)" "$(value found loss)"
[ "$(value found step) $(value found sequences) $(value found tokens)" = "40 48 768" ] || fail "$(cat found)"
same path "$(value found checkpoint)" '"one/checkpoints/step_00000040/checkpoint.h5"'
"$GDN" eval one > words1
for ranks in 2 3; do mpirun --oversubscribe -n $ranks "$GDN" eval one > words$ranks 2> err || fail "$(cat err)"; done
cmp words1 words2 && cmp words1 words3 || fail "ranks evaluate differently: $(cat words1 words2 words3)"
grep -qE '^data +48 sequences of 16 tokens, of [0-9]+ \(all: --set train.eval_batches=0\)$' words1 || fail "$(cat words1)"
same 'in words' "$(grep -cE '^(validation|much|source_1|one|all) +[0-9.]+ nats a token, [0-9.]+ bits a byte, perplexity [0-9.]+, (48|36|12) sequences$' words1)" 5

# Each set for itself: by its name, by its file, and a mixture's source as the only one there is.
for name in one all; do
    evaluate alone one --validation $name
    same $name "$(value alone losses)" "{\"$name\":$(value found losses $name)}"
    file=$([ $name = one ] && echo part_ac || echo text.txt)
    evaluate alone one --data "$file"
    same "$file" "$(value alone losses)" "{\"validation\":$(value found losses $name)}"
done
evaluate alone one --validation much
same much "$(value alone loss)" "$(value found losses much)"
for source in much:part_aa:3 source_1:part_ab:1; do # of so many batches by its weight
    IFS=: read -r name file batches <<< "$source"
    evaluate alone one --set "data.sources=[{path: $file}]" --set train.eval_batches="$batches"
    same "$name as the only source" "$(value alone loss)" "$(value found losses "$name")"
done
# 36 and 12 sequences by weight; all of both where eval_batches is 0. Sums of doubles in another order.
holds '(v[1] / ((36 * v[2] + 12 * v[3]) / 48) - 1) ^ 2 < 1e-28' "$(value found loss)" "$(value found losses much)" "$(value found losses source_1)"
evaluate whole one --set train.eval_batches=0
for name in much source_1; do evaluate $name one --set train.eval_batches=0 --validation $name; done
same 'all sequences' "$(value whole sequences)" "$(sed -nE 's/^data .*, of ([0-9]+) .*/\1/p' words1)"
holds 'v[1] == v[2] + v[3]' "$(value whole sequences)" "$(value much sequences)" "$(value source_1 sequences)"
holds '(v[1] * v[2] / (v[3] * v[4] + v[5] * v[6]) - 1) ^ 2 < 1e-28' "$(value whole sequences)" "$(value whole loss)" \
    "$(value much sequences)" "$(value much loss)" "$(value source_1 sequences)" "$(value source_1 loss)"

# Everyone who watches sees them.
run=$(realpath one)
for name in validation much source_1 one all; do
    grep -qF "gdn_validation_set_loss{run=\"$run\",set=\"$name\"} $(grep '"event":"eval"' one/metrics.jsonl | tail -n 1 | sed -E "s/.*\"$name\":([0-9.]*).*/\1/")" one/metrics.prom ||
        fail "$name is not in $(grep validation one/metrics.prom)"
    grep -qaF "validation/loss/$name" one/tensorboard/* || fail "TensorBoard has no $name"
done
grep -qaF validation/bits_per_byte one/tensorboard/* || fail "TensorBoard has no bits a byte"
expect 0 "$GDN" report one > /dev/null
for name in validation much source_1 one all; do grep -qE "<i class=\"c[0-9]\"></i>$name<" one/report.html || fail "the page about one has no $name"; done
expect 0 "$GDN" report one data --output both.html > /dev/null
for name in validation much source_1 one all; do grep -qF "<h3>Validation loss: $name</h3>" both.html || fail "the page about two has no $name"; done
grep -qE '^after step 40: validation loss [0-9.]+, perplexity [0-9.]+, [0-9.]+ bits a byte; much [0-9.]+, source_1 [0-9.]+, one [0-9.]+, all [0-9.]+$' one.log || fail "$(cat one.log)"

# ---- perplexity and bits a byte. Documents of three bytes: every fourth token is what separates them, and no byte.
mkdir documents
for i in $(seq 100 180); do printf %s "$i" > documents/"$i".txt; done # 81 documents, 323 tokens: 20 sequences of 16
evaluate documents.json one --data 'documents/*.txt' --set train.eval_batches=0
[ "$(value documents.json sequences) $(value documents.json tokens)" = "20 320" ] || fail "$(cat documents.json)"
# Tokens 1 to 320 are predicted, of which 3, 7, …, 319 are separators: 80.
holds '(v[1] / (v[2] * 320 / 240) - 1) ^ 2 < 1e-28 && (v[2] * log(2) / v[3] - 1) ^ 2 < 1e-28 && (v[4] / exp(v[3]) - 1) ^ 2 < 1e-24' \
    "$(value documents.json bits_per_byte)" "$(value documents.json bits_per_token)" "$(value documents.json loss)" "$(value documents.json perplexity)"
"$GDN" data write --format hdf5 --output text.h5 text.txt > /dev/null
evaluate tokens.json one --data text.h5 --format hdf5
same 'bits a byte of tokens' "$(value tokens.json bits_per_byte)" null
same 'the same tokens' "$(value tokens.json loss)" "$(value found losses all)"

# ---- without data.validation and fraction the first of data.validations is what the best checkpoint is judged by.
train 1 named --set data.validation_fraction=0 --set 'data.validations={one: part_ac, all: text.txt}' --set train.steps=10
lines eval named > told
same 'the first' "$(value told loss)" "$(value told losses one)"
same "the checkpoint's loss" "$("$GDN" checkpoint ls named --json | "$JSON_VALUE" 0 loss)" "$(value told loss)"
grep -q '^one loss ' named.log || fail "$(cat named.log)"

# ---- bad input: one message, nothing printed, nothing created.
refused "--validation: 'two' is none of the run's validation sets; these are: validation, much, source_1, one, all" "$GDN" eval one --validation two
refused "--data measures on a file and --validation on a set" "$GDN" eval one --validation one --data text.txt --json
refused "--data is '': a path is expected" "$GDN" eval one --data "" --json
refused "--validation source_0: the first train.eval_batches 1 batches of the mixture have no sequence of it" \
    "$GDN" eval one --validation source_0 --set train.eval_batches=1 --set 'data.sources=[{path: part_ab}, {path: part_aa, weight: 1000}]'
refused "data.validations.two with train.sequence_length 16: missing.txt" "$GDN" train small.yaml --run-dir none --set 'data.validations={two: missing.txt}'
seq 9999 > digits.txt
"$GDN" data write --format hdf5 --output digits.h5 digits.txt > /dev/null
refused "text.h5: token " "$GDN" train small.yaml --run-dir none --set data.format=hdf5 --set data.train=digits.h5 --set model.vocab_size=60 \
    --set 'data.validations={two: digits.h5, three: text.h5}'
# A node whose files are others: 400 bytes are 24 sequences.
mkdir node0 node1
cp text.txt part_ac node0 && cp text.txt node1 && head -c 400 part_ac > node1/part_ac
refused "the validation data 'one' of this rank have 24 sequences where rank 0 has 48" mpirun --oversubscribe -n 2 \
    bash -c 'cd node$OMPI_COMM_WORLD_RANK && exec "$GDN" train ../small.yaml --run-dir ../none --set "data.validations={one: part_ac}"'
[ ! -e none ] || fail "a refused run left a directory"
