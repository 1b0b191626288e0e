#!/usr/bin/env bash
# The batch scripts of slurm/ on a real Slurm of two "nodes" on this machine: runs that are asked to stop, lose a rank, or are
# cancelled go on by themselves where they should, and end with the tensors and losses of a run that nobody interrupted.
for program in slurmctld slurmd sbatch srun munged; do
    PATH=$PATH:/usr/sbin:/sbin
    command -v $program > /dev/null || { echo "slurm: $program is not installed (train/setup.sh --tests)"; exit 77; }
done
. "$SOURCE/tests/program/small.sh"
. "$SOURCE/tests/slurm/cluster.sh"
interruptions=() # processes, see at()
trap 'status=$?; kill "${interruptions[@]}" 2> /dev/null || true; cluster_down; exit $status' EXIT
trap 'exit 1' TERM INT HUP

# Long enough that no run is over before it has been interrupted, which each is as soon as it has done a fifth.
steps=600
cat >> small.yaml << 'YAML'
checkpoint: {interval: 100}
YAML
sed -i "s/steps: 40/steps: $steps/; s/eval_interval: 10/eval_interval: 200/" small.yaml
export GDN_HOME=$SOURCE GDN_PROGRAM=$GDN GDN_IDLE=3
export GDN_CARDS=any # the "cards" of this cluster are none

submit() { # NAME SCRIPT [OPTION of sbatch …] -- [OPTION of gdn …]: its number in $job
    local name=$1 script=$2
    local -a options=()
    shift 2
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    job=$(GDN_RUN=$name sbatch --parsable --job-name="$name" --time=10 --output="$name.out" "${options[@]}" \
        "$SOURCE/slurm/$script.sh" small.yaml "$@") || fail "$name cannot be submitted"
}

show() { scontrol show job -o "$1" | sed -nE "s/.* $2=([^ ]*).*/\1/p"; }
told() { sed 's/^/    /' "$1.out" >&3; tail -n 20 "$cluster"/log/slurm* >&3; }

logged() { # NAME TEXT: waits until its metrics have it
    for _ in $(seq 600); do
        if grep -qF "$2" "$1/metrics.jsonl" 2> /dev/null; then return; fi
        sleep 0.1
    done
    told "${1//\//_}"
    fail "$1 does not train: there is no $2"
}
trained() { logged "$1" "\"event\":\"step\",\"step\":$2,"; } # NAME STEPS: waits until it has done so many

# When a run has done so many steps, COMMAND …, which interrupts it: beside all else, as no run waits for another one.
at() { # NAME STEPS COMMAND …
    (trained "$1" "$2" && "${@:3}") &
    interruptions+=($!)
}
all_interrupted() {
    local interruption
    for interruption in "${interruptions[@]}"; do wait "$interruption" || exit 1; done # it has told what failed
    interruptions=()
}

# At least so many restarts: on a crowded machine a start may be lost otherwise too, and is made up for in the same way. It is waited for
# as long as a few such starts last, each with a KillWait.
ended() { # NAME JOB STATE STATUS|… [RESTARTS]
    local state='' restarts code
    for _ in $(seq 1500); do
        state=$(show "$2" JobState)
        case $state in COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL) break ;; esac
        sleep 0.2
    done
    restarts=$(show "$2" Restarts)
    code=$(show "$2" ExitCode)
    if [ "$state" != "$3" ] || [[ "|$4|" != *"|${code%:0}|"* ]] || [ "$restarts" -lt "${5:-0}" ]; then
        told "$1"
        fail "$1 (job $2) is $state with $code after $restarts restarts instead of $3 $4:0 after ${5:-0}"
    fi
    echo "$1: $3, status ${code%:0}, restarts $restarts, $SECONDS s"
    if [ "$restarts" -gt "${5:-0}" ]; then echo "$1: one start more than expected:"; grep -iE 'signal|error|status|^\[' "$1.out" || true; fi
}

