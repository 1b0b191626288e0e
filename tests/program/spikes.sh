#!/usr/bin/env bash
# Steps that go wrong: spikes are left out, or training goes back to a checkpoint and steps over their data, to the same bits
# whether it was killed and resumed or not; what is not finite is named by rank and layer. spikes.sh [short]: on fewer ranks, and not killed.
. "$SOURCE/tests/program/small.sh"
all=1
[ "${1:-}" != short ] || all=

# A text whose middle is of bytes that the rest does not have: from step 25 to 27 (192 tokens a step, in sequence).
head -c 12000 text.txt > whole
{ head -c 4900 whole; head -c 5200 whole | tail -c 300 | LC_ALL=C tr '\000-\377' '\200-\377\200-\377'; tail -c +5201 whole; } > text.txt
sed -i 's/validation_fraction: 0.1/validation_fraction: 0.1\n  order: sequential/' small.yaml
window=(--set spikes.window=12)

steps() { lines step "$1" | sed -E 's/.*"step":([0-9]+),.*/\1/'; }
last_of_each() { lines step "$1" | awk -F'"step":' '{ split($2, n, ","); line[n[1] + 0] = $0 } END { for (i = 0; i in line; i++) print line[i] }'; }
says() { # LOG PATTERN: exactly one line of failure, and it says this
    [ "$(grep -c '^gdn: ' "$1")" -eq 1 ] || fail "not one message: $(cat "$1")"
    grep -qE "$2" "$1" || fail "no '$2' in: $(cat "$1")"
}
spikes() { lines spike "$1" | sed -E 's/.*"step":([0-9]+),"what":"([a-z_ ]*)".*"action":"([a-z]*)"(,"to_step":([0-9]+))?.*/\1 \2 \3 \5/'; }
same_end() { # RUN RUN: last lines of every step, and all of the training's state
    last_of_each "$1" > first && last_of_each "$2" > second
    [ "$(grep -c . first)" -eq 40 ] || fail "$1 has $(grep -c . first) steps"
    cmp first second || fail "steps of $2 differ from $1"
    expect 0 "$GDN" checkpoint diff "$1" "$2" > diff
}

# ------------------------------------------------------------------------------------------ off, report
expect 0 train 1 off
expect 0 train 1 report "${window[@]}" --set spikes.action=report
lines step off > first && lines step report | cmp - first || fail "a report changes the training"
expect 1 "$GDN" checkpoint diff off report > diff 2>&1
[ "$(grep -c '^/' diff)" -eq 1 ] && grep -q '^/spikes/window: only in report' diff || fail "a report changes the training: $(cat diff)"
[ -z "$(lines spike off)" ] || fail "a spike was told of without a window"
[[ "$(spikes report)" == "25 grad_norm report "* ]] || fail "spikes: $(lines spike report)"
[ -z "$(lines skip report)" ] || fail "a reported step was left out"

# ------------------------------------------------------------------------------------------ skip
for ranks in 1 ${all:+2}; do
    expect 0 train $ranks "skip$ranks" "${window[@]}"
    [[ "$(spikes "skip$ranks")" == "25 grad_norm skip "* ]] || fail "spikes: $(lines spike "skip$ranks")"
    [ "$(lines skip "skip$ranks" | grep -c '"reason":"spike"')" -eq "$(spikes "skip$ranks" | wc -l)" ] || fail "no skip events"
    [ "$(steps "skip$ranks" | tr '\n' ' ')" = "$(seq 0 39 | tr '\n' ' ')" ] || fail "not every step was told of once"
    for at in 20 26; do expect 3 train $ranks "skipped$ranks" "${window[@]}" --set train.stop_at=$at 2> /dev/null; done
    expect 0 train $ranks "skipped$ranks" "${window[@]}"
    same_end "skip$ranks" "skipped$ranks"
    lines spike "skip$ranks" > first && lines spike "skipped$ranks" | cmp - first || fail "a resumed run judges otherwise"
done
# Left out: the next step's loss is of the same weights, so it is not what it was with the garbage learned.
lines step off | grep '"step":28,' > first && lines step skip1 | grep '"step":28,' | cmp -s - first && fail "nothing was left out"
expect 1 "$GDN" checkpoint diff off skip1 > diff 2>&1

