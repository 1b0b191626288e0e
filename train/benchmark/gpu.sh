#!/usr/bin/env bash
# All that there is to find out on a machine with a GPU, by one command and without network:
#
#   train/benchmark/gpu.sh [--build DIR] [--only "build tests sanitizer bench twin ranks"] [--limit SECONDS] [--device emulated]
#
#   build      CMake and compiler, with CUDA (needs what train/setup.sh installs, and nvcc)
#   tests      ctest -L gpu: operations, golden trajectories, meshes and gdn bench on the GPU
#   sanitizer  the tests of operations under compute-sanitizer, where that is installed: memcheck, racecheck, initcheck, synccheck
#   bench      gdn bench at configs/bench-middle.yaml and bench-gpu.yaml in fp32, bf16 and fp8, with and without connections
#   twin       the same model in PyTorch, compiled, in bf16 (train/benchmark/peer.py), where python3 has PyTorch; at configs/bench-gpu.yaml
#   ranks      steps of one rank and of two that share the GPU: through host memory, and by NCCL where different
#              NCCL_HOSTIDs let it
#
# Goes on after a step that failed. Prints Markdown with date, GPU, driver and commit, at the end or when it is stopped; logs
# lie in DIR/gpu (DIR: build-gpu). No command runs longer than SECONDS (540). Status: 0; 1 where something failed; 2 bad usage; 77
# where there is no GPU. --device emulated is for trying this script: it runs all but the sanitizer, at tiny shapes.
set -uo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$source/build-gpu only="build tests sanitizer bench twin ranks" limit=540 device=cuda label=gpu
while [ $# -gt 0 ]; do
    case "$1" in
        --build) build=${2:?--build: a folder is expected} ;;
        --only) only=${2:?--only: names of steps are expected} ;;
        --limit) limit=${2:?--limit: seconds are expected} ;;
        --device) device=${2:?--device: cuda or emulated is expected} ;;
        *) sed -n '4p' "$0" >&2; exit 2 ;;
    esac
    shift 2
done
option=GDN_CUDA
case $device in
    cuda) ;;
    emulated) label=emulated option=GDN_EMULATED ;;
    *) echo "gpu.sh: --device '$device': cuda or emulated is expected" >&2; exit 2 ;;
esac
for step in $only; do
    case $step in
        build | tests | sanitizer | bench | twin | ranks) ;;
        *) echo "gpu.sh: --only '$step': build, tests, sanitizer, bench, twin and ranks are expected" >&2; exit 2 ;;
    esac
