#!/usr/bin/env bash
# A run whose newest of three checkpoints is damaged, one bit or cut: damage.sh [all]. `gdn checkpoint verify` says so (status 2),
# `gdn train` says so, goes on from the one before, and ends as an undisturbed run does. Where all are damaged it refuses, and
# overwrites nothing.
. "$SOURCE/tests/faults/faults.sh"
options=(--set train.steps=12 --set checkpoint.interval=3 --set train.eval_interval=12 --set train.batch_size=4)
for files in one node; do
    train 1 whole_$files "${options[@]}" --set checkpoint.files=$files || fail "an undisturbed run ends with status $?"
    expect 3 train 1 three_$files "${options[@]}" --set checkpoint.files=$files --set train.stop_at=9 2> /dev/null
    [ "$(ls -d three_$files/checkpoints/step_* | wc -l)" -eq 3 ] || fail "not three checkpoints in three_$files"
done

flip() { # FILE BYTE BIT
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    [ -n "$byte" ] || fail "$1 has no byte $2"
    printf "\\x$(printf '%02x' $((byte ^ 1 << $3)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
place() { grep -abo "$2" "$1" | head -1 | cut -d: -f1; } # of a text in a file
size() { stat -c %s "$1"; }

try() { # FILES FILE HOW…: a case with step 9's FILE damaged
    local files=$1 file=case/checkpoints/step_00000009/$2 what="$*"
    shift 2
    rm -rf case
    cp -r three_"$files" case
    "$@" "$file"
    expect 2 "$GDN" checkpoint verify case/checkpoints/step_00000009 > verify.log 2>&1
    [ "$(grep -c '^gdn: ' verify.log)" -eq 1 ] && grep -q step_00000009 verify.log || fail "$what: verify says: $(cat verify.log)"
    expect 0 train 1 case "${options[@]}" --set checkpoint.files="$files"
    grep -q 'step_00000009 is skipped' case.log || fail "$what: the run does not say so: $(cat case.log)"
    lines resume case | tail -1 | grep -q '"step":6,' || fail "$what: not gone on from step 6: $(lines resume case | tail -1)"
    same_end case whole_"$files"
    "$GDN" checkpoint verify case/checkpoints/step_* > verify.log 2>&1 || fail "$what: still damaged: $(cat verify.log)"
    cases=$((cases + 1))
}
cases=0 began=$SECONDS

flip_at() { flip "$3" "$1" "$2"; }
flip_text() { flip "$2" "$(place "$2" "$1")" 0; }
flip_half() { flip "$1" $(($(size "$1") / 2)) 3; }
shorten() { truncate -s "$1" "$2"; }
remove() { rm "$1"; }
whole_zero() { truncate -s 0 "$1" && truncate -s "$(size three_one/checkpoints/step_00000009/checkpoint.h5)" "$1"; }

try one checkpoint.h5 flip_at 20 0     # the digest
try one checkpoint.h5 flip_at 520 7    # HDF5's superblock
try one checkpoint.h5 flip_text hidden_size # the attribute config
try one checkpoint.h5 flip_text format_version
try one checkpoint.h5 flip_half
try one checkpoint.h5 shorten -1
try one checkpoint.h5 shorten 512
try one checkpoint.h5 shorten 0
try one checkpoint.h5 whole_zero       # as some file systems leave a file after a power failure
try one checkpoint.h5 remove
try node checkpoint.h5 flip_half
try node part_00000.h5 flip_half
try node part_00000.h5 shorten -4096
try node part_00000.h5 remove

# One bit in each dataset; without `all`, in every fifth.
file=three_one/checkpoints/step_00000009/checkpoint.h5
if command -v h5dump h5ls > /dev/null; then
    datasets=0
    rm -rf case && cp -r three_one case
    copy=case/checkpoints/step_00000009/checkpoint.h5
    h5ls -r --full "$file" 2> /dev/null | sed -n 's/ *Dataset.*//p' > every
    if [ "${1:-}" = all ]; then mv every names; else sed -n "1~5p" every > names; fi
    while read -r name; do
        at=$(h5dump -p -H -d "$name" "$file" 2> /dev/null | sed -n 's/.*OFFSET \([0-9]*\).*/\1/p')
        [ -n "$at" ] || continue
        flip "$copy" $((at + 512)) $((datasets % 8))
        expect 2 "$GDN" checkpoint verify "$copy" > verify.log 2>&1
        flip "$copy" $((at + 512)) $((datasets % 8))
        datasets=$((datasets + 1))
    done < names
    [ "$datasets" -ge 40 ] || fail "only $datasets datasets were found in $file"
    cmp "$copy" "$file" || fail "the copy was not put right"
    "$GDN" checkpoint verify "$copy" > /dev/null || fail "the copy is not whole"
fi

# Pointers: a run goes on from the newest one that is whole.
for line in "" "step_00000008" "step_00000000" "step_9" "no such thing"; do
    rm -rf case && cp -r three_one case
    echo "$line" > case/checkpoints/latest
    echo "$line" > case/checkpoints/best
    expect 0 train 1 case "${options[@]}"
    lines resume case | tail -1 | grep -q '"step":9,' || fail "latest '$line': $(lines resume case | tail -1)"
    "$GDN" checkpoint diff case whole_one > diff.log || fail "latest '$line': $(cat diff.log)"
    [ "$(cat case/checkpoints/latest)" = step_00000012 ] || fail "latest '$line' has become $(cat case/checkpoints/latest)"
    cases=$((cases + 1))
done

# The two newest are damaged; and one that `keep` would count.
rm -rf case && cp -r three_one case
for step in 6 9; do flip_half case/checkpoints/step_0000000$step/checkpoint.h5; done
expect 0 train 1 case "${options[@]}"
[ "$(grep -c 'is skipped' case.log)" -eq 2 ] || fail "two damaged checkpoints: $(cat case.log)"
same_end case whole_one

rm -rf case && cp -r three_one case
flip_half case/checkpoints/step_00000009/checkpoint.h5
expect 3 train 1 case "${options[@]}" --set checkpoint.interval=5 --set checkpoint.keep=2 --set train.stop_at=10 2> /dev/null
[ "$("$GDN" checkpoint ls case 2> /dev/null | grep -c whole)" -ge 2 ] ||
    fail "a damaged checkpoint was kept instead of a whole one: $("$GDN" checkpoint ls case 2>&1)"
expect 0 train 1 case "${options[@]}"
same_end case whole_one

# All of them: refused, nothing is touched, and again.
rm -rf case && cp -r three_one case
for step in 3 6 9; do flip_half case/checkpoints/step_0000000$step/checkpoint.h5; done
sums() { find case -type f ! -name .lock -exec md5sum {} + | sort; }
sums > before
for _ in 1 2; do
    expect 2 train 1 case "${options[@]}" 2> /dev/null
    [ "$(grep -c '^gdn: ' case.log)" -eq 1 ] && grep -q 'none of the 3 checkpoints' case.log || fail "all are damaged: $(cat case.log)"
    sums | cmp - before || fail "a refused run has changed something"
done
expect 2 "$GDN" checkpoint verify case/checkpoints/step_* > verify.log 2>&1
[ "$(grep -c '^gdn: ' verify.log)" -eq 1 ] && grep -q '3 of 3' verify.log || fail "verify of three: $(cat verify.log)"
echo "$cases cases, ${datasets:-no} datasets; $((SECONDS - began)) s"