# Another window's length begins it anew.
expect 3 train 1 other "${window[@]}" --set train.stop_at=20 2> /dev/null
expect 0 train 1 other --set spikes.window=10
grep -q "spikes.window of 10 steps" other.log || fail "no word of the new window: $(cat other.log)"
[ -z "$(spikes other | grep '^25')" ] || fail "a window of 5 values judged"
expect 2 train 1 short --set spikes.window=7 2> /dev/null
says short.log "spikes.window: 7"

# ------------------------------------------------------------------------------------------ rewind
back=("${window[@]}" --set spikes.action=rewind --set checkpoint.interval=8)
for ranks in ${all:+1} 2; do
    expect 0 train $ranks "back$ranks" "${back[@]}"
    spikes "back$ranks" | head -1 | grep -q "^25 grad_norm rewind 24$" || fail "spikes: $(lines spike "back$ranks")"
    [ "$(steps "back$ranks" | grep -cx 24)" -ge 2 ] || fail "step 24 was not done again"
    told=$(cat "back$ranks"/tensorboard/* | LC_ALL=C grep -aoP '\x10\x18\x3a\x02\x08\x01' | wc -l) # a session start at step 24
    [ "$told" -eq "$(spikes "back$ranks" | grep -c ' rewind 24$')" ] || fail "TensorBoard was told of a way back $told times"
    # Behind the spike's data: 26 steps of the first way, and those since.
    again=$(lines step "back$ranks" | grep '"step":24,' | sed -n '2s/.*"tokens":\([0-9]*\)[,}].*/\1/p')
    [ "$again" -eq $((27 * 192)) ] || fail "step 24 has consumed $again tokens the second time"
    # Stopped behind the spikes; and killed there.
    for at in 20 30; do expect 3 train $ranks "stopped$ranks" "${back[@]}" --set train.stop_at=$at 2> /dev/null; done
    expect 0 train $ranks "stopped$ranks" "${back[@]}"
    last_of_each "back$ranks" > first && last_of_each "stopped$ranks" | cmp - first || fail "$ranks: stopped behind a spike"
    expect 0 "$GDN" checkpoint diff "back$ranks" "stopped$ranks" > diff
done
for try in ${all:+1 2 3 4 5}; do # the run may be over before it is killed
    rm -rf killed
    "$GDN" train small.yaml --run-dir killed "${back[@]}" --set checkpoint.asynchronous=false > killed.log 2>&1 &
    until grep -q '"action":"rewind"' killed/metrics.jsonl 2> /dev/null || ! kill -0 $!; do :; done 2> /dev/null
    kill -9 $! 2> /dev/null || true
    wait $! 2> /dev/null || true
    grep -q '"event":"finish"' killed/metrics.jsonl || break
done
if [ -n "$all" ]; then
    ! grep -q '"event":"finish"' killed/metrics.jsonl && lines spike killed | grep -q rewind || fail "not killed behind a spike: $(cat killed.log)"
    expect 0 train 1 killed "${back[@]}"
    same_end back1 killed
fi

# Muon's state goes back too.
muon=(--set train.optimizer=muon --set spikes.threshold=4) # its norms vary more
expect 0 train 2 muon "${back[@]}" "${muon[@]}"
spikes muon | grep -q " rewind " || fail "no spike: $(lines spike muon)"
expect 3 train 2 muon_stopped "${back[@]}" "${muon[@]}" --set train.stop_at=30 2> /dev/null
expect 0 train 2 muon_stopped "${back[@]}" "${muon[@]}"
same_end muon muon_stopped

# Back behind a change of the batch size: the training goes on with what is in force, the data behind the spike. Steps are of
# 96 tokens from step 24 on, so the spike's text is in steps 27 to 30; what was consumed by then is told again after it.
back+=(--set train.micro_batch_size=6)
expect 3 train 1 changed "${back[@]}" --set train.stop_at=24 2> /dev/null
expect 0 train 1 changed "${back[@]}" --set checkpoint.interval=0 --resume-with train.batch_size=6
spikes changed | head -1 | grep -qE "^(2[6-9]|30) [a-z_]* rewind 24$" || fail "spikes: $(lines spike changed)"
at=$(spikes changed | head -1 | cut -d' ' -f1)
again=$(lines step changed | grep '"step":24,' | sed -n '2s/.*"tokens":\([0-9]*\)[,}].*/\1/p')
[ "$again" -eq $((24 * 192 + (at - 24 + 2) * 96)) ] || fail "step 24 has consumed $again tokens the second time"

# The same as a ramp: steps that are done again have the batch of their number.
expect 0 train 1 ramped "${back[@]}" --set checkpoint.interval=24 --set 'train.batch_ramp=[[0, 12], [24, 6]]' --set train.batch_size=6
lines step changed > first && lines step ramped | cmp - first || fail "a ramp goes back to other steps"

# Without a checkpoint yet, the step is left out, and that is told; one spike too many ends the run.
expect 0 train 1 none "${window[@]}" --set spikes.action=rewind
spikes none | head -1 | grep -q "^25 grad_norm skip $" || fail "spikes: $(lines spike none)"
lines spike none | head -1 | grep -q '"reason":"there is no checkpoint yet' || fail "no reason: $(lines spike none)"
same_end none skip1
expect 5 train 1 over "${window[@]}" --set spikes.most=0 2> /dev/null
says over.log "diverged at step 25: the gradient norm is spike number 1, and spikes.most allows 0"

# -------------------------------------------------------------------------------------- not finite
spoil() { "$BUILD/tests/program/spoil" off/checkpoints/step_00000040/checkpoint.h5 spoilt.h5 "$@"; }
named() { # RANKS MESH RANK LAYER WHAT [OPTION …]: the run ends and its one message and event name these
    local ranks=$1 mesh=$2 rank=$3 layer=$4 what=$5
    shift 5
    rm -rf bad
    read -r d t p <<< "$mesh"
    expect 5 train "$ranks" bad --set mesh.data="$d" --set mesh.tensor="$t" --set mesh.pipeline="$p" \
        --set checkpoint.init_from=spoilt.h5 --set train.stop_at=2 "$@" 2> /dev/null
    says bad.log "diverged at step 0: .*first not finite is the $what on rank $rank \("
    lines not_finite bad | grep -qE "\"step\":0,\"rank\":$rank,\"host\":\".*\",\"layer\":$layer,\"what\":\"$what\",\"micro_batch\":0,\"recurred\":1" ||
        fail "mesh $mesh: $(lines not_finite bad)"
    [ ! -e bad/checkpoints/latest ] || fail "a diverged state was saved"
}
last=$((48 * 32 - 1)) # of [48, 32]: on the second of two tensor ranks
spoil /model/layers/1/mlp/up_proj/weight $last nan
named 1 "1 1 1" 0 1 "weights of layers.1.mlp.up_proj.weight"
named 2 "2 1 1" 0 1 "weights of layers.1.mlp.up_proj.weight"
named 2 "1 2 1" 1 1 "weights of layers.1.mlp.up_proj.weight"
spoil /model/layers/2/mlp/up_proj/weight 0 nan
named 2 "1 1 2" 1 2 "weights of layers.2.mlp.up_proj.weight"
says bad.log "before any exchange, what rank 1 computed"
spoil /model/layers/0/self_attn/o_proj/weight 7 inf
named 2 "1 1 2" 0 0 "weights of layers.0.self_attn.o_proj.weight"
says bad.log "before any exchange, what rank 0 computed"
if ! "$GDN" --version | grep -q float64; then # too much for a float, though the weights are none the worse
    spoil /model/layers/2/post_attention_layernorm/weight 7 3e38
    named 1 "1 1 1" 0 2 "output of layer 2"
    named 2 "1 1 2" 1 2 "output of layer 2" --set train.batch_size=8 --set train.micro_batch_size=2
fi

# With a window such steps are left out, as long as spikes.most allows; none of them does harm.
expect 5 train 2 hopeless "${window[@]}" --set spikes.most=3 --set checkpoint.init_from=spoilt.h5 2> /dev/null
says hopeless.log "diverged at step 3: what is not finite is spike number 4, and spikes.most allows 3"
[ "$(lines not_finite hopeless | wc -l) $(spikes hopeless | grep -c '^[0-3] not finite skip')" = "4 4" ] || fail "events: $(cat hopeless/metrics.jsonl)"
