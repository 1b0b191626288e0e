#!/usr/bin/env bash
# A step of large meshes, predicted by `gdn plan` and simulated by SimGrid's SMPI replay of the traces that it writes.
#
#   train/benchmark/simulate.sh GDN [DIRECTORY]      GDN: the built program; the directory (default: a fresh one) is
#                                                    left with configuration, plans, platforms and traces
#
# Needs SimGrid (Debian: apt-get install -y --no-install-recommends libsimgrid-dev). The model: 32 layers of width 4096
# with connections of 512 and 256, 4 distances, contexts of 2048, in float32. The machine: nodes of 8 ranks that compute
# 400 TFLOP/s each, with a link of 450 GB/s each way to a switch inside the node, which has 400 GB/s, 50 for each rank,
# each way to a switch of all nodes; 5 us a message. Ranks fill nodes in order: tensor first, then data, then pipeline.
set -euo pipefail
gdn=$(realpath "${1:?usage: simulate.sh GDN [DIRECTORY]}")
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
directory=${2:-$(mktemp -d)}
mkdir -p "$directory"
cd "$directory"

machine=$source/configs/machines/h100-ib.yaml
number() { sed -n "s/^$1: *\([^ ]*\).*/\1/p" "$machine"; }
flops=$(number flops) inside=$(number bandwidth_inside) outside=$(number bandwidth_outside) latency=$(number latency) node=$(number node)

cat > large.yaml <<'YAML'
model:
  vocab_size: 32000
  hidden_size: 4096
  num_layers: 32
  num_heads: 32
  num_kv_heads: 8
  intermediate_size: 11008
  delta: {distances: [1, 2, 3, 4], hidden: 512, gate_hidden: 256}
train: {batch_size: 512, micro_batch_size: 1, sequence_length: 2048}
mesh: {bucket: 67108864}
YAML

platform() { # RANKS
    awk -v ranks="$1" -v node=$node -v flops=$flops -v inside=$inside -v outside=$outside -v latency=$latency 'BEGIN {
        print "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">"
        print "<platform version=\"4.1\">\n<zone id=\"world\" routing=\"Full\">"
        nodes = int((ranks + node - 1) / node)
        for (n = 0; n < nodes; n++) # half of the latency at either end
            printf "<cluster id=\"node-%d\" prefix=\"rank-\" suffix=\"\" radical=\"%d-%d\" speed=\"%sf\" bw=\"%sBps\" lat=\"%.9gs\" router_id=\"switch-%d\"/>\n",
                n, n * node, (n + 1) * node < ranks ? (n + 1) * node - 1 : ranks - 1, flops, inside, latency / 2, n
        for (n = 0; n < nodes; n++)
            printf "<link id=\"up-%d\" bandwidth=\"%.9gBps\" latency=\"0s\" sharing_policy=\"SPLITDUPLEX\"/>\n", n, node * outside
        for (a = 0; a < nodes; a++) for (b = a + 1; b < nodes; b++) {
            printf "<zoneRoute src=\"node-%d\" dst=\"node-%d\" gw_src=\"switch-%d\" gw_dst=\"switch-%d\">", a, b, a, b
            printf "<link_ctn id=\"up-%d\" direction=\"UP\"/><link_ctn id=\"up-%d\" direction=\"DOWN\"/></zoneRoute>\n", a, b
        }
        print "</zone>\n</platform>"
    }'
}

plan() { # DATA TENSOR PIPELINE INTERLEAVE BATCH [OPTION …]
    "$gdn" plan large.yaml --ranks $(($1 * $2 * $3)) --set mesh.data="$1" --set mesh.tensor="$2" --set mesh.pipeline="$3" \
        --set mesh.interleave="$4" --set train.batch_size="$5" --machine "$machine" "${@:6}"
}

replay() { # NAME RANKS
    platform "$2" > "$1.xml"
    seq -f rank-%.0f 0 $(($2 - 1)) > "$1.hosts"
    # SimGrid's corrections for real TCP are turned off: the network is what the platform says.
    smpirun -np "$2" -platform "$1.xml" -hostfile "$1.hosts" -replay "$1/traces.txt" \
        --cfg=network/TCP-gamma:0 --cfg=network/crosstraffic:0 --cfg=smpi/bw-factor:0:1 --cfg=smpi/lat-factor:0:1 \
        --cfg=smpi/host-speed:1f > "$1.log" 2>&1 || { tail -5 "$1.log" >&2; exit 1; }
}

