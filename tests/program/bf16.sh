#!/usr/bin/env bash
# bf16 on the cpu, by the processor's units for it or in software: losses near those of fp32 and not those; a run that was stopped, the
# same mesh again and recomputation to the last bit; other meshes nearly; evaluation and generation of what was trained so.
. "$SOURCE/tests/program/small.sh"
sed -i 's/hidden_size: 32/hidden_size: 128/; s/intermediate_size: 48/intermediate_size: 192/; s/\bsteps: 40/steps: 20/; s/lr: 0.003/lr: 0.0005/
    s/sequence_length: 16/sequence_length: 64/; s/batch_size: 12/batch_size: 6/' small.yaml # attention is in bf16, too
bf16() { train "$1" "$2" --set train.precision=bf16 "${@:3}"; }

expect 0 train 1 fp32
expect 0 bf16 1 bf16
grep -q "^backend .*; bf16$" bf16.log || fail "the start does not name the precision: $(cat bf16.log)"
# A product rounds operands by up to 2^-9, and a loss, a mean over tokens, is off by much less: of three instruction sets 5e-5 was seen
# (at twice the rate of learning, with which runs part sooner, 2e-4). What is the same as fp32 was not computed in fewer bits.
close_to 0.0002 loss step fp32 bf16
close_to 0.0002 loss eval fp32 bf16
! cmp -s first second || fail "bf16 computes as fp32 does"

# Stopped where an evaluation, a new connection and steps of the schedule lie before and behind.
for stop in 2 13; do expect 3 bf16 1 broken --set train.stop_at=$stop 2> /dev/null; done
expect 0 bf16 1 broken
equal bf16 broken
for policy in selective full; do
    expect 0 bf16 1 $policy --set train.recompute=$policy --set train.recompute_delta=$policy
    equal bf16 $policy
done

# Sums in another order differ by about 2^-24 and so round an operand in 2^16 to its other neighbour, 2^-8 away. Of a first loss, a mean over
# 384 tokens, that is 1e-6 (between instruction sets, of 2e-7 between meshes), of its gradients' norm 2e-5; a wrong scale or a lost
# sample is 1e-3. Updates of AdamW are as large for gradients that are nothing but rounding, so runs then part like those of bf16 and fp32 do.
first_step() { mkdir -p "first.$1" && grep '"event":"step","step":0,' "$1/metrics.jsonl" > "first.$1/metrics.jsonl"; }
first_step bf16
for mesh in data tensor pipeline; do
    expect 0 bf16 2 $mesh --set mesh.$mesh=2
    first_step $mesh
    close_to 0.00001 loss step first.bf16 first.$mesh
    close_to 0.0002 grad_norm step first.bf16 first.$mesh
    close_to 0.0002 loss step bf16 $mesh
    rm -rf again # the same mesh, stopped in between
    expect 3 bf16 2 again --set mesh.$mesh=2 --set train.stop_at=7 2> /dev/null
    expect 0 bf16 2 again --set mesh.$mesh=2
    equal $mesh again
done

# Rules between layers, on four ranks, again likewise.
sed "s/^  num_heads.*/&\n  rules: [{kind: dense, form: dynamic, channels: [query, value]}, {kind: value, form: projected}]/" small.yaml > rules.yaml
ruled() { expect "$1" mpirun --oversubscribe -n 4 "$GDN" train rules.yaml --run-dir "$2" --set train.precision=bf16 --set mesh.data=2 --set mesh.pipeline=2 "${@:3}" > "$2.log" 2>&1; }
ruled 0 ruled
ruled 3 ruled_again --set train.stop_at=7
ruled 0 ruled_again
equal ruled ruled_again

# Activations kept in bf16, with products in fp32: the first loss is the same to the bit, gradients are rounded; nothing that is computed
# again, no stop and no second try changes a bit, other meshes hardly. They take the memory that was planned, about half.
kept() { train "$1" "$2" --set train.activations=bf16 "${@:3}"; }
expect 0 kept 1 kept
first_step fp32 && first_step kept
close_to 0 loss step first.fp32 first.kept
close_to 0.0002 loss step fp32 kept
[ "$(lines step fp32 | tail -n 1)" != "$(lines step kept | tail -n 1)" ] || fail "activations in bf16 are those in fp32"
expect 3 kept 1 stopped --set train.stop_at=7 2> /dev/null
expect 0 kept 1 stopped
equal kept stopped
for policy in selective full; do
    expect 0 kept 1 kept_$policy --set train.recompute=$policy --set train.recompute_every=2 --set train.recompute_delta=$policy
    equal kept kept_$policy
