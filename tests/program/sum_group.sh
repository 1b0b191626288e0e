#!/usr/bin/env bash
# Copies that sum gradients in groups (mesh.sum_group), from outside: the model is that of one rank, memory is the plan's, a run repeats and
# goes on, with the same groups to the bit, and with others. One group of all sums as no group does. The plan tells what it saves.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps
sed '/^train:/s/{steps/{optimizer: muon, steps/' adaptive.yaml > matrices.yaml

on 1.1.1 mean one_mean
on 1.1.1 matrices one_matrices
against_one() { # MESH MODEL RUN [OPTION …]
    on "$1" "$2" "$3" "${@:4}"
    close "one_$2" "$3"
    memory_as_planned "$3"
}
against_one 4.1.1 mean grouped --set mesh.sum_group=2
against_one 4.1.1 matrices grouped_matrices --set mesh.sum_group=2
against_one 4.1.2 mean stages --set mesh.sum_group=2 --set mesh.overlap=false

on 4.1.1 mean alone --set mesh.sum_group=1
on 4.1.1 mean all --set mesh.sum_group=4 --set mesh.data=0
equal alone all
grep -q "^note  *mesh.sum_group: 4 of no effect" all.log || fail "no note: $(cat all.log)"

# Stopped and gone on with, in the same groups; then in others, and none.
part() { mpirun --oversubscribe -n 4 "$GDN" train mean.yaml --run-dir "$1" --set mesh.sum_group="$2" --set train.stop_at="$3" > parts.log 2>&1; }
expect 3 part parts 2 5
expect 0 part parts 2 0
equal grouped parts
expect 3 part others 2 5
expect 3 part others 1 8
expect 0 part others 4 0
close one_mean others
expect 0 mpirun --oversubscribe -n 3 "$GDN" eval grouped > eval.log 2>&1 # on however many ranks

# Of four copies on nodes of two, two of three parts of what is handed over leave the node where they sum at once, one in groups.
printf 'flops: 1e12\nbandwidth_inside: 1e12\nbandwidth_outside: 1e6\nbandwidth_memory: 1e15\nlatency: 0\nnode: 2\n' > nodes.yaml
step_seconds() {
    "$GDN" plan mean.yaml --json --set mesh.data=4 --machine nodes.yaml --set mesh.overlap=false "$@" | sed 's/.*"step_seconds":\([^,}]*\).*/\1/'
}
LC_ALL=C awk -v flat="$(step_seconds)" -v groups="$(step_seconds --set mesh.sum_group=2)" 'BEGIN { exit !(groups > 0 && groups > 0.45 * flat && groups < 0.55 * flat) }' ||
    fail "planned seconds: $(step_seconds), in groups $(step_seconds --set mesh.sum_group=2)"

refused_run "mesh.sum_group: 3 does not divide the 4 ranks" 4 mean.yaml --set mesh.sum_group=3
refused_run "mesh.sum_group" 2 mean.yaml --set mesh.sum_group=0