row() { # NAME BATCH [LOG]
    awk -v name="$1" -v batch="$2" '
        /^Predicted step/ { seconds = $3 * ($4 ~ /^ms/ ? 1e-3 : 1); match($0, /Efficiency [0-9.]+%/)
                            efficiency = substr($0, RSTART + 11, RLENGTH - 11) }
        /Simulation time/ { simulated = $NF }
        END { printf "| %s | %d | %.3f s | %s |", name, batch, seconds, efficiency
              if (simulated) printf " %.3f s | %+.1f%% |\n", simulated, 100 * (seconds / simulated - 1)
              else print " | |" }' "$1.txt" "${@:3}"
}

both() {
    local name=$1.$2.$3.$4
    plan "$@" --trace "$name" > "$name.txt"
    replay "$name" $(($1 * $2 * $3))
    row "$name" "$5" "$name.log"
}

# The same with options, which a word stands for: WORD DATA TENSOR PIPELINE BATCH OPTION …
with() {
    local name=$2.$3.$4.$1
    plan "$2" "$3" "$4" 1 "$5" "${@:6}" --trace "$name" > "$name.txt"
    replay "$name" $(($2 * $3 * $4))
    row "$name" "$5" "$name.log"
}

predicted() {
    plan "$@" > "$1.$2.$3.$4.txt"
    row "$1.$2.$3.$4" "$5"
}

echo "| mesh (data.tensor.pipeline.interleave) | sequences | plan | efficiency | SimGrid | plan : SimGrid |"
echo "| --- | ---: | ---: | ---: | ---: | ---: |"
both 4 2 2 1 64
both 4 2 2 4 64
both 2 8 2 1 64
both 4 2 4 1 64
both 8 8 4 1 128
wire=(--set mesh.wire=bf16) pieces=(--set mesh.tensor_pieces=4) v=(--set mesh.schedule=zero_bubble_v)
memory=(--set mesh.schedule_memory=70) connection=(--set mesh.delta=connection)
all=("${wire[@]}" "${v[@]}" "${memory[@]}")
with zero-bubble 4 2 2 64 --set mesh.schedule=zero_bubble
with zero-bubble 4 2 4 64 --set mesh.schedule=zero_bubble
with wire 4 2 2 64 "${wire[@]}"
with wire-pieces 4 2 2 64 "${wire[@]}" "${pieces[@]}"
with wire-v 4 2 2 64 "${wire[@]}" "${v[@]}"
with wire-v-pieces 4 2 2 64 "${wire[@]}" "${v[@]}" "${pieces[@]}"
with wire-v-pieces-memory-connection 4 2 2 64 "${wire[@]}" "${v[@]}" "${pieces[@]}" "${memory[@]}" "${connection[@]}"
with wire-v-pieces-memory 4 2 4 64 "${wire[@]}" "${v[@]}" "${pieces[@]}" "${memory[@]}"
with groups 4 1 4 64 "${all[@]}" --set mesh.sum_group=2
with flat 32 1 4 512 "${all[@]}"
with groups 32 1 4 512 "${all[@]}" --set mesh.sum_group=8
with groups 16 2 4 512 "${all[@]}" "${pieces[@]}" "${connection[@]}" --set mesh.sum_group=4
both 16 2 4 1 512
both 16 2 4 4 512
both 4 1 4 4 64
both 8 2 4 4 256
both 16 1 4 2 256
both 8 1 8 1 128
both 8 1 8 2 128
both 4 1 16 1 64
predicted 128 2 4 1 4096 # 1,024 ranks from here on
predicted 128 2 4 4 4096
predicted 32 2 16 1 4096
predicted 32 2 16 2 4096
predicted 64 4 4 1 4096
for group in 1 4; do # at once, and in groups
    predicted 128 2 4 1 4096 "${all[@]}" "${pieces[@]}" "${connection[@]}" --set mesh.sum_group=$group
    predicted 256 2 2 1 4096 "${wire[@]}" "${v[@]}" "${pieces[@]}" "${connection[@]}" --set mesh.sum_group=$group
done
for group in 1 8; do
    for mesh in "128 1 8" "512 1 2" "256 1 4"; do
        # shellcheck disable=SC2086
        predicted $mesh 1 4096 "${wire[@]}" "${v[@]}" --set mesh.sum_group=$group
    done
    predicted 256 1 4 1 4096 "${all[@]}" --set mesh.sum_group=$group
done
both 32 8 4 1 512 # minutes, as the next
with groups 256 1 4 4096 "${all[@]}" --set mesh.sum_group=8
