#!/usr/bin/env bash
# What a backward pass computes again changes no bit: recompute.sh [some]. On every mesh, losses, norms, evaluations and final tensors with
# each setting equal those of the same mesh without. some: one model on each mesh, in turn, and few steps.
. "$SOURCE/tests/program/eight_layers.sh"
some=${1:+1}
[ -z "$some" ] || fewer_steps

settings=("recompute=selective" "recompute=full" "recompute=none recompute_delta=selective" "recompute=none recompute_delta=full"
    "recompute=full recompute_delta=none recompute_every=3" "recompute=selective recompute_every=2 recompute_delta=full recompute_delta_every=4")

# memory_of CONFIG OPTION …: MiB of the rank that needs most
memory_of() {
    "$GDN" plan "$@" --json | grep -o '"memory":{[^}]*}' | LC_ALL=C awk '
        { all = 0; gsub(/[^0-9,]/, ""); n = split($0, part, ","); for (i = 1; i <= n; i++) all += part[i]; if (all > most) most = all }
        END { printf "%.6f\n", most / 1073741824 }'
}

against_none() { # MESH [OPTION …]
    local mesh=$1 name setting word options chosen=$models
    shift
    [ -z "$some" ] || in_turn $some
    for name in $chosen; do
        rm -rf kept
        on "$mesh" $name kept "$@"
        for setting in "${settings[@]}"; do
            options=()
            for word in $setting; do options+=(--set "train.$word"); done
            rm -rf again
            on "$mesh" $name again "$@" "${options[@]}"
            equal kept again
        done
    done
}

against_none 1.1.1
[ -z "$some" ] || against_none 1.1.1 # another model
settings=("recompute=full" "recompute=selective recompute_delta=selective recompute_every=3")
models="mean attention heads full adaptive learned"
[ -n "$some" ] || models="$models plain"
for mesh in 2.1.1 1.2.1 1.1.2 2.2.2 1.1.4; do against_none $mesh; done
against_none 1.1.2 --set mesh.interleave=2
against_none 1.2.2 --set mesh.sequence_parallel=true --set mesh.interleave=2
models="mean" against_none 1.2.1 --set mesh.delta=connection
[ -n "$some" ] || models="mean" against_none 4.2.2

# Chosen by memory: half of what the connections and layers of `mean` can give back is needed.
for mesh in 1.1.1 1.2.2; do
    IFS=. read -r data tensor pipeline <<< "$mesh"
    options=(--set mesh.data="$data" --set mesh.tensor="$tensor" --set mesh.pipeline="$pipeline")
    most=$(memory_of mean.yaml "${options[@]}") least=$(memory_of mean.yaml "${options[@]}" --set train.recompute=full)
    middle=$(LC_ALL=C awk -v most="$most" -v least="$least" 'BEGIN { print (most + least) / 2 }')
    rm -rf kept again
    on $mesh mean kept
    on $mesh mean again --set train.recompute=auto --set train.memory="$middle"
    equal kept again
    got=$(memory_of mean.yaml "${options[@]}" --set train.recompute=auto --set train.memory="$middle")
    LC_ALL=C awk -v got="$got" -v least="$least" -v middle="$middle" 'BEGIN { exit !(got <= middle && got >= least) }' ||
        fail "auto on $mesh plans $got GiB where $middle are allowed ($least to $most)"
done

# A run that cannot fit says so before it creates anything.
expect 2 "$GDN" train mean.yaml --run-dir refused --set train.memory=0.0001 --set train.recompute=auto > refused.log 2>&1
[ ! -e refused ] || fail "a refused run left a directory"
grep -q "train.memory" refused.log || fail "unexpected: $(cat refused.log)"
[ "$(wc -l < refused.log)" -le 8 ] || fail "too many words: $(cat refused.log)"
