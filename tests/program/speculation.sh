#!/usr/bin/env bash
# gdn generate --speculate: drafts that all layers verify make no other text at temperature 0, whatever is drafted where, also
# where the cache starts again in between and where a text ends; other texts follow from the seed; what cannot be is refused.
. "$SOURCE/tests/program/small.sh"

# An exit that is often right and one that is mostly wrong: both ways are gone.
cat > six.yaml <<YAML
model: {vocab_size: 257, hidden_size: 48, num_layers: 6, num_heads: 2, intermediate_size: 96,
        delta: {distances: [1, 2], hidden: 8, gate_hidden: 8}, exit: {layers: [0, 1, 4], weights: [0.1, 0.3, 0.3]}}
train: {steps: 60, batch_size: 8, sequence_length: 48, lr: 0.004, warmup_steps: 10}
data: {train: $SOURCE/tests/program/prose.txt, validation_fraction: 0}
YAML
"$GDN" train six.yaml --run-dir six > six.log 2>&1 || fail "$(cat six.log)"

speak() { "$GDN" generate six --device cpu --temperature 0 "$@"; }
for prompt in 'The run ' a "$(head -c 70 "$SOURCE/tests/program/prose.txt")"; do
    for more in '' '--context 99' '--context 13' '--context 7 --length 41' '--context 2 --length 9' '--length 1'; do
        # shellcheck disable=SC2086 # options are words
        speak --prompt "$prompt" --length 60 $more > one
        for drafts in '1' '4 --draft 1' '7 --draft 4' '32'; do
            # shellcheck disable=SC2086
            speak --prompt "$prompt" --length 60 $more --speculate $drafts > several
            cmp one several || fail "'$prompt' $more --speculate $drafts"
        done
    done
done
OMP_NUM_THREADS=3 speak --prompt 'The ' --length 60 --speculate 5 --stats > several 2> note
speak --prompt 'The ' --length 60 > one && cmp one several || fail "threads or --stats change a text"
speak --prompt 'The ' --length 60 --speculate 5 --stats > both 2>&1
grep '^gdn: note: 60 tokens' both > note && grep -v '^gdn: note: ' both | cmp - one || fail "--stats in the middle of a text's line: $(cat both)"
speak --prompt 'The ' --length 60 --json > one && speak --prompt 'The ' --length 60 --json --speculate 4 > several && cmp one several || fail "--json"

sampled() { "$GDN" generate six --device cpu --prompt 'The ' --length 90 --speculate 3 --top-p 0.9 --seed "$@"; }
sampled 5 > one && sampled 5 --stats > several 2> note && cmp one several || fail "the same seed, another text"
read -r accepted tried <<< "$(sed -nE 's/.* ([0-9]+) of ([0-9]+) drafts of layer 0 accepted.*/\1 \2/p' note)"
[ "${accepted:-0}" -gt 0 ] && [ "$accepted" -lt "$tried" ] || fail "$(cat note)" # both ways are gone
sampled 6 > several && ! cmp -s one several || fail "another seed, the same text"
ends=0 # of texts that end within a verification: what comes after is not counted
for seed in 1 2 3 4 5 6 7 8 9 10 11 12; do
    "$GDN" generate six --device cpu --length 90 --speculate 8 --temperature 9 --seed $seed --json --stats > out 2> note
    ids=$(grep -o '"ids":\[[^]]*' out | tr ',' '\n' | wc -l)
    [ "$(sed -nE 's/.*note: ([0-9]+) tokens,.*/\1/p' note)" -eq "$ids" ] || fail "$ids tokens: $(cat note)"
    ends=$((ends + (ids < 90)))
done
[ "$ends" -gt 0 ] || fail "no text ends early"

refused "has exits at layers 0, 1, 4 alone" speak --speculate 2 --draft 3
refused "add --speculate" speak --draft 1
refused "give one of the two" speak --speculate 2 --exit 0.5
refused "--speculate" speak --speculate 0
refused "--speculate" speak --speculate 33
"$GDN" train six.yaml --run-dir none --set train.steps=1 --set 'model.exit.layers=[]' --set 'model.exit.weights=[]' > none.log 2>&1 || fail "$(cat none.log)"
refused "on the cpu in fp32 alone" speak --speculate 2 --set train.precision=bf16
refused "has no exits" "$GDN" generate none --device cpu --prompt a --speculate 2
if "$GDN" --version | grep -q float32; then # logits that are no numbers
    "$GDN" train six.yaml --run-dir wild --set train.steps=1 --set train.lr=1e12 --set train.warmup_steps=0 --set train.grad_clip=0 \
        --set train.eval_interval=0 > wild.log 2>&1 || fail "$(cat wild.log)"
    refused "nothing can be told by it" "$GDN" eval wild --exits --data text.txt
fi
