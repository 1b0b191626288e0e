#!/usr/bin/env bash
# gdn's own rules between layers (model.rules): rule_kinds.sh [each|streams]. Some together, with `each` every one alone, or one that has several streams: a run
# begins with the loss of the same model without them, every mesh trains as one rank does, what is computed again and a stopped run that goes on change no bit,
# memory and bytes are the plan's, and it generates.
. "$SOURCE/tests/program/eight_layers.sh"
. "$SOURCE/tests/program/everywhere.sh"
fewer_steps

# A kind or form joins these lists: few, of many entries, for each is some ten runs. The second model has delta connections too.
stream=("{kind: lane}" "{kind: mix, sources: [embedding, 1], distances: [2, 4]}" "{kind: mix, form: gated, from: both, distances: [1, 3], hidden: 5}" "{kind: dense, dilation: 3, channels: [key, value]}" "{kind: dense, place: head, form: dynamic, hidden: 3}" "{kind: value}" "{kind: value, form: embedding, layers: [0, 3, 6]}")
beside=("{kind: mix, place: value, distances: [3], layers: [2, 5, 7]}" "{kind: mix, form: gated, place: after, from: added, distances: [1, 4], groups: 2, period: 2}" "{kind: dense, form: dynamic, channels: [query, key, value], period: 2, hidden: 5}"
    "{kind: value, sources: [2], distances: [1, 4], layers: [3, 5, 7], period: 2}" "{kind: value, form: residual}" "{kind: depth_attention, block: 3}" "{kind: depth_attention, place: value, block: 4}")

# Several residual streams, which a rule has for itself.
alone=("{kind: hyper, streams: 2}" "{kind: hyper, form: dynamic, mixing: doubly_stochastic}")

check() { # NAME MODEL ENTRY …
    local name=$1 model=$2 list
    shift 2
    printf -v list '%s, ' "$@"
    sed "s/^  num_heads.*/&\n  rules: [${list%, }]/" "$model.yaml" > "$name.yaml"
    on 1.1.1 "$name" "$name"
    [ -e "$model" ] || on 1.1.1 "$model" "$model"
    [ "$(first_loss "$name")" = "$(first_loss "$model")" ] || fail "$name: first $(first_loss "$name"), without rules $(first_loss "$model")"
    ! cmp -s <(lines step "$name") <(lines step "$model") || fail "$name: rules do not learn"
    everywhere "$name"
}

if [ -z "${1:-}" ]; then
    check some plain "${stream[@]}"
    check more heads "${beside[@]}"
elif [ "$1" = streams ]; then
    check streams plain "${alone[1]}"
else
    number=0
    for entry in "${stream[@]}" "${beside[@]}" "${alone[@]}"; do check alone_$((++number)) plain "$entry"; done
fi
