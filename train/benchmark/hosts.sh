#!/usr/bin/env bash
# A step on hosts that are joined by a network, measured beside what gdn plan predicts:
#
#   train/benchmark/hosts.sh [RATE …]      (default: 10gbit 500mbit; what `tc` calls rates)
#
# The hosts are network namespaces of this machine, each with a name and a core of its own, joined by a bridge; each sends at RATE at most (tc's tbf), and Open MPI goes
# between them over TCP, as between machines. Needs root, iproute2 and a core for each of two hosts, idle otherwise. The plan is told what was measured here before: a
# rank's arithmetic a second, of a step of one rank, and the network's bytes a second and latency as `gdn check` finds them between the hosts.
# Prints a Markdown table. GDN names the program (default build/gdn), STEPS steps of each run (default 8, of which the median counts from the third on).
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gdn=$(realpath "${GDN:-$source/build/gdn}") steps=${STEPS:-8}
[ "$(id -u)" -eq 0 ] && command -v ip tc > /dev/null || { echo "hosts.sh: needs root and iproute2" >&2; exit 77; }
[ "$(nproc)" -ge 2 ] || { echo "hosts.sh: needs a core for each of two hosts" >&2; exit 77; }
export LC_ALL=C OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
name=gdn$$ net=10.213.77
scratch=$(mktemp -d)
down() {
    for host in 1 2; do
        ip link del "$name-v$host" 2> /dev/null || true
        ip netns del "$name-$host" 2> /dev/null || true
    done
    ip link del "$name" 2> /dev/null || true
    rm -rf "$scratch"
}
trap down EXIT
trap 'exit 130' INT TERM
cd "$scratch"

ip link add "$name" type bridge
ip addr add $net.254/24 dev "$name"
ip link set "$name" up
for host in 1 2; do
    ip netns add "$name-$host"
    ip link add "$name-v$host" type veth peer name net0 netns "$name-$host"
    ip link set "$name-v$host" master "$name" up
    ip -n "$name-$host" addr add $net.$host/24 dev net0
    ip -n "$name-$host" link set net0 up
    ip -n "$name-$host" link set lo up
done
# What mpirun starts its daemons with, in place of ssh: on the host of an address, under its name, on its core.
cat > agent << AGENT
#!/bin/bash
host=\${1##*.}
shift
exec ip netns exec $name-\$host unshare --uts taskset -c \$((host - 1)) bash -c 'hostname '$net.\$host'; eval "\$*"' agent "\$*"
AGENT
chmod +x agent
rate() { for host in 1 2; do tc -n "$name-$host" qdisc replace dev net0 root tbf rate "$1" burst 256kb latency 100ms; done; }
# Without room for what is under way in both directions Open MPI 4.1 has half of the network's speed: its sockets' own is 128 KiB.
on_hosts() { # RANKS COMMAND …
    local hosts=$net.1:1
    [ "$1" -eq 1 ] || hosts=$hosts,$net.2:1
    mpirun --mca plm_rsh_agent "$PWD/agent" --mca oob_tcp_if_include $net.0/24 --mca btl self,tcp --mca btl_tcp_if_include $net.0/24 \
        --mca btl_tcp_sndbuf 4194304 --mca btl_tcp_rcvbuf 4194304 --bind-to none -x OMP_NUM_THREADS -np "$1" --host $hosts "${@:2}"
}

seq 300000 > text.txt
cat > model.yaml << YAML
model: {vocab_size: 257, hidden_size: 256, num_layers: 8, num_heads: 8, intermediate_size: 704, delta: {distances: [1, 2, 3, 4], hidden: 64}}
train: {steps: $steps, batch_size: 8, micro_batch_size: 1, sequence_length: 256}
data: {train: $PWD/text.txt}
checkpoint: {interval: 0}
YAML

measured() { # RANKS OPTION …: median seconds of a step, from the third on
    rm -rf run
    on_hosts "$1" "$gdn" train "$PWD/model.yaml" --run-dir "$PWD/run" "${@:2}" > log 2>&1 || { cat log >&2; exit 1; }
    sed -nE 's/.*"event":"step","step":([0-9]+),.*"step_seconds":([0-9.e-]+).*/\1 \2/p' run/metrics.jsonl | awk '$1 > 1 { print $2 }' | sort -g |
        awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'
}
planned() { # KEY OPTION …: of the plan's JSON
    "$gdn" plan model.yaml "${@:2}" --json | grep -oE "\"$1\":[0-9.e+-]+" | head -n 1 | cut -d: -f2
}
bytes() { sed -nE "s/^data axis *([0-9.]+) ([kMG])B\/s a rank.*/\1 \2/p" | awk '{ print $1 * ($2 == "G" ? 1e9 : $2 == "M" ? 1e6 : 1e3) }'; }

alone=$(measured 1)
update=$(awk -v n="$(planned parameters --flops 1e11)" 'BEGIN { print 28 * n / 20e9 }') # as the plan has it
flops=$(awk -v f="$(planned flops --flops 1e11)" -v t="$alone" -v u="$update" 'BEGIN { print f / (t - u) }')
echo "One rank: $alone s a step, $flops arithmetic a second"
echo
echo "| network | mesh | measured | plan | plan : measured |"
echo "| --- | --- | ---: | ---: | ---: |"
case_of() { # NAME OPTION …
    local real plan
    real=$(measured 2 "${@:2}")
    plan=$(planned step_seconds --ranks 2 "${@:2}" --flops "$flops" --bandwidth-data "$speed" --bandwidth-tensor "$speed" --bandwidth-pipeline "$speed" --bandwidth-context "$speed" --latency "$latency")
    awk -v name="$1" -v network="$network" -v real="$real" -v plan="$plan" 'BEGIN { printf "| %s | %s | %.3f s | %.3f s | %+.1f%% |\n", network, name, real, plan, 100 * (plan / real - 1) }'
}
[ $# -gt 0 ] || set -- 10gbit 500mbit
for network in "$@"; do
    rate "$network"
    on_hosts 2 "$gdn" check "$PWD/model.yaml" --run-dir "$PWD/run" > check
    speed=$(bytes < check)
    latency=$(sed -nE 's/^data axis.*; ([0-9.]+) us a sum.*/\1e-6/p' check)
    echo "$network: $speed bytes a second, $latency s" >&2
    case_of "data 2" --set mesh.data=2
    case_of "data 2, mesh.overlap: false" --set mesh.data=2 --set mesh.overlap=false
    case_of "pipeline 2" --set mesh.pipeline=2
    case_of "pipeline 2, zero_bubble" --set mesh.pipeline=2 --set mesh.schedule=zero_bubble
    case_of "pipeline 2, zero_bubble_v" --set mesh.pipeline=2 --set mesh.schedule=zero_bubble_v
    case_of "tensor 2" --set mesh.tensor=2
    case_of "tensor 2, mesh.tensor_pieces: 4" --set mesh.tensor=2 --set mesh.tensor_pieces=4
    case_of "context 2, gather" --set mesh.context=2 --set mesh.context_exchange=gather
    case_of "context 2, ring" --set mesh.context=2 --set mesh.context_exchange=ring
done