done
mkdir -p "$build/gpu" || exit 1
build=$(cd "$build" && pwd) logs=$build/gpu gdn=$build/gdn failed=0
rm -f "$logs"/*.rows
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_hwloc_base_binding_policy=none

wanted() { case " $only " in *" $1 "*) true ;; *) false ;; esac; }
row() { echo "$2" >> "$logs/$1.rows"; } # TABLE ROW

# run NAME COMMAND …: within the limit, into a log. Its status.
run() {
    local name=$1 status=0
    shift
    echo "gpu.sh: $name" >&2
    timeout -k 10 "$limit" "$@" > "$logs/$name.log" 2>&1 || status=$?
    return $status
}

# finish NAME STATUS WORDS: a row of the table of steps; a status that is not 0 is a failure.
finish() {
    local result=passed
    [ "$2" -eq 0 ] || { result="**failed, status $2** ($logs/$1.log)" failed=1; }
    [ "$2" -ne 124 ] || result="**stopped after $limit s** ($logs/$1.log)"
    row steps "| $1 | $result | $3 |"
}

text() { # KEY FILE: a string in the last line of JSON that has it
    sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$2" | tail -1
}

words() { # LOG: of the failure
    grep '^gdn: ' "$1" | grep -v '^gdn: note: ' | tail -1 | grep . || tail -1 "$1"
}

table() { # NAME TITLE HEAD RULE
    [ -s "$logs/$1.rows" ] || return 0
    printf '\n### %s\n\n| %s |\n| %s |\n' "$2" "$3" "$4"
    cat "$logs/$1.rows"
}

print() {
    local commit=unknown
    if git -C "$source" rev-parse HEAD > /dev/null 2>&1; then
        commit=$(git -C "$source" rev-parse --short=12 HEAD)
        [ -z "$(git -C "$source" status --porcelain --untracked-files=no)" ] || commit="$commit, with changes"
    fi
    echo "## On a card, $(date -u +%Y-%m-%d)"
    echo
    echo "Card: ${card:-unknown}. Driver: ${driver:-unknown}. Commit: $commit. \`train/benchmark/gpu.sh --device $device --only \"$only\"\`."
    [ "$device" != emulated ] || echo "**An emulated device: times say nothing about a card.**"
    table steps Checks "check | result | " "--- | --- | ---"
    table ceilings Ceilings "precision | matrix products, TFLOP/s | nominal | copying, GB/s | nominal" "--- | ---: | ---: | ---: | ---:"
    table bench "Training steps" \
        "shape | precision | distances | step, ms | tokens/s | model flops of nominal peak | of measured products | step / floor" \
        "--- | --- | --- | ---: | ---: | ---: | ---: | ---:"
    table operations "Operations" "shape | precision | operation | us | rate | of the ceiling | us to queue it" "--- | --- | --- | ---: | ---: | ---: | ---:"
    table twin "The same in PyTorch" "distances | step, ms | tokens/s | PyTorch" "--- | ---: | ---: | ---"
    table ranks "Ranks that share the card" "mesh | transport | step, ms | tokens/s | last loss : one rank's - 1" "--- | --- | ---: | ---: | ---:"
}
trap print EXIT
trap 'failed=1; exit 1' TERM INT HUP

# --------------------------------------------------------------------------------------------- build
configure_and_build() {
    local generator=()
    if [ ! -f "$build/CMakeCache.txt" ] && command -v ninja > /dev/null; then generator=(-G Ninja); fi
    cmake -S "$source" -B "$build" "${generator[@]}" -D"$option"=ON && cmake --build "$build" -j "$(nproc)"
}
export -f configure_and_build
export build source option
if wanted build; then
    run build bash -c configure_and_build
    status=$?
    finish build $status "$( (/usr/local/cuda/bin/nvcc --version || nvcc --version) 2> /dev/null | sed -n 's/.*release \([^,]*\),.*/CUDA \1/p')"
    [ $status -eq 0 ] || exit 1
fi
[ -x "$gdn" ] || { echo "gpu.sh: $gdn is missing: let the step build run first" >&2; exit 1; }

small=(--set model.hidden_size=32 --set model.intermediate_size=48 --set train.batch_size=2 --set train.sequence_length=16)
run device "$gdn" bench "$source/configs/tiny.yaml" --device "$device" --json --steps-only --seconds 0 "${small[@]}"
status=$?
if [ $status -ne 0 ]; then
    tail -1 "$logs/device.log" >&2
    [ $status -ne 2 ] || { echo "gpu.sh: no card, nothing was measured" >&2; trap - EXIT; exit 77; }
    finish device $status "a training step of configs/tiny.yaml"
fi
card=$(text card "$logs/device.log") driver=$(text driver "$logs/device.log")

# --------------------------------------------------------------------------------------------- tests
if wanted tests; then
    run tests ctest --test-dir "$build" -L "^$label\$" --output-on-failure --no-tests=error
    finish tests $? "$(sed -n 's/^\([0-9]*% tests passed.*\)/\1/p' "$logs/tests.log"), $(grep -c '\*\*\*Skipped' "$logs/tests.log") skipped"
fi

if wanted sanitizer && [ "$device" = cuda ]; then
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null || true)
    [ -n "$sanitizer" ] || row steps "| sanitizer | not run | compute-sanitizer is not installed |"
    for tool in memcheck racecheck initcheck synccheck; do
        for program in test_backends test_attention_backends test_delta_backends test_gate_backends test_attention_device test_gemm_device test_scales_device; do
            [ -n "$sanitizer" ] || continue
            run "$tool-$program" env GDN_TEST_BACKEND=cuda "$sanitizer" --tool $tool --error-exitcode 99 "$build/tests/kernels/$program"
            finish "$tool-$program" $? "$(sed -n 's/^=* *\(ERROR SUMMARY: .*\|RACECHECK SUMMARY: .*\)/\1/p' "$logs/$tool-$program.log" | tail -1)"
        done
    done