done
first_step kept
for mesh in "mesh.data=2" "mesh.tensor=2 mesh.sequence_parallel=true" "mesh.pipeline=2"; do
    rm -rf kept_mesh
    expect 0 kept 2 kept_mesh $(printf -- "--set %s " $mesh)
    first_step kept_mesh
    close_to $losses loss step first.kept first.kept_mesh
    close_to 0.001 grad_norm step first.kept first.kept_mesh
    close_to 0.0002 loss step kept kept_mesh
done
bytes_of() { "$GDN" plan "$1.yaml" "${@:3}" --json | sed "s/.*\"$2\":\([0-9]*\).*/\1/"; }
bytes() { bytes_of small "$@"; }
whole=$(bytes activations --set 'model.delta.distances=[]') half=$(bytes activations --set 'model.delta.distances=[]' --set train.activations=bf16)
[ $((100 * half)) -lt $((57 * whole)) ] || fail "activations are planned to take $half bytes in bf16, $whole in fp32"

# The residual stream stored in bf16, with activations in bf16 and without: the same bits with whatever is computed again, after a stop and with differences that are
# stored; other meshes hardly differ, an evaluation of the checkpoint and generation not at all. At most 52% of the activations' memory. A stored value is off by up to
# 2^-9, a first loss, near log V, by 1e-4 of itself (2e-5 was seen); an element that a mesh rounds to its other neighbour changes that by 2e-7.
stored() { train "$1" "$2" --set train.residual=bf16 "${@:3}"; }
expect 0 stored 1 stored
first_step stored
close_to 0.0001 loss step first.fp32 first.stored
! cmp -s first second || fail "a stream in bf16 is that in fp32"
expect 3 stored 1 stopped_stored --set train.stop_at=7 2> /dev/null
expect 0 stored 1 stopped_stored --set delta_store.interval=6 --set delta_store.ratio=0.5
equal stored stopped_stored
ls stopped_stored/deltas/* > /dev/null || fail "no differences were stored"
expect 0 stored 1 both --set train.activations=bf16
for policy in selective full; do
    expect 0 stored 1 both_$policy --set train.activations=bf16 --set train.recompute=$policy --set train.recompute_every=2 --set train.recompute_delta=$policy
    equal both both_$policy
done
for mesh in "mesh.data=2" "mesh.tensor=2 mesh.sequence_parallel=true" "mesh.pipeline=2 mesh.wire=bf16" "mesh.pipeline=2 mesh.schedule=zero_bubble"; do
    rm -rf stored_mesh
    expect 0 stored 2 stored_mesh $(printf -- "--set %s " $mesh) --set train.micro_batch_size=3
    first_step stored_mesh
    close_to 0.00001 loss step first.stored first.stored_mesh
    close_to 0.001 grad_norm step first.stored first.stored_mesh
    close_to 0.0005 loss step stored stored_mesh
done
whole=$(bytes activations --set 'model.delta.distances=[]') half=$(bytes activations --set 'model.delta.distances=[]' --set train.activations=bf16 --set train.residual=bf16)
[ $((100 * half)) -le $((52 * whole)) ] || fail "activations are planned to take $half bytes in bf16, $whole in fp32"
for name in bench-middle bench-deep best-deep best-broad; do # with what connections and rules keep
    name=$SOURCE/configs/$name
    whole=$(bytes_of "$name" activations) half=$(bytes_of "$name" activations --set train.activations=bf16 --set train.residual=bf16)
    [ $((100 * half)) -le $((52 * whole)) ] || fail "$name: activations are planned to take $half bytes in bf16, $whole in fp32"
done
deep() { bytes sources --set model.num_layers=12 "$@"; }
[ "$(bytes sources --set train.residual=bf16)" -le "$(bytes sources)" ] && [ $((10 * $(deep --set train.residual=bf16))) -lt $((8 * $(deep))) ] || fail "sources are planned to take as much in bf16"

# Sources as factors and other outputs in bf16: the first loss is that without factors, sources take less memory than with either alone, a
# stop changes no bit, and the run has the memory that was planned.
factors() { stored "$1" "$2" --set model.num_layers=12 --set train.steps=8 "${@:3}"; }
expect 0 factors 1 without
expect 0 factors 1 factors --set train.compress_sources=0.1
first_step without && first_step factors
close_to 0 loss step first.without first.factors
! cmp -s first second || fail "factors change no gradient"
expect 3 factors 1 stopped_factors --set train.compress_sources=0.1 --set train.stop_at=3 2> /dev/null
expect 0 factors 1 stopped_factors --set train.compress_sources=0.1
equal factors stopped_factors
memory_as_planned factors
least=$(deep --set train.residual=bf16 --set train.compress_sources=0.1)
[ "$least" -lt "$(deep --set train.residual=bf16)" ] && [ "$least" -lt "$(deep --set train.compress_sources=0.1)" ] || fail "sources are planned to take $least bytes as factors beside bf16"

# What was trained in bf16 is evaluated and continued in bf16; in fp32 where one asks for that.
loss() { expect 0 "$GDN" eval "$@" --json 2> words | sed 's/.*"loss":\([^,}]*\).*/\1/'; }
last=$(lines eval bf16 | tail -n 1 | sed 's/.*"loss":\([^,}]*\).*/\1/')
close() { LC_ALL=C awk "BEGIN { d = $1 / $2 - 1; exit !(d <= $3 && -d <= $3) }"; }
close "$(loss bf16)" "$last" 1e-12 || fail "an evaluation in bf16 is $(loss bf16), that of training $last"
other=$(loss bf16 --set train.precision=fp32)
close "$other" "$last" 2e-4 && ! close "$other" "$last" 1e-9 || fail "in fp32 an evaluation is $other, in bf16 $last"
last=$(lines eval stored | tail -n 1 | sed 's/.*"loss":\([^,}]*\).*/\1/')
close "$(loss stored)" "$last" 1e-12 || fail "an evaluation of a stream in bf16 is $(loss stored), that of training $last"
! close "$(loss stored --set train.residual=fp32)" "$last" 1e-9 || fail "an evaluation does not store the stream in bf16"
expect 0 "$GDN" generate stored --prompt a --length 8 > text 2> words
[ "$(wc -c < text)" -ge 2 ] || fail "nothing was generated: $(cat text)"
expect 0 "$GDN" generate bf16 --prompt a --length 8 > text 2> words
[ "$(wc -c < text)" -ge 2 ] || fail "nothing was generated: $(cat text)"

# In software, which is said once; the cpu has nothing narrower.
if GDN_ISA=v2 "$GDN" bench small.yaml --steps-only --seconds 0 > /dev/null 2>&1; then
    expect 0 env GDN_ISA=v2 "$GDN" train small.yaml --set train.precision=bf16 --run-dir software > software.log
    [ "$(grep -c "^note .*train.precision: bf16 is computed in software" software.log)" -eq 1 ] || fail "no note: $(cat software.log)"
    expect 0 env GDN_ISA=v2 "$GDN" eval software > text 2> words
    grep -q "computed in software" words || fail "eval: $(cat words)"
    expect 0 env GDN_ISA=v2 "$GDN" generate software --prompt a --length 8 > text 2> words # reads half as much there, too
    ! grep -q software words || fail "generate: $(cat words)"
    close_to 0.0002 loss step bf16 software
    first_step software
    close_to 0.00001 loss step first.bf16 first.software
fi
for precision in fp16 fp8; do
    refused "train.precision: device cpu computes in fp32 and bf16 alone" "$GDN" train small.yaml --set train.precision=$precision --run-dir r
    refused "the cpu computes in fp32 or bf16" "$GDN" train small.yaml --set device=cpu --set train.precision=$precision --run-dir r
done
