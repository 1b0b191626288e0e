#!/usr/bin/env bash
# Training in fewer bits, on a device that has them (gdn_on_devices): losses stay near those of fp32, fp16 gets over gradients
# that overflow, and a run that was stopped is the run that was not stopped, to the last bit.
. "$SOURCE/tests/program/small.sh"
cp "$SOURCE/tests/program/prose.txt" text.txt # an early README: what is measured here depends on the text
steps=50
[ "$DEVICE" != emulated ] || steps=20 # it takes a second for what a GPU does in a millisecond
sed -i "s/\bsteps: 40/steps: $steps/; s/batch_size: 12/batch_size: 4/; s/lr: 0.003/lr: 0.001/" small.yaml

dump() { # GROUP CHECKPOINT: a line a dataset
    h5dump -A 0 -y -w 0 -m '%.17g' -g "/$1" "$2/checkpoint.h5" | LC_ALL=C awk -f "$SOURCE/tests/program/flatten.awk"
}

# in_precision PRECISION RANKS DIRECTORY [OPTION …]
in_precision() { train "$2" "$3" --set train.precision="$1" "${@:4}"; }

# Relative to fp32, over 50 steps (bounds hold for fewer) of a smooth training: with lr 0.003 the loss falls steeply enough that two runs in fp16
# alone come to differ by 1e-3. A product rounds operands by up to 2^-9 (bf16), 2^-12 (fp16), 2^-4 (fp8, in the trunk alone:
# e4m3; gradients e5m2, 2^-3), and a loss, a mean over tokens, is off by much less: 5e-5, 5e-6 and 6e-4 were seen. The
# bounds are about ten times that. What is the same as fp32 was not computed in fewer bits.
moments() { # RUN: the mean gradients' size, which AdamW's updates, and so losses, do not show
    dump optimizer/exp_avg "$1/checkpoints/step_000000$steps" |
        LC_ALL=C awk '{ for (i = 2; i <= NF; i++) sum += $i < 0 ? -$i : $i } END { print sum }'
}

# Weights are kept a second time, which the run plans as the plan without it: the first rank's bytes.
weights_as_planned() { # RUN [RANKS]
    memory_as_planned "$1"
    "$GDN_BINARY" plan "$1/config.yaml" --ranks "${2:-1}" --flops 1e11 --json | grep -o '"weights":[0-9]*' | head -1 > planned
    grep '"event":"memory"' "$1/metrics.jsonl" | head -1 | grep -o '"reserved_weights":[0-9]*' | sed 's/reserved_//' > reserved
    [ -s planned ] && cmp planned reserved || fail "$1: $(cat planned reserved)"
}

expect 0 in_precision fp32 1 fp32
right=$(moments fp32)
precisions="bf16 fp16"
for limit in bf16:0.0005 fp16:0.00005 fp8:0.005; do
    precision=${limit%:*} status=0
    in_precision $precision 1 $precision 2> refused || status=$?
    if [ $precision = fp8 ] && [ $status -eq 2 ] && grep -q "fp8 needs a GPU of" fp8.log; then
        echo "this card has no fp8" # older than sm_89
        continue
    fi
    [ $status -eq 0 ] || fail "status $status in $precision: $(cat refused)"
    [ $precision = fp8 ] && precisions="$precisions fp8"
    close_to "${limit#*:}" loss step fp32 $precision
    close_to "${limit#*:}" loss eval fp32 $precision
    weights_as_planned $precision
    ! cmp -s first second || fail "$precision computes as fp32 does"
    moments $precision | LC_ALL=C awk -v right="$right" '{ exit !($1 > 0.8 * right && $1 < 1.25 * right) }' ||
        fail "$precision has moments of $(moments $precision), fp32 of $right: the gradients' scale is not theirs"
    [ -z "$(lines loss_scale $precision)" ] || fail "the loss scale changed in $precision: $(lines loss_scale $precision)"
    # Weights that are rounded once for several micro-batches; in recorded passes each time that these are repeated.
    same=(--set train.steps=6 --set train.micro_batch_size=2 --set model.delta.regularizer=none) # a step's options are those of the one before
    expect 0 in_precision $precision 1 executed_$precision "${same[@]}"
    expect 0 in_precision $precision 1 recorded_$precision "${same[@]}" --set train.graphs=true
    equal executed_$precision recorded_$precision
    expect 0 in_precision $precision 2 tensor_$precision --set train.micro_batch_size=2 --set mesh.tensor=2
    close_to "${limit#*:}" loss step fp32 tensor_$precision
    weights_as_planned tensor_$precision 2
    expect 0 "$GDN_BINARY" generate $precision --device "$DEVICE" --prompt a --length 3 > text 2> words
    [ "$(wc -c < text)" -ge 2 ] || fail "nothing was generated in $precision: $(cat text words)"
done

