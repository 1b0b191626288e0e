#!/usr/bin/env bash
# gdn bench on a device at a tiny shape: bench.sh DEVICE. Every line of JSON is there with sane numbers in every precision, and what
# does not depend on the device (arithmetic, parameters, bytes kept) is what the cpu's lines say. Speed is not looked at.
set -euo pipefail
export OMP_NUM_THREADS=1
device=$1
[ "$device" = cpu ] || "$HAS_DEVICE" "$device" || exit

fail() { echo "FAILED: $*" >&2; exit 1; }

cat > tiny.yaml <<'YAML'
model: {vocab_size: 64, hidden_size: 32, num_layers: 3, num_heads: 2, intermediate_size: 48, delta: {hidden: 16, gate_hidden: 8}}
train: {batch_size: 2, sequence_length: 16}
YAML

bench() { # DEVICE PRECISION [OPTION …]: JSON
    local on=$1 precision=$2
    shift 2
    "$GDN" bench tiny.yaml --device "$on" --precision "$precision" --json --seconds 0 "$@"
}

value() { # KEY: of each line
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"
}

# The work of an operation is its rate times its seconds, of a step its arithmetic.
work() { # NAME.DEVICE: what it has to say, into NAME.DEVICE.work
    LC_ALL=C awk '
        function value(key) {
            match($0, "\"" key "\":[^,}]*")
            return RSTART ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) : "missing"
        }
        function complain(what) { print "bad " what ": " $0; bad = 1 }
        function positive(key) { if (!(value(key) + 0 > 0 && value(key) + 0 < 1e18)) complain(key) }
        function share(key) { if (value(key) !~ /^[0-9]+\.[0-9]+$/) complain(key) } # may be rounded to 0
        /"what":"machine"/ { positive("gemm_flops"); positive("copy_bytes") }
        /"what":"operation"/ {
            match($0, /"name":"[^"]*"/); name = substr($0, RSTART + 7, RLENGTH - 7)
            positive("seconds"); positive("rate"); share("share")
            if ($0 ~ /queue_seconds/ && value("queue_seconds") + 0 > 1.01 * value("seconds")) complain("time, less than to queue it")
            print name "|" value("seconds") * value("rate")
        }
        /"what":"step"/ {
            positive("step_seconds"); positive("gemm_seconds"); share("gemm_utilization")
            tokens = value("tokens_per_second") * value("step_seconds")
            if (tokens < 31.5 || tokens > 32.5) complain("number of tokens") # 32
            part = value("gemm_flops") / value("model_flops") # the rest is attention, and projections that save products
            if (part < 0.8 || part > 1.1) complain("part of the arithmetic that was recorded")
            print "step|" value("parameters") "|" value("model_flops") "|" value("gemm_flops")
        }
        /"what":"recompute"/ {
            positive("step_seconds")
            print value("setting") "|" value("activations") "|" value("sources")
        }
        END { exit bad }' "$1" > "$1.work" || fail "$1: $(grep '^bad ' "$1.work")"
}

sane() { # NAME DEVICE PRECISION: what the device's lines say of themselves, and against the cpu's of this name
    [ "$(value device < "$1.$2" | sort -u)" = "$2" ] || fail "not all lines are of device $2: $(cat "$1.$2")"
    [ "$(value precision < "$1.$2" | sort -u)" = "$3" ] || fail "not all lines are of precision $3: $(cat "$1.$2")"
    work "$1.$2"
    # Times are printed to four digits.
    paste -d'|' "$1.cpu.work" "$1.$2.work" | LC_ALL=C awk -F'|' '
        function differ(a, b) { return a + 0 == 0 ? a != b : a / b > 1.002 || a / b < 0.998 }
        { for (i = 1; i <= NF / 2; i++) if (NF % 2 || differ($i, $(NF / 2 + i))) { print; bad = 1; next } }
        END { exit bad || !NR }' >&2 || fail "$1.$2: the work differs from the cpu's"
}

options() { # NAME: the options that make it
    case $1 in
        all) ;;
        plain) echo --steps-only --set model.delta.distances=[] ;;
        recompute) echo --recompute ;;
    esac
}

for name in all plain recompute; do
    # shellcheck disable=SC2046
    bench cpu fp32 $(options $name) > $name.cpu
    work $name.cpu
done
[ "$(grep -c '"what":"operation"' all.cpu)" -eq 42 ] || fail "not 42 operations: $(cat all.cpu)"
grep '^step' all.cpu.work > steps.cpu.work
status=0
"$GDN" bench tiny.yaml --set 'train.groups=[{match: "layers.9.*", lr_scale: 2}]' > none.out 2> none.err || status=$?
[ $status -eq 2 ] && [ ! -s none.out ] && grep -q "layers.9" none.err || fail "a group of no tensor: status $status: $(cat none.out none.err)"
[ "$device" != cpu ] || { sane all cpu fp32; exit; }

for name in all plain recompute; do
    # shellcheck disable=SC2046
    bench "$device" fp32 $(options $name) > "$name.$device"
    sane $name "$device" fp32
done
[ "$device" != emulated ] || grep -q 'times say nothing about a GPU' all.emulated || fail "the emulated device is not named as such"
for precision in bf16 fp16 fp8; do
    if ! bench "$device" $precision --steps-only > "steps.$device" 2> words; then
        grep -q "$precision needs" words || fail "$precision: $(cat words)"
        cat words
        continue
    fi
    sane steps "$device" $precision
done
