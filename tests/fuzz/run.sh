#!/usr/bin/env bash
# Fuzzes: run.sh SECONDS [FUZZER …], FUZZER being config, tokens, checkpoint, safetensors, tokenizer or huggingface; all six at once without one.
#
# Builds build/fuzz with clang where that is not done, and keeps in build/fuzz/FUZZER (or $GDN_FUZZ_OUT/FUZZER): corpus/, which grows
# from run to run; log, whose last lines have the numbers; and findings/, a file for each input that crashed (crash-…), took more
# than 10 s (timeout-…) or 2 GB (oom-…). A finding does not end the run. Status 1 where there are any.
# An input again: build/fuzz/tests/fuzz/replay_FUZZER FILE. Smaller: fuzz_FUZZER -minimize_crash=1 -max_total_time=60 FILE.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../.." && pwd)
usage() { echo "usage: run.sh SECONDS [config|tokens|checkpoint|safetensors|tokenizer|huggingface …]" >&2; exit 2; }
[[ "${1:-}" =~ ^[1-9][0-9]*$ ]] || usage
seconds=$1
shift
[ $# -gt 0 ] || set -- config tokens checkpoint safetensors tokenizer huggingface
build=${GDN_FUZZ_BUILD:-$source/build/fuzz}
out=${GDN_FUZZ_OUT:-$build}
if [ -z "${GDN_FUZZ_BUILD:-}" ]; then
    cmake -S "$source" -B "$build" -DCMAKE_C_COMPILER=clang -DGDN_FUZZ=ON -DGDN_CUDA=OFF > "$build.log" 2>&1 &&
        cmake --build "$build" -j "$(nproc)" >> "$build.log" 2>&1 ||
        { tail -n 30 "$build.log" >&2; echo "run.sh: the build failed; all its output is in $build.log" >&2; exit 1; }
fi

# HDF5 asks for as much memory as a length in the file says, up to 4 GiB, before it finds that the file is shorter. It never touches it,
# but the sanitizer would: such requests fail here. It also leaks where it rejects damaged metadata; other leaks are looked for.
export ASAN_OPTIONS=verify_asan_link_order=0:allocator_may_return_null=1:max_allocation_size_mb=1200:quarantine_size_mb=64
export UBSAN_OPTIONS=print_stacktrace=1 LSAN_OPTIONS=suppressions=$here/lsan.supp:print_suppressions=0 OMP_NUM_THREADS=1
scratch=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")" gdn-fuzz-run.XXXXXX)
export TMPDIR=$scratch # of libFuzzer too; what crashed leaves its files
trap 'rm -rf "$scratch"' EXIT

start() { # FUZZER
    local name=$1 longest=24576 options=()
    case $name in
        config) longest=4096; cat "$here/yaml.dict" "$here/seeds/keys.dict" > "$out/config/dict"; options=(-dict="$out/config/dict") ;;
        tokens) longest=8192 ;;
        safetensors | tokenizer | huggingface) longest=4096 ;;
        checkpoint) ;;
        *) usage ;;
    esac
    cd "$out/$name"
    exec nice -n 19 "$build/tests/fuzz/fuzz_$name" -fork=1 -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2000 -max_len=$longest -artifact_prefix=findings/ \
        "${options[@]}" corpus "$here/seeds/$name" $([ -d "$here/findings/$name" ] && echo "$here/findings/$name") > log 2>&1
}

processes=()
for name; do
    mkdir -p "$out/$name"/{corpus,findings}
    (start "$name") &
    processes+=($!)
done
wait "${processes[@]}" || true

found=0
for name; do
    count=$(find "$out/$name/findings" -type f | wc -l)
    echo "$name: $(grep -E '^#[0-9]+: cov' "$out/$name/log" | tail -n 1); $count findings in $out/$name/findings"
    found=$((found + count))
done
[ "$found" -eq 0 ]
