#!/usr/bin/env bash
# Training data with a loss mask: loss_mask.sh [all]. Some meshes, with `all` every one, with micro-batches and data ranks of unequal counts,
# equal one rank; so do micro-batches of another size and a batch ramp; what is computed again changes no bit; a stopped run goes on to the bit, on another mesh too; a batch
# without a target that counts is left out on all ranks alike; what is evaluated is the mean over what counts; another mask is other data; what is no mask is refused.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps
# 16 sequences of 9 a step, in order: of step 5 no target counts, of steps 4 and 6 all the same some.
"$MASKED_TOKENS" data.h5 2200 $((5 * 144 - 4)) $((6 * 144 + 3))
"$MASKED_TOKENS" later.h5 900 400 500
sed -i 's/validation_fraction: 0.1/format: hdf5, order: sequential, validation: later.h5/; s/text.txt/data.h5/
    s/grad_clip: 0.7/&, noise_interval: 4/' ./*.yaml
for name in mean adaptive learned; do
    on 1.1.1 $name $name
    memory_as_planned $name
    [ "$(lines skip $name)" = '{"event":"skip","step":5,"reason":"no target counts"}' ] || fail "skipped: $(lines skip $name)"
    [ "$(lines step $name | sed -n 6p | sed -E 's/.*("loss":[^,]*,"ce":[^,]*),.*("counted":[^,}]*).*/\1,\2/')" = '"loss":null,"ce":null,"counted":0' ] ||
        fail "the step that is left out says: $(lines step $name | sed -n 6p)"
done
counted() { lines step "$1" | sed -E 's/.*"counted":([0-9]*).*/\1/' | tr '\n' ' '; }
against_one() { # MESH MODEL [OPTION …]
    local mesh=$1 name=$2
    rm -rf there
    on $mesh $name there "${@:3}"
    close $name there
    close_to $norms noise_scale noise $name there
    memory_as_planned there
    [ "$(counted $name)" = "$(counted there)" ] || fail "counted on $mesh: $(counted there)instead of $(counted $name)"
    [ "$(lines skip there)" = "$(lines skip $name)" ] || fail "skipped on $mesh: $(lines skip there)"
}
meshes="4.1.1 1.2.2 2.2.2"
[ -z "${1:-}" ] || meshes=$(sed 's/[{} ]//g; s/,$//; s/,/./g; /^1.1.1$/d' "$SOURCE/tests/support/meshes.inc")
for mesh in $meshes; do
    models="mean adaptive learned" in_turn 1
    against_one $mesh $chosen
done
against_one 1.1.1 mean --set train.micro_batch_size=8
on 1.1.1 mean full --set train.recompute=full
equal mean full
[ -z "${1:-}" ] || against_one 2.2.2 learned --set mesh.sequence_parallel=true --set mesh.interleave=2
on 1.1.1 mean ramp --set 'train.batch_ramp=[[0, 4], [3, 16]]' --set train.noise_interval=0
on 2.1.2 mean ramp_there --set 'train.batch_ramp=[[0, 4], [3, 16]]' --set train.noise_interval=0
close ramp ramp_there

# The noise of halves of unequal counts, n and m, gradients' means a and b: of the whole batch's mean gradient g, |D|² = (n|a|² + m|b|²)/(n + m) − |g|².
on 1.1.1 heads halves --set train.batch_size=8 --set train.steps=2 --set train.lr=0 --set train.noise_interval=0
on 1.1.1 heads whole --set train.steps=1
of_steps() { lines step "$1" | sed -E "s/.*\"$2\":([^,}]*).*/\1/" | tr '\n' ' '; }
LC_ALL=C awk -v norms="$(of_steps halves grad_norm)" -v counts="$(of_steps halves counted)" -v g="$(of_steps whole grad_norm)" \
    -v variance="$(lines noise whole | sed -E 's/.*"variance":([^,]*).*/\1/')" 'BEGIN {
        split(norms, a, " "); split(counts, n, " ")
        d = variance / 16 / ((n[1] * a[1] ^ 2 + n[2] * a[2] ^ 2) / (n[1] + n[2]) - g ^ 2) - 1
        exit !(n[1] != n[2] && d < 1e-9 && d > -1e-9)
    }' || fail "noise: $(lines noise whole) of halves $(of_steps halves grad_norm) $(of_steps halves counted)"

# Goes on to the bit behind the step that was left out and before it, and elsewhere but for rounding.
for stop in 5 6 9; do
    rm -rf again
    expect 3 "$GDN" train mean.yaml --run-dir again --set train.stop_at=$stop > again.log 2>&1
    expect 0 "$GDN" train mean.yaml --run-dir again >> again.log 2>&1
    equal mean again
done
expect 3 "$GDN" train mean.yaml --run-dir moved --set train.stop_at=4 > moved.log 2>&1
expect 0 mpirun --oversubscribe -n 4 "$GDN" train mean.yaml --run-dir moved --set mesh.pipeline=2 >> moved.log 2>&1
close mean moved

# The left out step has changed no weight: the same run but for it has the same ones before and after.
expect 3 "$GDN" train mean.yaml --run-dir before --set train.stop_at=5 > before.log 2>&1
expect 3 "$GDN" train mean.yaml --run-dir after --set train.stop_at=6 > after.log 2>&1
expect 0 "$GDN" checkpoint diff before after > diff

# An evaluation's tokens are those that count, on any number of ranks: 99 whole sequences of 9.
"$GDN" data show later.h5 --json > show
of() { sed -E "s/.*\"$1\":([0-9.e-]*).*/\1/" "$2"; }
expect 0 "$GDN" eval mean --json --set train.eval_batches=0 > eval_one 2> eval.log
expect 0 mpirun --oversubscribe -n 3 "$GDN" eval mean --json --set train.eval_batches=0 > eval_three 2> eval.log
[ "$(of sequences eval_one)" -eq 99 ] && [ "$(of tokens eval_one)" -gt 300 ] && [ "$(of tokens eval_one)" -le "$(of counted_tokens show)" ] ||
    fail "an evaluation: $(cat eval_one show)"
[ "$(of tokens eval_one)" = "$(of tokens eval_three)" ] || fail "of three ranks: $(cat eval_three)"
LC_ALL=C awk -v a="$(of loss eval_one)" -v b="$(of loss eval_three)" -v tolerance=$losses 'BEGIN { d = a / b - 1; exit !(d * d < tolerance * tolerance) }' ||
    fail "evaluations differ: $(cat eval_one eval_three)"

# Another mask is other data.
"$MASKED_TOKENS" data.h5 2200 0 10
refused "training data" "$GDN" train mean.yaml --run-dir before
"$MASKED_TOKENS" later.h5 900 0 900
rm -rf none
expect 2 "$GDN" train mean.yaml --run-dir none > none.log 2>&1
grep -q "gdn: no target of the validation data 'validation' counts" none.log || fail "unexpected: $(cat none.log)"
