# Sourced by the scripts that train on many meshes: models of eight layers that differ in all that connections can be, and
# ways to run and compare them.
#   NAME.yaml, $models                 see below
#   on MESH MODEL DIRECTORY [OPTION …] trains on DATA.TENSOR.PIPELINE ranks
#   close RUN RUN                      they are the same but for the order of sums
#   fewer_steps                        12 of them, in which the same happens: connections introduced, evaluations, the rate's rise
#   in_turn COUNT                      sets $chosen to so many of $models, the next at each call: all are had where calls are many
. "$SOURCE/tests/program/small.sh"

# In floats, `normalize` divides by norms of differences that may be close to 0: a gradient that is suddenly three times as
# large as before has lost some digits.
if "$GDN" --version | grep -q float32; then norms=1e-3; fi

# Eight layers, so that a stage may have one; four heads, for four tensor ranks; 257 tokens, which nothing divides. Over 20
# steps connections are introduced, regularisers change and gradients are clipped.
cat > base.yaml <<'YAML'
model:
  vocab_size: 257
  hidden_size: 16
  num_layers: 8
  num_heads: 4
  intermediate_size: 24
train: {steps: 20, batch_size: 16, micro_batch_size: 2, sequence_length: 9, lr: 0.003, warmup_steps: 5,
        grad_clip: 0.7, eval_interval: 10, eval_batches: 8}
mesh: {small: 100, bucket: 3000}
data: {train: text.txt, validation_fraction: 0.1}
YAML

# model NAME DELTA [TIED [CONFIG LINE]]: NAME.yaml with these connections. Every kind and aggregate is somewhere, distances that
# span three stages, the embedding as a source, stages of introduction, regularisers, tied embeddings.
models=
model() {
    models="$models $1"
    sed "s/^  intermediate_size.*/&\n  tie_embeddings: ${3:-false}\n  delta: {$2, hidden: 8, gate_hidden: 4}/" base.yaml > "$1.yaml"
}
model plain "distances: []" true
model mean "distances: [1, 2, 4, 7], aggregate: mean, embedding_source: true, stage_steps: 5, regularizer: adaptive" true
model attention "distances: [1, 3, 6], aggregate: attention, attention_dim: 3, embedding_source: true, regularizer: fixed"
model learned "distances: [1, 2, 5], aggregate: learned, normalize: true, stage_steps: 7, regularizer: adaptive"
model heads "distances: [2, 3], aggregate: multihead, attention_heads: 4"
model full "distances: [1, 4], kind: full, aggregate: mean, normalize: true, regularizer: fixed" true
model full_heads "distances: [1, 2, 6], kind: full, aggregate: multihead, attention_heads: 4, embedding_source: true"
model adaptive "distances: [1, 2, 4], kind: adaptive, aggregate: attention, attention_dim: 3, normalize: true, regularizer: fixed"
model listed "distances: [], edges: [[0, -1], [2, 1], [3, 2], [3, 0], [3, -1], [6, 1], [7, 6], [7, 3], [7, -1]], aggregate: mean, regularizer: adaptive"
model adaptive_learned "distances: [3, 7], kind: adaptive, aggregate: learned, embedding_source: true, stage_steps: 4" true

# Some cap their logits and have all terms of the loss; a term's own value is compared where it is there.
sed -i 's/^  num_heads: 4$/&\n  logit_softcap: 1.5/; s/grad_clip: 0.7/&, z_loss: 0.02/; s/, hidden: 8/, l1_weight: 0.0005&/' \
    learned.yaml adaptive.yaml plain.yaml

fewer_steps() {
    sed -i 's/\bsteps: 20/steps: 12/; s/warmup_steps: 5/warmup_steps: 3/; s/eval_interval: 10/eval_interval: 6/; s/stage_steps: 5/stage_steps: 3/
        s/stage_steps: 7/stage_steps: 4/' ./*.yaml
}

turn=0
in_turn() {
    local -a all
    read -ra all <<< "$models"
    chosen=
    for ((i = 0; i < $1 && i < ${#all[@]}; i++)); do chosen="$chosen ${all[turn++ % ${#all[@]}]}"; done
}

on() {
    local mesh=$1 config=$2 directory=$3 data tensor pipeline status=0
    shift 3
    IFS=. read -r data tensor pipeline <<< "$mesh"
    [ ! -e "$directory" ] || fail "$directory is there already"
    timeout 400 mpirun --oversubscribe -n $((data * tensor * pipeline)) "$GDN" train "$config.yaml" --run-dir "$directory" --set mesh.data="$data" \
        --set mesh.tensor="$tensor" --set mesh.pipeline="$pipeline" "$@" > "$directory.log" 2>&1 || status=$?
    [ $status -eq 0 ] || fail "status $status on mesh $mesh of $config $*: $(cat "$directory.log")"
}

close() { # RUN RUN: but for the order of sums
    close_to $losses loss step "$1" "$2"
    close_to $norms grad_norm step "$1" "$2"
    close_to $losses loss eval "$1" "$2"
}
