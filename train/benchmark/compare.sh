#!/usr/bin/env bash
# Training speed of gdn beside the same model in PyTorch (peer.py), both float32 on all cores of this machine:
#
#   train/benchmark/compare.sh [--rounds N] [--shapes "small middle"]
#
# The programs take turns, N rounds (default 3), so that a machine that is busy or warms up treats them alike. Prints a
# Markdown table: tokens per second, the median over rounds of each round's median step, and the best round.
# PYTHON names a Python with torch (default python3), GDN the program (default build/gdn).
#
# PyTorch gets what makes it fastest. On AMD processors its MKL takes slower kernels than it could; there it is also told
# that the processor is as good as Intel's, which more than doubled its matrix products on one with AVX-512.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3}
gdn=${GDN:-$source/build/gdn}
rounds=3
shapes="small middle"
while [ $# -gt 0 ]; do
    case "$1" in
        --rounds) rounds=${2:?--rounds: a number is expected} ;;
        --shapes) shapes=${2:?--shapes: small, middle or both are expected} ;;
        *) echo "usage: compare.sh [--rounds N] [--shapes \"small middle\"]" >&2; exit 2 ;;
    esac
    shift 2
done
"$python" -c 'import torch' || { echo "compare.sh: $python has no torch: set PYTHON to one that has" >&2; exit 1; }
[ -x "$gdn" ] || { echo "compare.sh: $gdn is missing: build it, or set GDN" >&2; exit 1; }

threads=$(nproc)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

preload=
if grep -q AuthenticAMD /proc/cpuinfo; then
    echo 'int mkl_serv_intel_cpu_true(void) { return 1; }' > "$scratch/mkl.c"
    cc -shared -fPIC -o "$scratch/mkl.so" "$scratch/mkl.c"
    preload=$scratch/mkl.so
fi

settings() { # SHAPE: peer.py's arguments for the shape of configs/bench-SHAPE.yaml
    case "$1" in
        small) echo --layers 4 --width 128 --heads 4 --ffn 352 --context 64 --batch 12 --vocab 257 --steps 100 --warmup 10 ;;
        middle) echo --layers 12 --width 768 --heads 12 --ffn 2048 --context 512 --batch 4 --vocab 257 --steps 5 --warmup 2 ;;
        *) echo "compare.sh: --shapes '$1': small or middle is expected" >&2; return 1 ;;
    esac
}

record() { # NAME COMMAND …: appends the tokens per second of the command's line of JSON to the results
    local name=$1 line
    shift
    line=$("$@" 2> "$scratch/errors" | grep '"what": *"step"') || { cat "$scratch/errors" >&2; echo "compare.sh: $* failed" >&2; exit 1; }
    line=${line#*\"tokens_per_second\":}
    echo "$name ${line%%[,\}]*}" | tee -a "$scratch/results" >&2
}

peer() { # NAME ARGUMENT …
    local name=$1
    shift
    record "$name" env LD_PRELOAD="$preload" "$python" -W ignore "$here/peer.py" --direct --threads "$threads" "$@"
}

for shape in $shapes; do
    arguments=$(settings "$shape")
    read -r -a arguments <<< "$arguments"
    for ((round = 1; round <= rounds; round++)); do
        for distances in 1,2,3,4 ""; do
            name=$shape/${distances:-none}
            record "$name/gdn" "$gdn" bench "$source/configs/bench-$shape.yaml" --steps-only --json --threads "$threads" \
                --set "model.delta.distances=[$distances]"
            peer "$name/eager" "${arguments[@]}" --distances "$distances"
            peer "$name/compiled" "${arguments[@]}" --distances "$distances" --compile
        done
    done
done

echo "$threads threads, $rounds rounds, $("$python" -c 'import torch; print("PyTorch", torch.__version__)'), \
$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)"
echo
echo "| shape | distances | gdn | PyTorch eager | PyTorch compiled | gdn : faster PyTorch | best rounds |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
LC_ALL=C sort -s -k1,1 -k2,2g "$scratch/results" | LC_ALL=C awk '
    { n[$1]++; value[$1, n[$1]] = $2; split($1, part, "/"); row = part[1] "/" part[2]; if (!(row in rows)) { rows[row]; order[++count] = row } }
    function median(name) { return n[name] % 2 ? value[name, (n[name] + 1) / 2] : (value[name, n[name] / 2] + value[name, n[name] / 2 + 1]) / 2 }
    function best(name) { return value[name, n[name]] }
    END {
        for (i = count; i > 0; i--) {
            row = order[i]
            split(row, part, "/")
            g = median(row "/gdn"); e = median(row "/eager"); c = median(row "/compiled")
            printf "| %s | %s | %.0f | %.0f | %.0f | %.2f | %.0f, %.0f, %.0f |\n", part[1], part[2], g, e, c, g / (e > c ? e : c),
                best(row "/gdn"), best(row "/eager"), best(row "/compiled")
        }
    }'
