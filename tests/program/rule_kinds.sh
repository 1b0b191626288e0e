#!/usr/bin/env bash
# gdn's own rules between layers (model.rules): rule_kinds.sh [each]. Some together, or with `each` every one alone: a run begins with the
# loss of the same model without them, every mesh trains as one rank does, what is computed again and a stopped run that goes on change
# no bit, memory and bytes are the plan's, and it generates.
. "$SOURCE/tests/program/eight_layers.sh"
fewer_steps

# A kind or form joins these lists: few, of many entries, for each is some ten runs. The second model has delta connections too.
stream=("{kind: lane}" "{kind: mix, sources: [embedding, 1], distances: [2, 4]}" "{kind: dense, dilation: 3}" "{kind: value}")
beside=("{kind: mix, place: after, distances: [3], layers: [2, 5, 7]}" "{kind: lane, period: 3}" "{kind: dense, form: dynamic, period: 2, hidden: 5}"
    "{kind: value, sources: [2], distances: [1, 4], layers: [3, 5, 7], period: 2}" "{kind: depth_attention, block: 3}")

first_loss() { lines step "$1" | head -1 | grep -o '"loss":[^,]*'; }

# Of rank 0, in a step and in the plan.
bytes() { grep -o '"communication_bytes":{[^}]*}' | head -1 | grep -oE '"(data|tensor|pipeline)":[0-9]+' | sort; }
bytes_as_planned() { # RUN MODEL OPTION …
    local run=$1 model=$2
    shift 2
    grep '"event":"step","step":1,' "$run/metrics.jsonl" | bytes > counted
    "$GDN" plan "$model.yaml" --flops 1e11 --json "$@" | grep -o '"rank":0,.*' | bytes > planned
    [ "$(wc -l < planned)" -eq 3 ] && cmp -s counted planned || fail "$run: bytes $(paste -sd' ' counted), the plan has $(paste -sd' ' planned)"
}

check() { # NAME MODEL ENTRY …
    local name=$1 model=$2 mesh list
    local -a divided=(--set mesh.sequence_parallel=true)
    shift 2
    printf -v list '%s, ' "$@"
    sed "s/^  num_heads.*/&\n  rules: [${list%, }]/" "$model.yaml" > "$name.yaml"
    on 1.1.1 "$name" "$name"
    memory_as_planned "$name"
    [ -e "$model" ] || on 1.1.1 "$model" "$model"
    [ "$(first_loss "$name")" = "$(first_loss "$model")" ] || fail "$name: first $(first_loss "$name"), without rules $(first_loss "$model")"
    ! cmp -s <(lines step "$name") <(lines step "$model") || fail "$name: rules do not learn"
    for mesh in 2.1.1 1.2.1 1.1.2; do
        on $mesh "$name" "${name}_$mesh"
        close "$name" "${name}_$mesh"
        memory_as_planned "${name}_$mesh"
    done
    on 1.2.2 "$name" "${name}_rows" "${divided[@]}"
    close "$name" "${name}_rows"
    memory_as_planned "${name}_rows"
    bytes_as_planned "${name}_rows" "$name" --set mesh.tensor=2 --set mesh.pipeline=2 "${divided[@]}"
    on 1.2.2 "$name" "${name}_rows_full" "${divided[@]}" --set train.recompute=full
    equal "${name}_rows" "${name}_rows_full"
    on 1.1.1 "$name" "${name}_full" --set train.recompute=full
    equal "$name" "${name}_full"
    memory_as_planned "${name}_full"
    expect 3 "$GDN" train "$name.yaml" --run-dir "${name}_again" --set train.stop_at=7 > again.log 2>&1
    expect 0 "$GDN" train "$name.yaml" --run-dir "${name}_again" >> again.log 2>&1
    equal "$name" "${name}_again"
    expect 0 "$GDN" generate "$name" --prompt the --length 30 > text
    [ -s text ] || fail "$name: no text"
}

if [ -z "${1:-}" ]; then
    check some plain "${stream[@]}"
    check more heads "${beside[@]}"
else
    number=0
    for entry in "${stream[@]}" "${beside[@]}"; do check alone_$((++number)) plain "$entry"; done
fi
