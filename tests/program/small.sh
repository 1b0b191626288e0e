# Sourced by the scripts that test training: a model and data small enough for seconds, and ways to run them.
#   small.yaml, text.txt   in the current directory
#   train RANKS DIRECTORY [OPTION …]   trains on so many ranks; output in DIRECTORY.log
#   expect STATUS COMMAND …            fails unless the command ends with that status
#   refused WORDS COMMAND …            fails unless the command ends with status 2, one message that has the words, and no output
#   refused_run WORDS RANKS CONFIG OPTION …   the same of training on so many ranks, which leaves no directory
#   lines EVENT DIRECTORY              metrics lines of an event, without what depends on the clock
#   equal RUN RUN                      fails unless two runs' metrics and checkpoints are the same to the last bit
#   close_to TOLERANCE KEY EVENT RUN RUN   fails unless a value is the same in both runs' lines within a relative TOLERANCE;
#                                      $losses and $norms are what float sums in another order may do to losses and norms
#   memory_as_planned RUN              fails unless the rank that needs most has reserved what was planned, to the byte
#   bytes_as_planned STEP RUN          fails unless what rank 0 counts as handed over in that step is what plan.json, of gdn plan --json,
#                                      has; leaves that in `planned`, a line "AXIS":BYTES for each axis
set -euo pipefail
export OMP_NUM_THREADS=1 # models this small gain nothing from threads

exec 3>&2 # where failures are told, also from commands whose output goes elsewhere
fail() { echo "FAILED: $*" >&3; exit 1; }
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT # a failed script leaves no run behind

expect() {
    local want=$1 got=0
    shift
    "$@" || got=$?
    [ "$got" -eq "$want" ] || fail "status $got instead of $want: $*"
}

refused() {
    expect 2 "${@:2}" > out 2> err
    [ ! -s out ] && [ "$(grep '^gdn: ' err | grep -vc '^gdn: note: ')" -eq 1 ] || fail "${*:2}: $(cat out err)"
    grep -qF -e "$1" err || fail "'$1' is missing: ${*:2}: $(cat err)"
}

refused_run() {
    refused "$1" mpirun --oversubscribe -n "$2" "$GDN" train "$3" --run-dir refused "${@:4}"
    [ ! -e refused ] || fail "a refused run left a directory: ${*:3}"
}

train() {
    local ranks=$1 directory=$2 status=0
    shift 2
    mpirun --oversubscribe -n "$ranks" "$GDN" train small.yaml --run-dir "$directory" "$@" > "$directory.log" 2>&1 || status=$?
    [ $status -eq 0 ] || sed 's/^/    /' "$directory.log" >&2
    return $status
}

lines() { # every line has its clock values behind the others, but model_flops_utilization
    { grep "\"event\":\"$1\"" "$2/metrics.jsonl" || true; } |
        sed -E 's/,"communication_[a-z]*":\{[^}]*\}//g; s/,"(tokens_per_second|step_seconds|seconds|stall_seconds|time|model_flops_utilization)":[^,}]*//g'
}

equal() { # RUN RUN: metrics and checkpoints, to the last bit
    for event in step eval; do
        lines $event "$1" > first && lines $event "$2" > second
        [ -s first ] || fail "$1 has no $event lines"
        cmp first second || fail "$event lines of $2 differ from $1"
    done
    expect 0 "$GDN" checkpoint diff "$1" "$2" > diff
}

# Losses of two runs, relative difference: float sums in another order, fed back through 50 steps of training, stay well
# below 1e-5, double ones below 1e-11 (a wrong scale or a lost sample gives 1e-3 at the first step). A gradient's norm is
# that of a vector, of which more is rounding.
if "$GDN" --version | grep -q float64; then losses=1e-11 norms=1e-10; else losses=1e-5 norms=1e-4; fi
close_to() { # compares each event's KEY
    lines "$3" "$4" > first && lines "$3" "$5" > second
    [ -s first ] || fail "$4 has no $3 lines"
    paste -d'\n' first second | LC_ALL=C awk -v tolerance="$1" -v key="\"$2\":" '
        { at = index($0, key); value = substr($0, at + length(key)) + 0 }
        NR % 2 { first = value; next }
        { d = (value - first) / first; d = d < 0 ? -d : d; if (d > worst) worst = d }
        END { if (NR % 2 || worst > tolerance) { print "relative difference " worst; exit 1 } }' ||
        fail "$5 differs from $4 in $2"
}

{ for i in $(seq 1 60); do tail -c +"$i" "$SOURCE/tests/program/words.txt"; seq "$i" 7 200; done; } > text.txt

# Everything that changes over a run does so here within 40 steps: a connection is introduced, the regulariser's weights
# move, the learning rate warms up and falls.
cat > small.yaml <<'YAML'
model:
  vocab_size: 257
  hidden_size: 32
  num_layers: 3
  num_heads: 2
  intermediate_size: 48
  delta: {distances: [1, 2], hidden: 8, gate_hidden: 4, stage_steps: 15, regularizer: adaptive}
train:
  steps: 40
  batch_size: 12
  sequence_length: 16
  lr: 0.003
  warmup_steps: 5
  eval_interval: 10
  eval_batches: 4
data:
  train: text.txt
  validation_fraction: 0.1
YAML

memory_as_planned() {
    grep '"event":"memory"' "$1/metrics.jsonl" | LC_ALL=C awk '
        function bytes(key) { return match($0, "\"" key "\":[0-9]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) : "none" }
        BEGIN { parts = split("weights gradients optimizer activations sources communication workspace checkpoint sum", part, " ") }
        {
            for (i = 1; i <= parts; i++) {
                planned = bytes("planned_" part[i]); reserved = bytes("reserved_" part[i])
                if (planned == "none" || planned != reserved) { print part[i] ": " reserved " bytes reserved, " planned " planned"; exit 1 }
            }
        }
        END { if (!NR) exit 1 }' > memory || fail "memory of $1: $(cat memory)"
}

axis_bytes() { grep -o '"communication_bytes":{[^}]*}' | head -1 | grep -oE '"[a-z]+":[0-9]+' | sort; }

bytes_as_planned() {
    grep -o '"rank":0,.*' plan.json | axis_bytes > planned
    grep "\"event\":\"step\",\"step\":$1," "$2/metrics.jsonl" | axis_bytes > counted
    cmp counted planned || fail "$2: a step counts $(paste -sd' ' counted), the plan has $(paste -sd' ' planned)"
}