fi

# --------------------------------------------------------------------------------------------- gdn bench
note_bench() { # SHAPE PRECISION DISTANCES LOG
    LC_ALL=C awk -v shape="$1" -v precision="$2" -v distances="$3" -v logs="$logs" '
        function value(key) {
            match($0, "\"" key "\":[^,}]*")
            return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
        }
        function number(key, factor, format) { return value(key) + 0 > 0 ? sprintf(format, value(key) * factor) : "unknown" }
        /"what":"machine"/ && distances != "none" {
            printf "| %s | %s | %s | %s | %s |\n", precision, number("gemm_flops", 1e-12, "%.1f"),
                number("nominal_flops", 1e-12, "%.1f"), number("copy_bytes", 1e-9, "%.0f"), number("nominal_bytes", 1e-9, "%.0f") >> (logs "/ceilings.rows")
        }
        /"what":"operation"/ {
            match($0, /"name":"[^"]*"/); name = substr($0, RSTART + 8, RLENGTH - 9)
            match($0, /"unit":"[^"]*"/); unit = substr($0, RSTART + 8, RLENGTH - 9)
            printf "| %s | %s | %s | %.1f | %.1f %s | %.0f%% | %.1f |\n", shape, precision, name, 1e6 * value("seconds"), value("rate"),
                unit, 100 * value("share"), 1e6 * value("queue_seconds") >> (logs "/operations.rows")
        }
        /"what":"step"/ {
            printf "| %s | %s | %s | %.2f | %.0f | %s | %.1f%% | %.2f |\n", shape, precision, distances, 1e3 * value("step_seconds"),
                value("tokens_per_second"), number("model_flops_utilization", 100, "%.1f%%"), 100 * value("gemm_utilization"),
                value("step_seconds") / value("gemm_seconds") >> (logs "/bench.rows")
        }' "$4"
}

bench() { # SHAPE PRECISION DISTANCES [OPTION …]
    local shape=$1 precision=$2 distances=$3 name="bench-$1-$2-${3:-none}" status=0
    shift 3
    run "$name" "$gdn" bench "$source/configs/$shape.yaml" --device "$device" --precision "$precision" --json \
        --set "model.delta.distances=[$distances]" "$@" || status=$?
    if [ $status -eq 2 ] && grep -q "$precision needs" "$logs/$name.log"; then
        row steps "| $name | not run | $(words "$logs/$name.log") |"
        return
    fi
    [ $status -eq 0 ] || finish "$name" $status "$(words "$logs/$name.log")"
    note_bench "$shape" "$precision" "${distances:-none}" "$logs/$name.log"
}

if wanted bench; then
    shapes="bench-middle bench-gpu" few=()
    [ "$device" = cuda ] || shapes=tiny few=("${small[@]}" --seconds 0)
    for shape in $shapes; do
        for precision in fp32 bf16 fp8; do
            bench "$shape" $precision 1,2,3,4 "${few[@]}"
            bench "$shape" $precision "" --steps-only "${few[@]}"
        done
    done
fi

# --------------------------------------------------------------------------------------------- twin
if wanted twin; then
    on=cpu shape=(--layers 5 --width 32 --heads 2 --ffn 48 --context 16 --batch 2 --vocab 257 --hidden 8 --gate-hidden 8 --steps 2 --warmup 1)
    [ "$device" != cuda ] || on=cuda shape=(--compile --layers 16 --width 2048 --heads 16 --ffn 5632 --context 2048 --batch 4 --vocab 32768 \
        --hidden 256 --gate-hidden 64 --steps 12 --warmup 3)
    if ! python3 -c "import sys, torch; sys.exit('$on' == 'cuda' and not torch.cuda.is_available())" 2> /dev/null; then
        row steps "| twin | not run | python3 has no PyTorch for $on |"
    else
        for distances in 1,2,3,4 ""; do
            name=twin-${distances:-none}
            run "$name" python3 "$source/train/benchmark/peer.py" --device $on --precision bf16 --distances "$distances" "${shape[@]}"
            status=$?
            [ $status -eq 0 ] || { finish "$name" $status "$(tail -1 "$logs/$name.log")"; continue; }
            row twin "$(LC_ALL=C awk -v distances="${distances:-none}" '
                function value(key) { match($0, "\"" key "\": [^,}]*"); return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) }
                /"what": "step"/ { printf "| %s | %.2f | %.0f | %s |", distances, 1e3 * value("step_seconds"), value("tokens_per_second"), value("program") }' "$logs/$name.log")"
        done
    fi
