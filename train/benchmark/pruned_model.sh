# Sourced by prune.sh, prune_training.sh and exits.sh, NAME [CORPUS]: gdn and corpus, runs/NAME as working directory, and their model.
# One thread a rank. GDN names the program (default build/gdn).
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gdn=${GDN:-$source/build/gdn}
corpus=$(cd "${2:-$source/corpus/reference}" && pwd)
mkdir -p "$source/runs/$1"
cd "$source/runs/$1"
export OMP_NUM_THREADS=1

halves() { # folders choose and judge: every second file of the validation data to choose by, the others to judge by
    local turn=0 file
    mkdir -p choose judge
    for file in "$corpus"/validation/*.txt; do
        turn=$((1 - turn))
        if [ $turn -eq 1 ]; then ln -sf "$file" judge/; else ln -sf "$file" choose/; fi
    done
}

# Twelve layers of width 96 with 38 connections.
model() { # FILE TRAIN: writes a configuration with these keys of train beside those of all
    cat > "$1" <<YAML
model:
  vocab_size: 257
  hidden_size: 96
  num_layers: 12
  num_heads: 4
  intermediate_size: 256
  delta: {distances: [1, 2, 3, 4], hidden: 24, gate_hidden: 12}
train: {steps: 800, batch_size: 8, sequence_length: 96, lr: 3.0e-3, min_lr_ratio: 0.1, warmup_steps: 60, $2}
data: {train: $corpus/train/*.txt, validation: $corpus/validation/*.txt}
YAML
}
