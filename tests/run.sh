#!/usr/bin/env bash
# Builds gdn and runs its tests: run.sh [--full | --soak]
#
#   build/           float             quick tests; with --full the long ones too, with --soak also those that take longest. With the
#                                      CUDA backend where nvcc is found, and the same code on the emulated device
#   build/double     -DGDN_DOUBLE=ON   the same
#   build/sanitize   -DGDN_SANITIZE=address,undefined, only with --full or --soak
#
# Each prints the ten tests that took longest. Goes on after a failure, so that the last line counts everything; a build that fails
# counts as a failed test.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

usage() { echo "usage: tests/run.sh [--full | --soak]" >&2; exit 2; }
[ $# -le 1 ] || usage
full=1
case "${1:-}" in
    '') full='' labels=(-L '^quick$') ;;
    --full) labels=(-LE '^(soak|part)$') ;;
    --soak) labels=() ;;
    *) usage ;;
esac

if command -v apt-get > /dev/null; then train/setup.sh --tests || exit 1; fi # elsewhere CMake says what is missing

cores=$(nproc)
jobs=$((2 * cores + 1)) # many tests wait for most of their time
passed=0 failed=0 skipped=0

build() { # DIRECTORY [CMAKE OPTION …]
    local directory=$1
    shift
    if [ ! -f "$directory/CMakeCache.txt" ] && command -v ninja > /dev/null; then set -- -G Ninja "$@"; fi
    cmake -S . -B "$directory" "$@" > "$directory.log" 2>&1 && cmake --build "$directory" -j "$cores" >> "$directory.log" 2>&1
}

tell_skipped() { # DIRECTORY REPORT COUNT: which, and why by their own words
    echo "== $1: $3 skipped:" "$(awk -F'"' '/<testcase / { name = $2 } /<skipped message="SKIP_/ { printf "%s ", name }' "$2")"
    grep -ohE '(device [a-z]+|slurm|processor): [^<]*' "$2" | sort | uniq -c | sort -rn | head -n 3
}

tell_slowest() { # DIRECTORY REPORT
    echo "== $1: the slowest, in seconds:"
    sed -nE 's/.*<testcase name="([^"]*)".* time="([0-9.]+)".*/\2 \1/p' "$2" | sort -rn | head -n 10 | awk '{ printf "%8.1f  %s\n", $1, $2 }'
}

suite() { # DIRECTORY [CMAKE OPTION …]
    local directory=$1 report=$PWD/$1/junit.xml all run skip
    echo "== $directory: building"
    mkdir -p "$directory"
    if ! build "$@"; then
        tail -n 60 "$directory.log"
        echo "== $directory: the build failed; all its output is in $directory.log"
        failed=$((failed + 1))
        return
    fi
    grep -i 'warning:' "$directory.log"
    echo "== $directory: testing"
    rm -f "$report"
    # ctest's own status is not needed: every test that neither passed nor was skipped counts as failed.
    ctest --test-dir "$directory" ${labels[@]+"${labels[@]}"} -j "$jobs" --output-on-failure --no-tests=ignore \
        --output-junit "$report"
    if [ ! -f "$report" ]; then
        echo "== $directory: ctest wrote no report"
        failed=$((failed + 1))
        return
    fi
    all=$(grep -c '<testcase ' "$report")
    run=$(grep -c '<testcase .* status="run"' "$report")
    skip=$(grep -c '<skipped message="SKIP_' "$report") # a test said so; one that could not start is a failure
    [ "$skip" -eq 0 ] || tell_skipped "$directory" "$report" "$skip"
    tell_slowest "$directory" "$report"
    passed=$((passed + run))
    skipped=$((skipped + skip))
    failed=$((failed + all - run - skip))
}

# CUDA sources say the same for every GPU: where there is none, nvcc compiles them for one, in a third of the time.
gpus=()
if [ ! -f build/CMakeCache.txt ] && ! command -v nvidia-smi > /dev/null; then gpus=(-DCMAKE_CUDA_ARCHITECTURES=80); fi
suite build -DGDN_EMULATED=ON ${gpus[@]+"${gpus[@]}"}
suite build/double -DGDN_DOUBLE=ON
[ -n "$full" ] && suite build/sanitize -DGDN_SANITIZE=address,undefined

echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
