#!/usr/bin/env bash
# Two hosts, joined by a network (train/benchmark/two_hosts.sh): what `gdn check` says of them, and runs that are to the last bit those of as many ranks on one
# host, whatever goes between: gradient sums, sums of activations, messages between stages longer than MPI sends unasked, attention's keys and values.
. "$SOURCE/tests/program/small.sh"
. "$SOURCE/train/benchmark/two_hosts.sh"
trap 'hosts_down; kill $(jobs -p) 2> /dev/null || true' EXIT
if ! hosts_up 2> why || ! hosts_rate 1gbit 2>> why; then
    echo "hosts: no two hosts can be made here: $(tail -n 1 why)"
    exit 77
fi
sed -i 's/steps: 40/steps: 4/; s/eval_interval: 10/eval_interval: 2/' small.yaml
on_hosts 2 "$GDN" check small.yaml --run-dir run > check.log 2>&1 || fail "gdn check: $(cat check.log)"
grep -q "^ranks .*2 on 2 nodes" check.log || fail "two hosts are expected: $(cat check.log)"

for mesh in data pipeline tensor context; do
    options=(--set model.hidden_size=64 --set train.batch_size=32 --set train.sequence_length=64 --set mesh.data=1 --set mesh.$mesh=2)
    [ $mesh != pipeline ] || options+=(--set train.micro_batch_size=8) # 4 messages of 128 KiB each way
    train 2 here "${options[@]}"
    on_hosts 2 "$GDN" train small.yaml --run-dir there "${options[@]}" > there.log 2>&1 || fail "$mesh: $(cat there.log)"
    equal here there
    rm -rf here there
done

# Two ranks a host, that sum among themselves first.
options=(--set mesh.data=4 --set mesh.sum_group=2)
train 4 here "${options[@]}"
on_hosts 4 "$GDN" train small.yaml --run-dir there "${options[@]}" > there.log 2>&1 || fail "two ranks a host: $(cat there.log)"
equal here there
