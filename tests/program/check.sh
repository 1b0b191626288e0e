#!/usr/bin/env bash
# gdn check: what it tells of fit ranks, each thing that can be unfit, and that it leaves nothing behind.
# shellcheck disable=SC2016
. "$SOURCE/tests/program/small.sh"

check() { # RANKS LOG [OPTION …]
    local ranks=$1 log=$2 status=0
    shift 2
    mpirun --oversubscribe -n "$ranks" "$GDN" check small.yaml "$@" > "$log" 2> "$log.errors" || status=$?
    return $status
}
row() { grep -qE -- "^$2 +$3" "$1" || fail "no row '$2  $3' in: $(cat "$1" "$1.errors")"; }
unfit() { # LOG ROWS PATTERN: so many rows are unfit, of which the message names one thus
    [ "$(grep -c UNFIT "$1")" -eq "$2" ] || fail "not $2 unfit: $(cat "$1" "$1.errors")"
    [ "$(grep -c '^gdn: [^n]' "$1.errors")" -eq 1 ] || fail "not one message: $(cat "$1.errors")"
    grep -q "unfit for the run in $2 of" "$1.errors" || fail "$(cat "$1.errors")"
    grep -q -- "$3" "$1.errors" || fail "no '$3' in: $(cat "$1.errors")"
}

here() { find . -mindepth 1 | sort; }
here > before
echo ./before >> before
expect 0 check 4 four.log --set mesh.tensor=2 --run-dir new/runs/four
row four.log ranks "4 on 1 node: .* 4$"
row four.log mesh "data 2 x tensor 2 x pipeline 1; tensor within .*, data within"
row four.log devices "cpu: "
row four.log threads "1 a rank"
row four.log "data axis" "[0-9.]+ .B/s a rank, [0-9.]+ .B/s in sums of 64 KiB; [0-9]+ us a sum; slowest at rank [0-3]$"
row four.log "tensor axis" "[0-9.]+ .B/s a rank"
row four.log clocks "at most 0\.[0-9]{6} s apart \(rank [1-3], \+- 0\.[0-9]{6} s\)"
row four.log data readable
row four.log memory "[0-9.]+ MiB on rank 0, of [0-9]+ MiB"
row four.log directory "new/runs/four: all ranks see it"
row four.log disk "checkpoints of [0-9.]+ MiB, 5 at most, 0.0 MiB there already; [0-9]+ MiB free"
if grep -q "pipeline axis" four.log; then fail "an axis of one rank was measured"; fi
rm four.log four.log.errors
[ "$(here)" = "$(sort -u before)" ] || fail "something was left: $(here)"

# What a checkpoint is said to take is what it takes, and those that are there are not counted twice.
big=(--run-dir big --set model.vocab_size=4000 --set model.hidden_size=128 --set train.steps=3 --set train.warmup_steps=1
    --set checkpoint.interval=1 --set checkpoint.keep=2)
expect 0 "$GDN" train small.yaml "${big[@]}" > big.log
expect 0 check 1 one.log "${big[@]}"
said=$(sed -nE 's/^disk +checkpoints of ([0-9.]+) MiB.*/\1/p' one.log)
size=$(stat -c %s big/checkpoints/step_00000003/checkpoint.h5)
awk -v said="$said" -v size="$size" 'BEGIN { is = size / 1048576; exit !(is <= said + 0.1 && said < is + 2) }' ||
    fail "$said MiB for a checkpoint of $size bytes"
row one.log disk "checkpoints of .*, 4 at most, [1-9][0-9.]* MiB there already"
if grep -qE "axis|clocks" one.log; then fail "one rank has nothing to measure"; fi

# Unfit, each by name, all in one go.
expect 2 check 2 slow.log --least-bandwidth 1e15
unfit slow.log 1 "data axis: .* a rank in sums of 4 MiB, slowest at rank 0; --least-bandwidth asks for"
expect 2 check 1 disk.log --set data.train=nothing.txt --set train.steps=100000000 --set checkpoint.interval=1 --set checkpoint.keep=0
unfit disk.log 2 "checkpoints will take .* MiB more"
grep -q "data: .*nothing.txt" disk.log.errors || fail "$(cat disk.log.errors)"
expect 2 check 2 memory.log --set train.memory=0.001
unfit memory.log 1 "memory: "
: > occupied
expect 2 check 2 file.log --run-dir occupied/run
unfit file.log 1 "occupied/run: Not a directory\|occupied is not a directory"
# Without mpirun, and a limit that MPI's own files keep to.
(ulimit -f 16384 && expect 2 "$GDN" check small.yaml --set model.hidden_size=512 --set model.vocab_size=4000 > limit.log 2> limit.log.errors)
unfit limit.log 1 "the limit of a file's size is 16.0 MiB"

# One rank's clock is wrong, by so much, and this way.
for seconds in 5 -4; do
    status=0
    mpirun --oversubscribe -n 3 bash -c '[ $OMPI_COMM_WORLD_RANK -ne 2 ] || export LD_PRELOAD=$SHIFT SHIFT_CLOCK='$seconds'
        exec "$0" check small.yaml' "$GDN" > clock.log 2> clock.log.errors || status=$?
    [ $status -eq 2 ] || fail "status $status for clocks $seconds s apart"
    if [ $seconds -gt 0 ]; then words="[45]\.[0-9]* s ahead of"; else words="[34]\.[0-9]* s behind"; fi
    unfit clock.log 1 "the clock of rank 2 is $words rank 0's"
done

# Ranks that do not share the run directory: each in a directory of its own of that name.
mkdir at0 at1
status=0
mpirun --oversubscribe -n 2 bash -c 'config=$PWD/small.yaml text=$PWD/text.txt; cd at$OMPI_COMM_WORLD_RANK
    exec "$0" check "$config" --set data.train="$text" --run-dir here' "$GDN" > apart.log 2> apart.log.errors || status=$?
[ $status -eq 2 ] || fail "status $status for ranks in different directories"
unfit apart.log 1 "rank 1 on .*, which rank 0 has written, is not to be seen by this rank: No such file"
[ -z "$(find at0 at1 -mindepth 1)" ] || fail "something was left: $(find at0 at1)"

# What the rest depends on ends it at once; tasks that srun has started without PMIx each believe to be alone.
expect 2 check 3 mesh.log --set mesh.tensor=2
grep -q "mesh.tensor" mesh.log.errors || fail "$(cat mesh.log.errors)"
SLURM_STEP_NUM_TASKS=4 expect 2 "$GDN" check small.yaml 2> alone.log
grep -q "srun has started 4 tasks, but MPI sees this one alone; start them with srun --mpi=pmix" alone.log || fail "$(cat alone.log)"
