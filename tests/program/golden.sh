#!/usr/bin/env bash
# Trains every golden configuration from its golden file (tests/golden) and compares losses, norms and final weights
# with the executable specification's: golden.sh [NAME …]   (default: all). Tolerances: golden.awk.
set -euo pipefail
here=$SOURCE/tests/program
double=0
grep -qE '^GDN_DOUBLE:[A-Z]+=(ON|1|TRUE|YES)$' "$BUILD/CMakeCache.txt" && double=1
every=5 # sparsity and entropy are measured every so many steps, and null between where no regulariser needs them

dump() { h5dump -A 0 -y -w 0 -m '%.17g' "$@" | LC_ALL=C awk -f "$here/flatten.awk"; }

check() { # NAME: one line on standard output for a pass, the differences for a failure
    local name=$1 golden=$SOURCE/tests/golden/$1.h5 regularized=1 rounded=0
    [ -f "$golden" ] || { echo "$name: $golden is missing: run tests/golden/make.sh"; return 1; }
    grep -qE '"regularizer": "(fixed|adaptive)"' "$SOURCE/tests/golden/$name.yaml" || regularized=0
    grep -q '"residual": "bf16"' "$SOURCE/tests/golden/$name.yaml" && rounded=1
    # One thread: models this small gain nothing from more, and two of these run side by side.
    OMP_NUM_THREADS=1 "$GDN" train "$SOURCE/tests/golden/$name.yaml" --set data.train="$golden" --set data.format=hdf5 \
        --set data.order=sequential --set checkpoint.init_from="$golden" --set train.gate_interval=$every \
        --run-dir "$name" > "$name.log" 2>&1 || { echo "$name: gdn train ended with status $?"; sed "s/^/$name: /" "$name.log"; return 1; }
    dump "$golden" > "$name.golden"
    dump -g /model "$name/checkpoints/$(cat "$name/checkpoints/latest")/checkpoint.h5" > "$name.run"
    LC_ALL=C awk -v double=$double -v every=$every -v regularized=$regularized -v rounded=$rounded -f "$here/golden.awk" \
        "$name.golden" "$name.run" "$name/metrics.jsonl" > "$name.differences" ||
        { sed -n "s/^/$name: /; 1,20p" "$name.differences"; return 1; }
    echo "$name: agrees"
}

if [ $# -eq 0 ]; then
    for config in "$SOURCE"/tests/golden/*.yaml; do
        name=$(basename "$config" .yaml)
        set -- "$@" "$name"
    done
fi
export -f check dump
export here double every
printf '%s\n' "$@" | xargs -P 2 -I NAME bash -euo pipefail -c 'trap "rm -rf NAME" EXIT; check NAME' > report || failed=1
sort -s -t: -k1,1 report # by name, for two of them write at once
echo "$(grep -c ': agrees$' report || true) of $# golden files agree"
[ -z "${failed:-}" ] && [ "$(grep -c ': agrees$' report)" -eq $# ]
