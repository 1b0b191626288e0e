#!/usr/bin/env bash
# A step on hosts that are joined by a network, measured beside what gdn plan predicts:
#
#   train/benchmark/hosts.sh [RATE …]      (default: 10gbit 500mbit; N gbit or mbit)
#
# The hosts are network namespaces of this machine (two_hosts.sh), and each sends at RATE at most. Needs root, iproute2 and two cores, idle otherwise. The
# plan is told a rank's arithmetic a second, of runs of one rank, one on each host at the same time, as the hosts share this machine's memory; the greater
# rate and the latency that `gdn check` finds between the hosts, RATE less the headers of frames at most; and that TCP moves nothing but messages between
# stages while a rank computes.
# Prints a Markdown table. GDN names the program (default build/gdn), STEPS steps of each run (default 8, of which the median counts from the third on),
# TOKENS those of a micro-batch (default 512), ROWS the rows by a pattern of their names (default all).
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gdn=$(realpath "${GDN:-$source/build/gdn}") steps=${STEPS:-8} tokens=${TOKENS:-512} rows=${ROWS:-.}
export LC_ALL=C OMP_NUM_THREADS=1
export OMPI_MCA_btl_tcp_eager_limit=${OMPI_MCA_btl_tcp_eager_limit:-2097152} # as train/manual/mesh.md advises
. "$source/train/benchmark/two_hosts.sh"
. "$source/train/benchmark/median.sh"
scratch=$(mktemp -d)
trap 'hosts_down; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
cd "$scratch"
hosts_up

seq 600000 > text.txt
cat > model.yaml << YAML
model: {vocab_size: 257, hidden_size: 256, num_layers: 8, num_heads: 8, intermediate_size: 704, delta: {distances: [1, 2, 3, 4], hidden: 64}}
train: {steps: $steps, batch_size: 8, micro_batch_size: 1, sequence_length: $tokens}
data: {train: $PWD/text.txt}
checkpoint: {interval: 0}
YAML

step_of() { # RUN: median seconds of a step, from the third on
    sed -nE 's/.*"event":"step".*"step_seconds":([^,}]*).*/\1/p' "$1/metrics.jsonl" | tail -n +3 | median
}
measured() { # RANKS OPTION …
    rm -rf run
    on_hosts "$1" "$gdn" train "$PWD/model.yaml" --run-dir "$PWD/run" "${@:2}" > log 2>&1 || { cat log >&2; exit 1; }
    step_of run
}
each_alone() { # the mean of both hosts' steps
    local other
    on_host 2 "$gdn" train "$PWD/model.yaml" --run-dir "$PWD/alone2" > log2 2>&1 & other=$!
    on_host 1 "$gdn" train "$PWD/model.yaml" --run-dir "$PWD/alone1" > log1 2>&1 || { cat log1 >&2; exit 1; }
    wait $other || { cat log2 >&2; exit 1; }
    printf '%s\n' "$(step_of alone1)" "$(step_of alone2)" | awk '{ sum += $1 } END { print sum / NR }'
}
planned() { # KEY OPTION …: of the plan's JSON
    "$gdn" plan model.yaml "${@:2}" --json | grep -oE "\"$1\":[0-9.e+-]+" | head -n 1 | cut -d: -f2
}
# What TCP has of an Ethernet: 1448 of 1514 bytes.
bytes() { rate_bytes "$1" "$(awk 'BEGIN { print 1448 / 1514 }')"; }

alone=$(each_alone)
update=$(awk -v n="$(planned parameters --flops 1e11)" 'BEGIN { print 28 * n / 20e9 }') # as the plan has it
flops=$(awk -v f="$(planned flops --flops 1e11)" -v t="$alone" -v u="$update" 'BEGIN { print f / (t - u) }')
echo "One rank, on each host at once: $alone s a step, $flops arithmetic a second"
echo
echo "| network | mesh | measured | plan | plan : measured |"
echo "| --- | --- | ---: | ---: | ---: |"
row() { # NAME MEASURED PLANNED
    awk -v name="$1" -v network="$network" -v real="$2" -v plan="$3" 'BEGIN { printf "| %s | %s | %.3f s | %.3f s | %+.1f%% |\n", network, name, real, plan, 100 * (plan / real - 1) }'
}
machine() { # RANKS_A_HOST: its profile
    awk -v n="$1" -v f="$flops" -v s="$speed" -v l="$latency" 'BEGIN {
        printf "node: %d\nflops: %g\nbandwidth_outside: %g\nbandwidth_inside: 1e11\nbandwidth_memory: %g\nlatency: %g\n", n, f / n, s / n, 20e9 / n, l
        print "asynchronous_progress: false" }'
}
case_of() { # NAME OPTION …
    [[ "$1" =~ $rows ]] || return 0
    local real plan
    real=$(measured 2 "${@:2}")
    machine 1 > machine.yaml
    plan=$(planned step_seconds --ranks 2 "${@:2}" --machine "$PWD/machine.yaml")
    row "$1" "$real" "$plan"
}
# Two ranks a host, which share its core and its way out, and reach each other in no time.
four_of() { # NAME OPTION …
    [[ "$1" =~ $rows ]] || return 0
    local real plan
    real=$(measured 4 --set mesh.data=4 "${@:2}")
    machine 2 > machine.yaml
    plan=$(planned step_seconds --set mesh.data=4 "${@:2}" --machine "$PWD/machine.yaml")
    row "$1" "$real" "$plan"
}
[ $# -gt 0 ] || set -- 10gbit 500mbit
for network in "$@"; do
    hosts_rate "$network"
    on_hosts 2 "$gdn" check "$PWD/model.yaml" --run-dir "$PWD/run" > check
    speed=$(sed -nE 's/^data axis *([0-9.]+) ([MG])B\/s a rank, ([0-9.]+) ([MG])B\/s.*/\1 \2 \3 \4/p' check |
        awk -v most="$(bytes "$network")" '{ a = $1 * ($2 == "G" ? 1e9 : 1e6); b = $3 * ($4 == "G" ? 1e9 : 1e6); s = a > b ? a : b; printf "%.0f\n", s < most ? s : most }')
    latency=$(sed -nE 's/^data axis.*; ([0-9.]+) us a sum.*/\1e-6/p' check)
    echo "$network: $speed bytes a second; $(grep "^data axis" check)" >&2
    case_of "data 2" --set mesh.data=2
    case_of "data 2, mesh.overlap: false" --set mesh.data=2 --set mesh.overlap=false
    four_of "data 4, two on a host"
    four_of "the same, mesh.sum_group: 2" --set mesh.sum_group=2
    case_of "pipeline 2" --set mesh.pipeline=2
    case_of "pipeline 2, zero_bubble" --set mesh.pipeline=2 --set mesh.schedule=zero_bubble
    case_of "pipeline 2, zero_bubble_v" --set mesh.pipeline=2 --set mesh.schedule=zero_bubble_v
    case_of "tensor 2" --set mesh.tensor=2
    case_of "tensor 2, mesh.tensor_pieces: 4" --set mesh.tensor=2 --set mesh.tensor_pieces=4
    case_of "context 2, gather" --set mesh.context=2 --set mesh.context_exchange=gather
    case_of "context 2, ring" --set mesh.context=2 --set mesh.context_exchange=ring
done
