#!/usr/bin/env bash
# Stored differences: they change nothing of the training, are the same on every mesh, replaced where a step is repeated, and
# their failures are told, and end the run where they are required.
. "$SOURCE/tests/program/small.sh"

sed -i 's/num_layers: 3/num_layers: 4/; s/steps: 40/steps: 12/; s/batch_size: 12/batch_size: 12\n  micro_batch_size: 3/' small.yaml
store=(--set delta_store.interval=5 --set delta_store.ratio=0.25)

files() { (cd "$1/deltas" && find . -type f | sort); } # also such as were not finished
stored() { grep '"event":"delta_store"' "$1/metrics.jsonl" || true; }
value() { sed -E 's/.*"'"$1"'":([^,}]*).*/\1/'; }
same_training() { # RUN RUN: to the last bit
    lines step "$1" > first && lines step "$2" > second
    [ -s first ] && cmp first second || fail "losses of $2 differ from $1"
    expect 0 "$GDN" checkpoint diff "$1" "$2" > diff
}

# ------------------------------------------------------------------------------------------ one rank
expect 0 train 1 plain
expect 0 train 1 one "${store[@]}"
same_training plain one
files one > files.one
cmp files.one - << END || fail "other files: $(cat files.one)"
./step_00000000/layer_001.h5
./step_00000000/layer_002.h5
./step_00000000/layer_003.h5
./step_00000005/layer_001.h5
./step_00000005/layer_002.h5
./step_00000005/layer_003.h5
./step_00000010/layer_001.h5
./step_00000010/layer_002.h5
./step_00000010/layer_003.h5
END
# Every store is told of once: its files' bytes, 5 connections of [48, 32] numbers of rank 8 (the second distance comes later).
[ "$(stored one | wc -l)" -eq 3 ] || fail "not three events: $(stored one)"
for step in 0 5 10; do
    bytes=$(cat one/deltas/step_*0$step/*.h5 | wc -c)
    [ $step -ne 0 ] || bytes=$(cat one/deltas/step_00000000/*.h5 | wc -c)
    event=$(stored one | grep "\"step\":$step,")
    [ "$(value files <<< "$event") $(value connections <<< "$event") $(value bytes <<< "$event") $(value rank <<< "$event")" = "3 3 $bytes 8.0" ] ||
        fail "unexpected of $bytes bytes: $event"
done

# Stopped right after a store, which is told of before; then resumed.
expect 3 train 1 halves "${store[@]}" --set train.stop_at=6 2> /dev/null
grep -n '"event"' halves/metrics.jsonl | sed -n '/"delta_store","step":5,/,$p' | grep -q '"event":"stop"' || fail "the store of step 5 is not told of"
expect 0 train 1 halves "${store[@]}"
files halves | cmp - files.one || fail "other files after a resume: $(files halves)"
while read -r file; do cmp "one/deltas/$file" "halves/deltas/$file" || fail "$file is another after a resume"; done < files.one

# A step that is repeated replaces its files, whatever they are.
expect 0 train 1 again "${store[@]}" --set checkpoint.interval=4
rm -r again/checkpoints/step_00000008 again/checkpoints/step_00000012
echo damaged > again/deltas/step_00000005/layer_002.h5
echo left > again/deltas/step_00000005/.layer_001.h5.tmp
expect 0 train 1 again "${store[@]}" 2> /dev/null
while read -r file; do cmp "one/deltas/$file" "again/deltas/$file" || fail "$file of a repeated step is another"; done < files.one
files again | cmp - files.one || fail "more files: $(files again)"

# ---------------------------------------------------------------------------------------------- meshes
# Differences, singular values and gates are equal but for the order of sums, which training feeds back.
# Factors of the full rank are compared by what they multiply out to, relative to its norm; single columns of U and Vt are
# not determined where singular values are close. A gate next to a bin's edge may change sides; none is counted twice.
if [ $losses = 1e-11 ]; then near=1e-10; else near=1e-4; fi
flat() { # FILE: "group name value" of every number in it, in order
    h5dump -y -w 1 -m '%.17g' "$1" | awk '
        $1 == "GROUP" { group = $2 } $1 == "ATTRIBUTE" || $1 == "DATASET" { name = $2 }
        /^ *-?[0-9][-+.e0-9]*,?$/ && name != "\"xxh3\"" { sub(",", ""); print group, name, $1 }' | tr -d '"'
}
close_files() { # RUN RUN GATES: so many gates a token
    local file
    files "$1" > files.first && files "$2" | cmp - files.first || fail "$2 has other files: $(files "$2")"
    while read -r file; do
        flat "$1/deltas/$file" > first && flat "$2/deltas/$file" > second
        cut -d' ' -f1-2 first > names && cut -d' ' -f1-2 second | cmp - names || fail "$2/deltas/$file has other shapes"
        paste -d' ' first second | LC_ALL=C awk -v near=$near -v gates="$3" '
            function apart(a, b) { return a < b ? b - a : a - b }
            function bad(what) { print what; wrong = 1; exit 1 }
            { name = $1 " " $2; i = n[name]++; a[name, i] = $3; b[name, i] = $6; groups[$1] }
            $2 ~ /^(original_shape|rank|source|distance|step|layer|format_version)$/ && $3 != $6 { bad(name) }
            $2 ~ /^gate_(mean|deviation|least|most)$/ && apart($3, $6) > near { bad(name " " $3 " " $6) }
            END {
                if (wrong) exit 1
                delete groups["/"]
                for (g in groups) {
                    T = n[g " U"] / 32; r = n[g " sigma"]; norm = a[g " norm", 0]; all = moved = square = 0
                    if (T != 48 || r != 32 || n[g " gate_histogram"] != 32) exit 1
                    for (i = 0; i < 32; i++) {
                        all += b[g " gate_histogram", i]
                        moved += apart(a[g " gate_histogram", i], b[g " gate_histogram", i])
                        if (apart(a[g " sigma", i], b[g " sigma", i]) > near * norm) bad(g " sigma")
                    }
                    if (all != T * gates || moved > all / 50) bad(g " " all " gates, moved " moved)
                    for (t = 0; t < T; t++) for (j = 0; j < 32; j++) {
                        x = 0
                        for (k = 0; k < r; k++)
                            x += a[g " U", t * r + k] * a[g " sigma", k] * a[g " Vt", k * 32 + j] - b[g " U", t * r + k] * b[g " sigma", k] * b[g " Vt", k * 32 + j]
                        square += x ^ 2
                    }
                    if (!(apart(norm, b[g " norm", 0]) <= near * norm && sqrt(square) <= near * norm)) bad(g " difference " sqrt(square) / norm)
                    groups_done++
                }
                exit !groups_done
            }' || fail "$2/deltas/$file is not $1's"
    done < files.first
}

on() { # DATA.TENSOR.PIPELINE[.CONTEXT] DIRECTORY [OPTION …]
    local mesh=$1 directory=$2 data tensor pipeline context
    shift 2
    IFS=. read -r data tensor pipeline context <<< "$mesh"
    context=${context:-1}
    rm -rf "$directory"
    expect 0 train $((data * tensor * pipeline * context)) "$directory" --set mesh.data="$data" --set mesh.tensor="$tensor" \
        --set mesh.pipeline="$pipeline" --set mesh.context="$context" "$@"
}

both=(--set delta_store.interval=2 --set delta_store.ratio=1 --set train.steps=3 --set model.delta.stage_steps=0)
for kind in "bottleneck 8" "full 32" "adaptive 4"; do
    set -- $kind
    options=("${both[@]}" --set model.delta.kind="$1")
    on 1.1.1 "kind_$1" "${options[@]}"
    for mesh in 2.1.1 1.2.1 1.1.2 2.2.2; do
        on $mesh mesh "${options[@]}"
        close_files "kind_$1" mesh "$2"
    done
    on 1.2.1 mesh "${options[@]}" --set mesh.delta=connection
    close_files "kind_$1" mesh "$2"
    case $1 in # rows of whole sequences in their order, whoever computes them
        bottleneck) on 2.1.1.2 mesh "${options[@]}" ;;
        full) on 1.2.1.2 mesh "${options[@]}" --set mesh.context_exchange=ring ;;
        adaptive) on 1.1.1.4 mesh "${options[@]}" ;;
    esac
    close_files "kind_$1" mesh "$2"
    memory_as_planned mesh
done
on 1.2.2 mesh "${both[@]}" --set mesh.interleave=2 --set mesh.sequence_parallel=true
close_files kind_bottleneck mesh 8

# Where sources are whole anyway, a mesh's training does not change either.
on 2.2.2 mesh --set mesh.narrow_sources=false
on 2.2.2 mesh_stored --set mesh.narrow_sources=false "${store[@]}"
same_training mesh mesh_stored

# -------------------------------------------------------------------------------------------- failures
# A file is where the directory should be: warned of at every store, nothing else changes.
mkdir unfit && touch unfit/deltas
expect 0 train 1 unfit "${store[@]}"
same_training plain unfit
[ "$(grep -c '^warning: step [0-9]*: 3 of 3 differences are not stored: layer 1: .*Not a directory' unfit.log)" -eq 3 ] || fail "no warnings: $(cat unfit.log)"
[ "$(lines delta_store_failed unfit | grep -c '"connections":3,"layer":1,"reason":".*Not a directory')" -eq 3 ] || fail "no events: $(cat unfit/metrics.jsonl)"
[ -z "$(stored unfit)" ] || fail "stored after all: $(stored unfit)"

# One layer on another rank than the first cannot be written: the rest is stored; where that will not do, all ranks end after the
# same step with a checkpoint, and go on once it can.
mesh=(--set mesh.tensor=2 --set mesh.pipeline=2)
expect 0 train 4 whole "${store[@]}" "${mesh[@]}"
for required in false true; do
    mkdir -p $required/deltas/step_00000005/layer_003.h5/inside
    status=0
    [ $required = false ] || status=1
    expect $status train 4 $required "${store[@]}" "${mesh[@]}" --set delta_store.required=$required 2> /dev/null
    lines delta_store_failed $required | grep -q '"step":5,"connections":1,"layer":3,"reason":"rank 2 on .*layer_003.h5 cannot be written: ' ||
        fail "no event: $(cat $required/metrics.jsonl)"
    [ -e $required/deltas/step_00000005/layer_002.h5 ] || fail "layer 2 is not stored"
    [ -z "$(find $required/deltas -name '.*')" ] || fail "something is left: $(find $required/deltas)"
done
same_training whole false
grep -q '^warning: step 5: 1 of 3 differences is not stored: layer 3: rank 2' false.log || fail "no warning: $(cat false.log)"
[ "$(grep '^gdn: ' true.log | grep -vc '^gdn: note: ')" -eq 1 ] && grep -q '^gdn: step 5: 1 of 3 differences is not stored: layer 3: rank 2' true.log ||
    fail "not one message: $(cat true.log)"
done=$(lines step true | grep -c .)
[ "$done" -ge 6 ] && [ "$(cat true/checkpoints/latest)" = "$(printf 'step_%08d' "$done")" ] || fail "no checkpoint after the failure: $(cat true.log)"
rm -r true/deltas/step_00000005/layer_003.h5
expect 0 train 4 true "${store[@]}" "${mesh[@]}" --set delta_store.required=true
same_training whole true

# Training that diverges does so as before, and what could not be stored is told of.
expect 5 train 1 diverged "${store[@]}" --set train.lr=1e30 --set train.schedule=constant --set train.warmup_steps=0 --set delta_store.interval=1 2> /dev/null
lines delta_store_failed diverged | grep -q 'NaN or infinite' || fail "not told of: $(tail -3 diverged/metrics.jsonl)"