out_says() { grep -q -- "$2" "$1.out" || { told "$1"; fail "no '$2' from $1"; }; }

# Step, loss and norm of every step, of each the last line.
numbers() {
    sed -nE 's/.*"event":"step","step":([0-9]+),"loss":([^,]*),.*"grad_norm":([^,]*),.*/\1 \2 \3/p' "$1/metrics.jsonl" |
        awk '{ line[$1] = $0 } END { for (s in line) print line[s] }' | sort -n
}

same_as_reference() {
    expect 0 "$GDN" checkpoint diff reference "$1" > diff.out || { cat diff.out >&3; exit 1; }
    numbers reference > wanted
    numbers "$1" > got
    [ "$(wc -l < wanted)" -eq $steps ] || fail "the reference has $(wc -l < wanted) steps"
    cmp -s wanted got || { diff wanted got | head -n 5 >&3; fail "$1: losses differ from the uninterrupted run's"; }
}

events() { grep -c "\"event\":\"$2\"" "$1/metrics.jsonl" || true; }

next_of() { sed -n 's/.*the next is job \([0-9]*\).*/\1/p' "$1.out"; }

kill_rank() { # NAME: its last rank, by SIGKILL, once there is a checkpoint to go on from, which a crowded machine takes a while to write
    local file found='' words
    logged "$1" '"event":"checkpoint"'
    for file in /proc/[0-9]*/cmdline; do
        mapfile -d '' -t words 2> /dev/null < "$file" || continue # it has ended meanwhile
        if [ "${words[*]:0:5}" = "$GDN train small.yaml --run-dir $1" ] && [ "$(readlink "${file%cmdline}cwd")" = "$PWD" ]; then
            found=${file#/proc/} found=${found%/cmdline}
        fi
    done
    [ -n "$found" ] || fail "no rank of $1 is running"
    kill -KILL "$found"
}

cluster_up 2 16 || { tail -n 20 "$cluster"/log/* >&3; fail "no Slurm could be started"; }
two=(--nodes=2 --ntasks-per-node=2)

# Outside Slurm the scripts say what to do.
for script in "single.sh small.yaml" sweep.sh; do
    # shellcheck disable=SC2086
    expect 2 bash "$SOURCE"/slurm/$script 2> by_hand.out
    grep -q "submit it: sbatch" by_hand.out || fail "$script: $(cat by_hand.out)"
done
SLURM_JOB_ID=1 expect 2 bash "$SOURCE/slurm/sweep.sh" 2> by_hand.out
grep -q "a configuration is missing" by_hand.out || fail "sweep.sh: $(cat by_hand.out)"

# Cores as they were asked for each GPU: a chain's next link has the variable, srun has not.
mkdir stand_in
printf '#!/bin/bash\necho "$* ${SLURM_CPUS_PER_GPU:-}"\n' > stand_in/srun
chmod +x stand_in/srun
cores=$(SLURM_JOB_ID=1 SLURM_GPUS_ON_NODE=2 SLURM_NTASKS_PER_NODE=4 SLURM_JOB_NUM_NODES=1 SLURM_CPUS_PER_GPU=8 GDN_CARDS=each PATH=$PWD/stand_in:$PATH \
    bash -c '. "$1"; gdn_find_ranks; launch_options=() gdn_program=(program); echo "$gdn_ranks $gdn_cores $SLURM_CPUS_PER_GPU"; gdn_srun' - "$SOURCE/slurm/common.sh" | tail -n 2)
[ "${cores%%$'\n'*}" = "2 8 8" ] || fail "not 2 ranks with 8 cores: $cores"
[[ ${cores#*$'\n'} == *" --cpus-per-task=8 --ntasks=2 --ntasks-per-node=2 program " ]] || fail "srun is given $cores"

# Back in the queue, a job ends at once, though Slurm's TERM may come before it waits for that, or instead of the command's answer.
for answer in true false; do
    status=0
    SLURM_JOB_ID=1 timeout 60 bash -c '. "$1"; scontrol() { kill -TERM $$; '$answer'; }; gdn_requeue' - "$SOURCE/slurm/common.sh" > requeue.out 2>&1 || status=$?
    [ $status -eq 3 ] || fail "a job that is back in the queue ends with status $status: $(cat requeue.out)"
done

# ------------------------------------------------------------------------------------- all at once
submit reference multi "${two[@]}" --
reference=$job
submit preempted multi "${two[@]}" -- --resume none --data-changed accept # of which the first is for the first start alone, the second not for gdn check
preempted=$job
at preempted 120 scancel --signal=USR2 --batch "$preempted" # as --signal=B:USR2@… does before the time limit
export GDN_CHECK=0 # it takes a while where all start at once

# Stand-ins for the program: one that runs until it is asked to stop, in chains of which one is out of time and one is cancelled; and
# statuses that no signal gave.
mkdir bin
# It waits without a process of its own: begun after a signal to the whole step, that would outlive it and keep its output open, which
# Slurm waits for.
printf '#!/bin/bash\ntrap "exit 3" TERM USR2\nexec 3<> <(:)\necho it waits\nwhile :; do read -rt 1 -u 3; done\n' > bin/waits
printf '#!/bin/bash\nexit 127\n' > bin/exits127
printf '#!/bin/bash\nexit 255\n' > bin/exits255
chmod +x bin/*
GDN_PROGRAM=$PWD/bin/waits GDN_LINKS=2 submit late chain --nodes=1 --ntasks=1 --time=1 --signal=B:CONT@1 --
late=$job
GDN_PROGRAM=$PWD/bin/waits submit dropped chain --nodes=1 --ntasks=1 --
dropped=$job
for status in 127 255; do
    GDN_PROGRAM=$PWD/bin/exits$status submit exits$status single --nodes=1 --ntasks=1 --
    echo "$job" > exits$status.job
done

# As installed, from any folder: the scripts find their program; ranks follow the GPUs of the job, and one without GPUs is told.
cmake --install "$BUILD" --prefix "$PWD/prefix" --component gdn > install.log || fail "cmake --install: $(tail -n 5 install.log)"
installed() { # NAME [OPTION of sbatch …]
    local name=$1
    shift
    job=$(env -u GDN_HOME -u GDN_PROGRAM -u GDN_CARDS GDN_RUN="$name" sbatch --parsable --job-name="$name" --time=10 --nodes=1 --output="$name.out" "$@" \
        prefix/share/gdn/slurm/single.sh small.yaml --set train.steps=5 --set train.eval_interval=0) || fail "$name cannot be submitted"
    echo "$job" > "$name.job"
}
installed cardless
installed few_cards --gpus-per-node=2 --cpus-per-task=2
installed many_cards --gpus-per-node=2 --ntasks-per-node=1

submit halted single --nodes=1 --ntasks=2 -- --set train.stop_at=5
halted=$job
submit killed multi "${two[@]}" --
killed=$job
at killed 120 kill_rank killed
all_interrupted

submit stopped multi "${two[@]}" --
stopped=$job
at stopped 120 touch stopped/stop
# Cancelled by its owner: a checkpoint, but no return.
submit cancelled single --nodes=1 --ntasks=2 --
cancelled=$job
at cancelled 120 scancel "$cancelled"
for _ in $(seq 300); do # a program that has not begun has no status to end with
    if grep -q "it waits" dropped.out 2> /dev/null; then break; fi
    sleep 0.2
done
scancel "$dropped"
all_interrupted

ended reference "$reference" COMPLETED 0
out_says reference "nodes n\[1-2\], tasks 4 (2(x2) a node)"
out_says reference "time until 20"
out_says reference "ranks  *4 on 2 nodes: n1 2, n2 2"
out_says reference "disk  *checkpoints of"

# Without PMIx. Open MPI would take both "nodes" for one and share memory.
OMPI_MCA_btl=self,tcp GDN_GRACE=2 submit mpirun multi-mpirun "${two[@]}" -- --set train.steps=500
mpirun=$job
at mpirun 40 scancel --signal=USR2 --batch "$mpirun"

# A chain whose first link is asked to stop, and one whose links have no time to do a step.
export GDN_CHAIN_OPTIONS="--output=%x.more"
submit chain chain --nodes=1 --ntasks=2 --gres=gpu:1 --mem=300 --
chain=$job
at chain 120 scancel --signal=USR2 --batch "$chain"
submit idle chain --nodes=1 --ntasks=2 --gpus=2 --mem-per-cpu=50 -- --set train.time_limit=0.0001
idle=$job

# Three settings; the program is "in a container", of a stand-in for apptainer, with a module loaded.
cat > bin/apptainer << 'END'
#!/bin/bash
[ "$1 $2 $3 $4 $5" = "exec --nv --bind /scratch image.sif" ] || { echo "apptainer $*"; exit 9; }
shift 5
exec "$@"
END
chmod +x bin/apptainer
printf '# rates\ntrain.lr=0.001\n\n  train.lr=0.002 train.steps=30\ntrain.steps=500\n' > sweep.txt
(
    # shellcheck disable=SC2317
    module() { echo "module $*$nothing_has_set_this"; }
    export -f module
    export PATH=$PWD/bin:$PATH GDN_SWEEP=sweep.txt GDN_CONTAINER=image.sif GDN_CONTAINER_OPTIONS="--nv --bind /scratch" GDN_MODULES_LOAD="mpi/4 hdf5"
    export GDN_CHECK=1
    submit sweep sweep --array=0-2 --output=sweep_%a.out -- --set train.steps=20
    echo "$job" > sweep.job
    submit beyond sweep --array=3 -- # fourth of three
    echo "$job" > beyond.job
)
sweep=$(cat sweep.job)
at sweep/2 40 scancel --signal=USR2 --batch "${sweep}_2" # the last, whose number is the array's too
all_interrupted

# --------------------------------------------------------------------------------------- what became of them
ended preempted "$preempted" COMPLETED 0 1
out_says preempted "signal USR2: asking the run to stop"
out_says preempted "training ended with status 3 at step_"
[ "$(events preempted signal)" -eq 1 ] && [ "$(events preempted resume)" -ge 1 ] || fail "preempted: $(grep -v '"step"' preempted/metrics.jsonl)"
same_as_reference preempted

ended cardless "$(cat cardless.job)" FAILED 2
out_says cardless "this job has no GPU, but its nodes have (gpu:2): sbatch --gpus-per-node=N"
ended many_cards "$(cat many_cards.job)" FAILED 2
out_says many_cards "2 GPUs but 1 task(s) on a node: sbatch --ntasks-per-node=2"
ended few_cards "$(cat few_cards.job)" COMPLETED 0
out_says few_cards "2 GPU(s) and 4 tasks on a node: 2 rank(s) there, one for each GPU, with 4 core(s) each"
out_says few_cards "program $PWD/prefix/share/gdn/slurm/../../../bin/gdn"
out_says few_cards "mesh  *data 2 x"
out_says few_cards "2 ranks on 1 node"

ended killed "$killed" COMPLETED 0 1
out_says killed "training ended with status 137 at step_"
same_as_reference killed

ended stopped "$stopped" COMPLETED 0 1
out_says stopped "training ended with status 3 at step_"
grep -q '"reason":"stop file"' stopped/metrics.jsonl || fail "no event of the stop file"
[ ! -e stopped/stop ] || fail "the stop file is still there"
same_as_reference stopped

ended halted "$halted" FAILED 3
out_says halted "the run is at train.stop_at: not going on"
expect 0 test "$(show "$halted" Restarts)" = 0

ended cancelled "$cancelled" CANCELLED 3
out_says cancelled "signal TERM"
grep -q '"event":"signal"' cancelled/metrics.jsonl || fail "cancelled: no event of the signal"
expect 0 "$GDN" checkpoint verify cancelled > /dev/null

ended mpirun "$mpirun" COMPLETED 0 1
out_says mpirun "training ended with status 3 at step_"
[ "$(events mpirun signal)" -eq 1 ] && [ "$(events mpirun resume)" -ge 1 ] || fail "mpirun: $(grep -v '"step"' mpirun/metrics.jsonl)"
expect 0 test "$(cat mpirun/checkpoints/latest)" = step_00000500

ended chain "$chain" FAILED 3
next=$(next_of chain)
ended chain "$next" COMPLETED 0
for field in TresPerNode MinMemoryNode; do
    [ -n "$(show "$chain" $field)" ] || fail "the first link has no $field"
    expect 0 test "$(show "$next" $field)" = "$(show "$chain" $field)"
done
[ "$(wc -l < chain/starts.log)" -eq 2 ] || fail "chain: $(cat chain/starts.log)"
# Fewer ranks than the reference's add in another order: the same model, but not to the last bit.
"$GDN" checkpoint verify chain > /dev/null || fail "the chain's checkpoint is not whole"
expect 0 test "$(cat chain/checkpoints/latest)" = "$(cat reference/checkpoints/latest)"

ended idle "$idle" FAILED 3
for _ in $(seq 300); do
    if grep -q "no progress" idle.more 2> /dev/null; then break; fi
    sleep 0.2
done
grep -q "no progress: 3 start(s) in a row began at step_00000000" idle.more || { cat idle.out idle.more >&3; fail "the idle chain goes on"; }
last=$(sed -n 's/^slurm: job \([0-9]*\) .*/\1/p' idle.more | tail -n 1)
ended idle "$last" FAILED 10
for field in TresPerJob MinMemoryCPU; do
    [ -n "$(show "$idle" $field)" ] || fail "the first link has no $field"
    expect 0 test "$(show "$last" $field)" = "$(show "$idle" $field)"
done

# A link that was cancelled takes the next with it, one that was out of time does not.
ended dropped "$dropped" CANCELLED 3
expect 0 test "$(show "$(next_of dropped)" JobState)" = CANCELLED
# Out of time, Slurm signals the batch script, srun and the program at once: srun may then end with 255, whatever the program ended with.
ended late "$late" TIMEOUT "3|255"
next=$(next_of late)
expect 1 test "$(show "$next" JobState)" = CANCELLED
scancel "$next"
for status in 127 255; do
    ended exits$status "$(cat exits$status.job)" FAILED $status
    expect 0 test "$(show "$(cat exits$status.job)" Restarts)" -eq 0
done

[ -z "$(squeue -h --name=chain,idle,dropped)" ] || fail "a link was left behind: $(squeue)"

for index in 0 1; do
    ended sweep_$index "${sweep}_$index" COMPLETED 0
    out_says sweep_$index "module load mpi/4 hdf5"
done
ended sweep_2 "${sweep}_2" COMPLETED 0 1
out_says sweep_2 "training ended with status 3 at step_"
expect 0 test "$(cat sweep/2/checkpoints/latest)" = step_00000500
ended beyond "$(cat beyond.job)" FAILED 2
out_says beyond "index 3: sweep.txt has 3 line(s)"
[ "$(cat sweep/0/checkpoints/latest) $(cat sweep/1/checkpoints/latest)" = "step_00000020 step_00000030" ] || fail "sweep: wrong settings"
grep -q "lr: 0.002" sweep/1/config.yaml || fail "sweep: $(grep lr: sweep/1/config.yaml)"

echo "slurm: all done, $SECONDS s"
