#!/usr/bin/env bash
# Parameter groups, and weight decay that waits and fades: shown by runs and plans, written to config.yaml and read again, the
# same on every mesh and after a stop. A rule that the tests add (tests/rows/rule_constant.c) has a learning rate of its own.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps

settings=(--set 'train.groups=[{match: "layers.*.delta.*.mix", lr_scale: 5, weight_decay: 0.02, beta1: 0.8}, {match: layers.1.*, lr_scale: 0.5}]'
    --set train.cautious_decay=true --set train.decay_schedule=linear --set train.weight_decay=0.5 --set checkpoint.interval=6
    --set 'model.rules=[{kind: constant, place: before, sources: [embedding, 1]}]')
for optimizer in muon adamw; do
    one=one_$optimizer
    on 1.1.1 learned $one "${settings[@]}" --set train.optimizer=$optimizer
    on 2.2.1 learned several_$optimizer "${settings[@]}" --set train.optimizer=$optimizer
    close $one several_$optimizer
done

# What the settings say shows in the losses.
on 1.1.1 learned none --set train.weight_decay=0.5
! cmp -s <(lines step $one) <(lines step none) || fail "groups and decay change nothing"

# From config.yaml alone, in two parts.
expect 3 "$GDN" train $one/config.yaml --run-dir again --set train.stop_at=7 > again.log 2>&1
expect 0 "$GDN" train $one/config.yaml --run-dir again >> again.log 2>&1
equal $one again

grep '^group' $one.log > run.groups
"$GDN" plan learned.yaml "${settings[@]}" | grep '^group' > plan.groups
cmp run.groups plan.groups || fail "the plan has other groups: $(cat plan.groups), a run: $(cat run.groups)"
grep -qE '^group +layers\.\*\.delta\.\*\.mix: [0-9]+ tensors, [0-9]+ parameters; lr 0\.015, decay 0\.02, betas 0\.8 0\.95$' run.groups ||
    fail "unexpected: $(cat run.groups)"
grep -qE '^group +\(of a kind with settings of its own\): [0-9]+ tensors?, [0-9]+ parameters; lr 0\.012, decay 0, betas' run.groups ||
    fail "a leaf's own rate is not shown: $(cat run.groups)"
"$GDN" plan learned.yaml "${settings[@]}" --json | grep -qF '"groups":[{"match":"layers.*.delta.*.mix","tensors":' || fail "no groups in plan --json"
! "$GDN" plan learned.yaml | grep -q '^group' || fail "groups where there are none"
! "$GDN" plan learned.yaml --json | grep -q '"groups"' || fail "groups in plan --json where there are none"

# A group that names nothing, and one that comes too late.
for command in "train --run-dir refused" plan; do
    expect 2 "$GDN" ${command%% *} learned.yaml $(expr "$command" : '[a-z]*\(.*\)') --set 'train.groups=[{match: layers.*.delta.*.mixx, lr_scale: 2}]' > refused.log 2>&1
    grep -q "train.groups\[0\].*'layers.*.delta.*.mixx'.*layers.[0-9].delta.[0-9].mix'" refused.log || fail "unexpected: $(cat refused.log)"
done
[ ! -e refused ] || fail "a refused run left a directory"
"$GDN" plan learned.yaml --set 'train.groups=[{match: layers.*, lr_scale: 2}, {match: layers.1.*, lr_scale: 3}]' > late
grep -q "note      train.groups\[1\]: 'layers.1.\*' of no effect" late || fail "unexpected: $(cat late)"
