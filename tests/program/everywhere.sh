# Sourced after eight_layers.sh by scripts of parts of a model.
#   everywhere NAME   NAME.yaml, which has run alone as NAME: every mesh trains as one rank does, what is computed again and a stopped run that goes
#                     on change no bit, it goes on over another mesh, memory and bytes are the plan's, and it generates; with activations kept in
#                     bf16 it begins with the same loss, nothing that is computed again changes a bit.
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

everywhere() {
    local name=$1 mesh
    local -a divided=(--set mesh.sequence_parallel=true)
    memory_as_planned "$name"
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
    on 1.1.1 "$name" "${name}_kept" --set train.activations=bf16
    [ "$(first_loss "${name}_kept")" = "$(first_loss "$name")" ] || fail "${name}_kept: first $(first_loss "${name}_kept"), in fp32 $(first_loss "$name")"
    ! cmp -s <(lines step "$name") <(lines step "${name}_kept") || fail "${name}_kept: gradients are those of fp32"
    memory_as_planned "${name}_kept"
    for again in "selective --set train.recompute_delta=full" "full --set train.recompute_every=2 --set train.recompute_delta=selective"; do
        rm -rf "${name}_kept_again"
        # shellcheck disable=SC2086
        on 1.1.1 "$name" "${name}_kept_again" --set train.activations=bf16 --set train.recompute=$again
        equal "${name}_kept" "${name}_kept_again"
    done
    expect 3 "$GDN" train "$name.yaml" --run-dir "${name}_again" --set train.stop_at=7 > again.log 2>&1
    cp -r "${name}_again" "${name}_moved"
    expect 0 "$GDN" train "$name.yaml" --run-dir "${name}_again" >> again.log 2>&1
    equal "$name" "${name}_again"
    expect 0 mpirun --oversubscribe -n 2 "$GDN" train "$name.yaml" --run-dir "${name}_moved" --set mesh.tensor=2 >> again.log 2>&1
    close "$name" "${name}_moved"
    expect 0 "$GDN" generate "$name" --prompt the --length 30 > text
    [ -s text ] || fail "$name: no text"
}