fi

# --------------------------------------------------------------------------------------------- ranks
# Eight layers whose time on a GPU is not all launches; under emulation small ones.
width=1024 length=512 batch=16 steps=12
[ "$device" = cuda ] || width=32 length=8 batch=4 steps=4

median() { # RUN: seconds of a step, without the first two
    sed -n 's/.*"event":"step".*"step_seconds":\([^,}]*\).*/\1/p' "$1/metrics.jsonl" | tail -n +3 | LC_ALL=C sort -g |
        awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'
}

one='' tolerance=1e-4
# mesh DATA.TENSOR.PIPELINE TRANSPORT [OPTION …]. Where NCCL does not want ranks on one GPU, gdn refuses (2): no failure of gdn's.
mesh() {
    local axes=$1 transport=$2 name="ranks-$1-$2" status=0 loss seconds d t p
    shift 2
    [ $# -eq 0 ] || name="$name-${*: -1}"
    IFS=. read -r d t p <<< "$axes"
    rm -rf "$logs/run"
    # Different host names make NCCL take the ranks' one GPU for two; lo: they are on one machine nevertheless.
    # shellcheck disable=SC2016
    run "$name" mpirun --oversubscribe --bind-to none -n $((d * t * p)) \
        bash -c 'NCCL_HOSTID=gdn-$OMPI_COMM_WORLD_RANK NCCL_SOCKET_IFNAME=lo exec "$@"' - \
        "$gdn" train "$logs/ranks.yaml" --run-dir "$logs/run" --set device="$device" --set mesh.data="$d" --set mesh.tensor="$t" \
        --set mesh.pipeline="$p" --set mesh.transport="$transport" "$@" || status=$?
    if [ $status -ne 0 ] && [ "$transport" = nccl ]; then
        row steps "| $name | not possible, status $status | $(words "$logs/$name.log") |"
        return
    fi
    [ $status -eq 0 ] || { finish "$name" $status "$(words "$logs/$name.log")"; return; }
    seconds=$(median "$logs/run") loss=$(grep '"event":"step"' "$logs/run/metrics.jsonl" | tail -1 | sed -n 's/.*"loss":\([^,}]*\).*/\1/p')
    one=${one:-$loss}
    LC_ALL=C awk -v loss="$loss" -v one="$one" -v bound=$tolerance 'BEGIN { d = loss / one - 1; exit !(d < bound && d > -bound) }'
    finish "$name" $? "the last loss against one rank's, at most $tolerance apart"
    row ranks "$(LC_ALL=C awk -v axes="$axes" -v way="${name#ranks-"$axes"-}" -v s="$seconds" -v loss="$loss" -v one="$one" -v tokens=$((batch * length)) \
        'BEGIN { printf "| %s | %s | %.1f | %.0f | %+.1e |", axes, way, 1000 * s, tokens / s, loss / one - 1 }')"
}

if wanted ranks; then
    seq 200000 > "$logs/text"
    cat > "$logs/ranks.yaml" <<YAML
model: {vocab_size: 257, hidden_size: $width, num_layers: 8, num_heads: 8, intermediate_size: $((width * 11 / 4)), delta: {hidden: 64, gate_hidden: 16}}
train: {batch_size: $batch, micro_batch_size: $((batch / 4)), sequence_length: $length, steps: $steps}
data: {train: $logs/text}
YAML
    mesh 1.1.1 auto
    for transport in staged nccl; do
        for axes in 2.1.1 1.2.1 1.1.2; do mesh $axes $transport; done
    done
    tolerance=1e-2
    mesh 2.1.1 staged --set train.precision=bf16
fi
exit $failed
