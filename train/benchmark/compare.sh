#!/usr/bin/env bash
# Training speed of gdn beside the same model in PyTorch (peer.py), both in float32, and both in bf16 (gdn with train.precision,
# PyTorch under autocast), on all cores of this machine:
#
#   train/benchmark/compare.sh [--rounds N] [--shapes "small middle wide"] [--precisions "fp32 bf16"]
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
shapes="small middle wide"
precisions="fp32 bf16"
while [ $# -gt 0 ]; do
    case "$1" in
        --rounds) rounds=${2:?--rounds: a number is expected} ;;
        --shapes) shapes=${2:?--shapes: some of small, middle and wide are expected} ;;
        --precisions) precisions=${2:?--precisions: fp32, bf16 or both are expected} ;;
        *) echo "usage: compare.sh [--rounds N] [--shapes \"small middle wide\"] [--precisions \"fp32 bf16\"]" >&2; exit 2 ;;
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

for precision in $precisions; do
    case $precision in fp32 | bf16) ;; *) echo "compare.sh: --precisions '$precision': fp32 or bf16 is expected" >&2; exit 2 ;; esac
done

settings() { # SHAPE: peer.py's arguments for the shape of configs/bench-SHAPE.yaml
    case "$1" in
        small) echo --layers 4 --width 128 --heads 4 --ffn 352 --context 64 --batch 12 --vocab 257 --steps 100 --warmup 10 ;;
        middle) echo --layers 12 --width 768 --heads 12 --ffn 2048 --context 512 --batch 4 --vocab 257 --steps 5 --warmup 2 ;;
        wide) echo --layers 4 --width 2048 --heads 16 --ffn 5632 --context 512 --batch 2 --vocab 257 --steps 4 --warmup 2 ;;
        *) echo "compare.sh: --shapes '$1': small, middle or wide is expected" >&2; return 1 ;;
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
            for precision in $precisions; do
                name=$shape/${distances:-none}/$precision
                record "$name/gdn" "$gdn" bench "$source/configs/bench-$shape.yaml" --steps-only --json --threads "$threads" \
                    --precision "$precision" --set device=cpu --set "model.delta.distances=[$distances]"
                peer "$name/eager" "${arguments[@]}" --distances "$distances" --precision "$precision"
                peer "$name/compiled" "${arguments[@]}" --distances "$distances" --precision "$precision" --compile
            done
        done
    done
done

echo "$threads threads, $rounds rounds, $("$python" -c 'import torch; print("PyTorch", torch.__version__)'), \
$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)"
echo
numbers() { # NAME: median and greatest of its results
    grep "^$1 " "$scratch/results" | cut -d' ' -f2- | LC_ALL=C sort -g | LC_ALL=C awk '
        { value[NR] = $1 }
        END { printf "%.0f %.0f\n", (value[int((NR + 1) / 2)] + value[int(NR / 2) + 1]) / 2, value[NR] }'
}
echo "| shape | distances | precision | gdn | PyTorch eager | PyTorch compiled | gdn : faster PyTorch | best rounds |"
echo "| --- | --- | --- | ---: | ---: | ---: | ---: | --- |"
for shape in $shapes; do
    for distances in 1,2,3,4 none; do
        for precision in $precisions; do
            name=$shape/$distances/$precision
            read -r g best_g <<< "$(numbers "$name/gdn")"
            read -r e best_e <<< "$(numbers "$name/eager")"
            read -r c best_c <<< "$(numbers "$name/compiled")"
            ratio=$(LC_ALL=C awk "BEGIN { printf \"%.2f\", $g / ($e > $c ? $e : $c) }")
            echo "| $shape | $distances | $precision | $g | $e | $c | $ratio | $best_g, $best_e, $best_c |"
        done
    done
done
