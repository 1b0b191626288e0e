#!/usr/bin/env bash
# Sums over tensor ranks that travel beside products (mesh.tensor_pieces), from outside: the model is that of one rank, bytes and memory
# are the plan's, a run repeats and goes on with the same bits. tensor_pieces.sh [one]: one mesh alone, which in double sees what
# floats round away: the little that a rule leaves of a gradient where its product adds to it.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps
# Biases of o_proj enter once; what enters values leaves its gradient where the product of dn adds to it.
sed '/^model:/a\  attention_bias: all\n  rules: [{kind: value, form: residual}]' mean.yaml > biased.yaml

on 1.1.1 biased one_biased
against_one() { # MESH MODEL [OPTION …]
    rm -rf there
    on "$1" "$2" there "${@:3}"
    close "one_$2" there
    memory_as_planned there
}
against_one 1.2.1 biased --set mesh.tensor_pieces=2
[ "${1:-}" != one ] || exit 0
on 1.1.1 mean one_mean
against_one 1.4.1 mean --set mesh.tensor_pieces=5 # 18 rows: four, and two
against_one 2.2.2 mean --set mesh.tensor_pieces=64 --set train.recompute=full # more than rows

# As bytes of one sum of all; and by the plan beside products, in less time than without.
value() { sed "s/.*\"$1\":\([^,}]*\).*/\1/"; } # KEY
mesh=(--set mesh.data=1 --set mesh.tensor=2 --set mesh.pipeline=2)
on 1.2.2 mean pieces --set mesh.tensor_pieces=3 --set mesh.wire=bf16
on 1.2.2 mean whole --set mesh.wire=bf16
close_to 4e-4 loss step one_mean pieces # as in wire.sh
sent() { grep '"event":"step"' "$1/metrics.jsonl" | tail -1 | sed 's/.*"communication_bytes":{//' | value tensor; }
planned=$("$GDN" plan mean.yaml --json "${mesh[@]}" --set mesh.wire=bf16 --set mesh.tensor_pieces=3 | sed 's/.*"ranks":\[//; s/,{"rank":1,.*//; s/.*"communication_bytes":{//' | value tensor)
[ "$(sent pieces)" = "$(sent whole)" ] && [ "$(sent pieces)" = "$planned" ] ||
    fail "bytes over the tensor axis: $(sent pieces) in pieces, $(sent whole) whole, $planned planned"
step_seconds() { "$GDN" plan mean.yaml --json "${mesh[@]}" --flops=1e9 --bandwidth-tensor=1e7 "$@" | value step_seconds; }
LC_ALL=C awk -v whole="$(step_seconds)" -v pieces="$(step_seconds --set mesh.tensor_pieces=3)" 'BEGIN { exit !(pieces > 0 && pieces < whole) }' ||
    fail "the plan hides nothing: $(step_seconds), $(step_seconds --set mesh.tensor_pieces=3)"

# Stopped and gone on with.
expect 3 mpirun --oversubscribe -n 4 "$GDN" train mean.yaml --run-dir parts "${mesh[@]}" --set mesh.wire=bf16 --set mesh.tensor_pieces=3 --set train.stop_at=5 > parts.log 2>&1
expect 0 mpirun --oversubscribe -n 4 "$GDN" train mean.yaml --run-dir parts "${mesh[@]}" --set mesh.wire=bf16 --set mesh.tensor_pieces=3 > parts.log 2>&1
equal pieces parts

on 1.1.2 mean alone --set mesh.tensor_pieces=2
grep -q "^note  *mesh.tensor_pieces: 2 of no effect" alone.log || fail "no note: $(cat alone.log)"
refused_run "sequence_parallel false" 2 mean.yaml --set mesh.tensor=2 --set mesh.tensor_pieces=2 --set mesh.sequence_parallel=true
refused_run "mesh.tensor_pieces" 2 mean.yaml --set mesh.tensor=2 --set mesh.tensor_pieces=0