# What was trained in fp16 or fp8 is used on the cpu, in fp32, which is said once: the loss is that of fp32 on the device. Only who
# asks for that precision there is refused, and so is training. The cpu has bf16 itself (bf16.sh).
loss() { # OPTION …: of an evaluation on some device
    "$GDN_BINARY" eval "$@" 2> words | awk '$1 == "loss" { print $2 }'
}
told() { [ "$(wc -l < words)" -eq 1 ] && grep -q "note: .* was trained in train.precision $1; the cpu computes in fp32" words || fail "$1: $(cat words)"; }
for precision in ${precisions#bf16 }; do
    cpu=$(loss $precision --set device=cpu) && told $precision
    there=$(loss $precision --set device="$DEVICE" --set train.precision=fp32)
    LC_ALL=C awk "BEGIN { d = $cpu / $there - 1; exit !(d < $losses && -d < $losses) }" || fail "$precision on the cpu: $cpu, in fp32 $there"
    expect 0 "$GDN_BINARY" generate $precision --device cpu --prompt a --length 3 > text 2> words && told $precision
    [ "$(wc -c < text)" -ge 2 ] || fail "nothing was generated: $(cat text)"
    expect 2 "$GDN_BINARY" eval $precision --set device=cpu --set train.precision=$precision > text 2> words
    grep -q "the cpu computes in fp32 or bf16" words || fail "$precision was asked for: $(cat words)"
    expect 2 "$GDN_BINARY" train $precision/config.yaml --run-dir $precision --set device=cpu 2> words
    grep -q "the cpu computes in fp32 or bf16" words || fail "training in $precision on the cpu: $(cat words)"
done

# Stopped where evaluations, a new connection and a step of the schedule lie before and behind.
same_after_stops() { # PRECISION RANKS STRAIGHT [OPTION …]
    local precision=$1 ranks=$2 straight=$3
    shift 3
    rm -rf broken
    for stop in 2 13; do
        expect 3 in_precision "$precision" "$ranks" broken "$@" --set train.stop_at=$stop 2> /dev/null
    done
    expect 0 in_precision "$precision" "$ranks" broken "$@"
    for event in step eval loss_scale; do
        lines $event "$straight" > straight.lines
        lines $event broken > broken.lines
        cmp straight.lines broken.lines || fail "$precision, $ranks ranks: $event lines differ after stops"
    done
    expect 0 "$GDN" checkpoint diff "$straight" broken > diff
}
for precision in $precisions; do same_after_stops $precision 1 $precision; done

# What is only measured changes no bit of training, before the first step either, when nothing is known of scales.
measured=(--set train.steps=3 --set train.eval_interval=0 --set train.micro_batch_size=2)
for precision in ${precisions#bf16 fp16}; do
    expect 0 in_precision $precision 1 plain "${measured[@]}"
    expect 0 in_precision $precision 1 measured "${measured[@]}" --set train.noise_interval=1
    expect 0 "$GDN" checkpoint diff plain measured > diff
done

# fp8 on two ranks, each of which sees other tokens: scales that either rank made up alone would differ from those that a
# checkpoint, of whatever mesh, has.
if [ "${precisions% fp8}" != "$precisions" ]; then
    few=(--set train.steps=20 --set train.eval_interval=5)
    expect 0 in_precision fp8 2 two "${few[@]}"
    same_after_stops fp8 2 two "${few[@]}"
    # Evaluations change no bit of training.
    expect 0 in_precision fp8 2 unseen "${few[@]}" --set train.eval_interval=0
    lines step two > first && lines step unseen > second
    cmp first second || fail "evaluations have changed training in fp8"
    # Another mesh goes on from there.
    rm -r two/checkpoints/step_00000020
    expect 3 in_precision fp8 2 half "${few[@]}" --set train.stop_at=10 2> /dev/null
    expect 0 in_precision fp8 1 half "${few[@]}"
    close_to 0.01 loss step unseen half
fi

# Of batches of one token, gradients are so large that the first loss scale is too large: it falls until they fit. Steps that
# overflow change nothing but the scale, and are no less done.
overflow=(--set train.batch_size=1 --set train.sequence_length=1 --set train.steps=20 --set train.eval_interval=0)
expect 0 in_precision fp16 1 overflow "${overflow[@]}"
lines loss_scale overflow > scales
grep -q '"step":0,"scale":32768' scales || fail "the first step was to overflow: $(cat scales)"
[ "$(lines step overflow | grep -c '"grad_norm":null')" -eq "$(grep -c . scales)" ] || fail "skipped steps and scales differ"
[ "$(lines step overflow | grep -c .)" -eq 20 ] || fail "not all steps were done"
! lines step overflow | tail -5 | grep -q '"grad_norm":null' || fail "it did not recover: $(cat scales)"
expect 3 in_precision fp16 1 nothing "${overflow[@]}" --set train.stop_at=1 2> /dev/null
expect 3 in_precision fp32 1 start "${overflow[@]}" --set train.stop_at=1 --set train.lr=0 2> /dev/null
start=start/checkpoints/step_00000001 nothing=nothing/checkpoints/step_00000001
dump model $start > first && dump model $nothing > second
cmp first second || fail "a skipped step has changed weights"
dump optimizer $nothing | LC_ALL=C awk '{ for (i = 2; i <= NF; i++) if ($i != 0) exit 1 } END { if (NR < 3) exit 1 }' ||
    fail "a skipped step has changed the optimiser's state"
same_after_stops fp16 1 overflow "${overflow[@]}"
