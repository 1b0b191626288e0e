# shellcheck shell=bash disable=SC2006
# What the batch scripts have in common; sourced by them inside a job.
#
#   gdn_begin CONFIG.yaml [OPTION …]   names the run, loads modules, reports the environment, checks it
#   gdn_train LAUNCHER                 trains, handing on requests to stop; sets $gdn_status
#   gdn_continues                      whether the run is to go on after that status; ends the job where it has made no progress
#   gdn_requeue                        goes back to the queue and ends this start
#   LAUNCHER is gdn_srun or gdn_mpirun
#
# Variables, all optional; set them before sbatch, or with sbatch --export=ALL,NAME=VALUE:
#   GDN_HOME           the folder in which slurm/ lies, a source tree or PREFIX/share/gdn (default: that of the submitted
#                      script)
#   GDN_PROGRAM        the program (default: $GDN_HOME/build/gdn, the installed one beside these scripts, or gdn in PATH; in a container: gdn)
#   GDN_CARDS          each (default): one rank for each GPU that sbatch was asked for, and a job without GPUs on nodes that have
#                      some is refused; any: as many ranks as tasks, whatever the GPUs
#   GDN_RUN            the run directory, which all nodes see (default: runs/NAME for NAME.yaml)
#   GDN_CHECK          0: no `gdn check` before training
#   GDN_IDLE           starts in a row that may end without a new checkpoint (default 2)
#   GDN_MPI            srun's --mpi (default pmix; `srun --mpi=list` says what there is)
#   GDN_GRACE          seconds that mpirun leaves ranks before TERM, and again before KILL (default 15: together Slurm's usual KillWait)
#   GDN_MODULES_LOAD   environment modules to load, "openmpi/4.1 hdf5/1.14-mpi"
#   GDN_CONTAINER      an image to run the program in
#   GDN_CONTAINER_TOOL apptainer (default), or pyxis, which is srun's own --container-image
#   GDN_CONTAINER_OPTIONS  more words for it: "--nv --bind /scratch", "--container-mounts=/scratch:/scratch"
#
# A job ends with gdn's status (0 finished, 1 internal error, 2 bad input, 4 nothing saved, 5 diverged), or
#   3    stopped on request, and RUN/hold says that it shall stay so; or at train.stop_at; or the job cannot be requeued
#   10   GDN_IDLE starts in a row have added no checkpoint
#   127  there is no srun or mpirun
#   128+n  the job was cancelled
# It goes on after 3, and where a rank was killed by a signal (128+n, n at most 64).
#
# What a command prints is taken by `…` here and in what sources this, as signals are awaited: bash 5.2.15, of Debian 12, reads
# the words of a trap as a part of the other form, or of <(…), if the signal comes while it expands one, and ends what it was doing.

# The names of Slurm's variables are those of a job: the script run by hand has none of them.
[ -n "${SLURM_JOB_ID:-}" ] || { echo "slurm: $0 is a batch script, submit it: sbatch [OPTION …] $0 CONFIG.yaml [OPTION of gdn train …]" >&2; exit 2; }
# A task of an array by its own number: that of the last task is the whole array's too.
gdn_job=$SLURM_JOB_ID
if [ -n "${SLURM_ARRAY_JOB_ID:-}" ]; then gdn_job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID; fi

gdn_say() { echo "slurm: $*"; }
gdn_fail() { echo "slurm: $*" >&2; exit 2; }

# ---------------------------------------------------------------------------------------- environment

# What a command of Slurm's answers; it is asked again where the controller is busy for a moment. Fails where it remains so.
gdn_ask() {
    local answer pause
    for pause in 1 2 3 4 0; do
        if answer=`SLURM_TIME_FORMAT=standard "$@" 2> /dev/null` && [ -n "$answer" ]; then
            echo "$answer"
            return
        fi
        sleep $pause || true
    done
    return 1
}

# When Slurm will end this job, for gdn (train.time_limit). Nothing for a job without a limit.
gdn_tell_end() {
    local end
    unset GDN_END_TIME # of the job that submitted this one
    end=`gdn_ask squeue -h -j "$gdn_job" -o %e` || end=
    [[ $end == 20* ]] || return 0
    GDN_END_TIME=`date -d "$end" +%s`
    export GDN_END_TIME
}

gdn_load_modules() {
    [ -n "${GDN_MODULES_LOAD:-}" ] || return 0
    local init status=0
    # Code of others, which is not written for these: an unset variable would end the job without a word.
    set +euo pipefail
    for init in /etc/profile.d/{modules,lmod,z00_lmod}.sh; do
        # shellcheck disable=SC1090
        if ! declare -F module > /dev/null && [ -r "$init" ]; then . "$init"; fi
    done
    declare -F module > /dev/null || gdn_fail "GDN_MODULES_LOAD is '$GDN_MODULES_LOAD', but this node has no command 'module'"
    # shellcheck disable=SC2086
    module load $GDN_MODULES_LOAD || status=$?
    set -euo pipefail
    [ "$status" -eq 0 ] || gdn_fail "modules '$GDN_MODULES_LOAD' cannot be loaded"
}

# Of a source tree, of an installation (PREFIX/bin beside PREFIX/share/gdn), or whatever PATH has.
gdn_built_or_installed() {
    local program
    for program in "$GDN_HOME/build/gdn" "$GDN_HOME/../../bin/gdn" "`command -v gdn || true`"; do
        if [ -x "$program" ]; then echo "$program"; return; fi
    done
    echo "$GDN_HOME/build/gdn"
}

# How many ranks each node gets, $gdn_ranks, and cores for each, $gdn_cores; both empty where tasks are as sbatch was told.
gdn_find_ranks() {
    local tasks=${SLURM_NTASKS_PER_NODE:-} gpus=${SLURM_GPUS_ON_NODE:-0} there
    gdn_ranks='' gdn_cores=${SLURM_CPUS_PER_TASK:-}
    case "${GDN_CARDS:-each}" in
        any) return 0 ;;
        each) ;;
        *) gdn_fail "GDN_CARDS is '$GDN_CARDS': each or any is expected" ;;
    esac
    [[ $tasks =~ ^[0-9]+$ ]] || tasks=$(((${SLURM_NTASKS:-1} + ${SLURM_JOB_NUM_NODES:-1} - 1) / ${SLURM_JOB_NUM_NODES:-1}))
    if [ "$gpus" -eq 0 ]; then
        there=`gdn_ask scontrol show node -o "${SLURMD_NODENAME:-none}" | sed -nE 's/.* Gres=([^ ]*gpu[^ ]*).*/\1/p'` || there=
        [ -z "$there" ] ||
            gdn_fail "this job has no GPU, but its nodes have ($there): sbatch --gpus-per-node=N, or GDN_CARDS=any to train on their processors"
    elif [ "$gpus" -gt "$tasks" ]; then
        gdn_fail "this job has $gpus GPUs but $tasks task(s) on a node: sbatch --ntasks-per-node=$gpus, one rank for each GPU, or GDN_CARDS=any"
    elif [ "$gpus" -lt "$tasks" ]; then
        gdn_ranks=$gpus gdn_cores=${SLURM_CPUS_PER_GPU:-$((${gdn_cores:-1} * tasks / gpus))}
        gdn_say "$gpus GPU(s) and $tasks tasks on a node: $gdn_ranks rank(s) there, one for each GPU, with $gdn_cores core(s) each"
    fi
}

# The program with whatever goes before it: gdn_program [words], launch_options [srun's words].
gdn_find_program() {
    local -a more
    read -ra more <<< "${GDN_CONTAINER_OPTIONS:-}"
    launch_options=()
    if [ -z "${GDN_CONTAINER:-}" ]; then
        [ -n "${GDN_PROGRAM:-}" ] || GDN_PROGRAM=`gdn_built_or_installed`
        [ -x "$GDN_PROGRAM" ] || gdn_fail "$GDN_PROGRAM is not there to be run: build or install it, or set GDN_PROGRAM or GDN_HOME"
        gdn_program=("$GDN_PROGRAM")
        return
    fi
    case "${GDN_CONTAINER_TOOL:-apptainer}" in
        apptainer)
            command -v apptainer > /dev/null || gdn_fail "GDN_CONTAINER is set, but this node has no apptainer"
            gdn_program=(apptainer exec ${more[@]+"${more[@]}"} "$GDN_CONTAINER" "${GDN_PROGRAM:-gdn}")
            ;;
        pyxis)
            gdn_program=("${GDN_PROGRAM:-gdn}")
            launch_options=(--container-image="$GDN_CONTAINER" --container-workdir="$PWD" ${more[@]+"${more[@]}"})
            ;;
        *) gdn_fail "GDN_CONTAINER_TOOL is '$GDN_CONTAINER_TOOL': apptainer or pyxis is expected" ;;
    esac
}

gdn_report() {
    local until
    gdn_say "job $SLURM_JOB_ID (${SLURM_JOB_NAME:-}), start ${SLURM_RESTART_COUNT:-0}, `date '+%F %T'`"
    gdn_say "nodes $SLURM_JOB_NODELIST, tasks ${SLURM_NTASKS:-1} (${SLURM_TASKS_PER_NODE:-1} a node), cores ${SLURM_CPUS_PER_TASK:-1} a task, GPUs ${SLURM_GPUS_ON_NODE:-0} a node"
    gdn_say "program ${gdn_program[*]}"
    gdn_say "run $GDN_RUN, at `gdn_latest`"
    if [ -n "${GDN_END_TIME:-}" ]; then
        until=`date -d "@$GDN_END_TIME" '+%F %T'` || until=$GDN_END_TIME
        gdn_say "time until $until"
    fi
    gdn_say "open files `ulimit -n`, locked memory `ulimit -l`, file size `ulimit -f`"
}

# ------------------------------------------------------------------------------------------- progress

# The newest checkpoint, "none" before the first.
gdn_latest() {
    local latest=none
    if [ -r "$GDN_RUN/checkpoints/latest" ]; then read -r latest < "$GDN_RUN/checkpoints/latest" || true; fi
    echo "$latest"
}

# RUN/starts.log has a line for every start: when, which job, and the checkpoint that it began at. So many starts before
# now began at the present one; a start by hand ("submitted") begins to count anew.
gdn_idle_starts() {
    [ -e "$GDN_RUN/starts.log" ] || { echo 0; return; }
    awk -v latest="`gdn_latest`" '
        $2 == "submitted" { idle = 0 }
        { idle = $NF == latest ? idle + 1 : 0 }
        END { print idle + 0 }' "$GDN_RUN/starts.log"
}

gdn_note_start() {
    local how=submitted
    if gdn_is_continued; then how=continued; fi
    mkdir -p "$GDN_RUN"
    if [ $how = continued ]; then gdn_stop_idle; fi
    echo "`date +%FT%T` $how job $SLURM_JOB_ID start ${SLURM_RESTART_COUNT:-0} at `gdn_latest`" >> "$GDN_RUN/starts.log"
}

# Whether this run has another checkpoint than when it was submitted: then it goes on from that, whatever its options said of the start.
gdn_has_gone_on() {
    [ -e "$GDN_RUN/starts.log" ] || return 1
    awk -v latest="`gdn_latest`" '$2 == "submitted" { at = $NF } END { exit !(at != "" && at != latest) }' "$GDN_RUN/starts.log"
}

gdn_is_continued() { [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || [ -n "${GDN_CHAIN_LINK:-}" ]; }

# Whether this start has come to train.stop_at, where each further one would stop at once.
gdn_is_there() {
    local last
    [ -n "$gdn_trained" ] || return 1
    last=`grep -E '"event":"(stop|signal)"' "$GDN_RUN/metrics.jsonl" 2> /dev/null | tail -n 1` || last=
    [[ $last == *'"reason":"train.stop_at"'* ]]
}

gdn_stop_idle() {
    local idle
    idle=`gdn_idle_starts`
    [ "$idle" -ge "${GDN_IDLE:-2}" ] || return 0
    gdn_say "no progress: $idle start(s) in a row began at `gdn_latest` and added no checkpoint; not going on" >&2
    exit 10
}

# ------------------------------------------------------------------------------------------- launching

gdn_need() { command -v "$1" > /dev/null || { gdn_say "there is no $1 on $HOSTNAME: $2" >&2; exit 127; }; }

# Whether a status says that a signal killed a rank. Others above 128 are a launcher's or a container's own, 255 mostly.
gdn_is_killed() { [ "$1" -gt 128 ] && [ "$1" -le 192 ]; }

gdn_srun() {
    gdn_need srun "Slurm's commands must be in PATH there"
    local -a ranks=()
    if [ -n "$gdn_cores" ]; then
        ranks=(--cpus-per-task="$gdn_cores")
        unset SLURM_CPUS_PER_GPU # srun would have both; it remains for a chain's next link
    fi
    if [ -n "$gdn_ranks" ]; then ranks+=(--ntasks="$((gdn_ranks * SLURM_JOB_NUM_NODES))" --ntasks-per-node="$gdn_ranks"); fi
    exec srun --mpi="${GDN_MPI:-pmix}" --kill-on-bad-exit=1 ${ranks[@]+"${ranks[@]}"} \
        ${launch_options[@]+"${launch_options[@]}"} "${gdn_program[@]}" "$@"
}

gdn_mpirun() {
    [ ${#launch_options[@]} -eq 0 ] || gdn_fail "GDN_CONTAINER_TOOL=pyxis needs srun; use apptainer, or multi.sh"
    gdn_need mpirun "load its module (GDN_MODULES_LOAD), or use multi.sh"
    # It takes these seconds after a stop with status 3 too, when the first rank has left. (With orte_abort_on_non_zero_status=0 it does
    # not, but then it ends with 0 whatever the ranks ended with.)
    export OMPI_MCA_odls_base_sigkill_timeout="${GDN_GRACE:-15}"
    local -a ranks=(-n "$SLURM_NTASKS")
    if [ -n "$gdn_ranks" ]; then ranks=(-n "$((gdn_ranks * SLURM_JOB_NUM_NODES))" --map-by "ppr:$gdn_ranks:node"); fi
    # It would bind each of one or two ranks to a single core, threads and all.
    exec mpirun --bind-to none "${ranks[@]}" "${gdn_program[@]}" "$@"
}

# Runs a command beside this shell, so that signals are answered at once, and gives its status. USR2 and TERM are handed on
# as USR2: srun answers TERM by killing all ranks.
gdn_pass() {
    local status interrupted
    "$@" &
    gdn_child=$!
    # A signal before this line had nobody to go to.
    [ -z "$gdn_asked" ] || kill -USR2 "$gdn_child" 2> /dev/null || true
    while :; do
        gdn_interrupted='' status=0
        wait "$gdn_child" || status=$?
        interrupted=$gdn_interrupted
        # More than 128 is a trapped signal's, or the command's own: waiting again tells which.
        if [ "$status" -le 128 ] || [ -z "$interrupted" ]; then break; fi
    done
    gdn_child=
    return "$status"
}

gdn_hand_on() {
    gdn_interrupted=1 gdn_asked=$1
    gdn_say "signal $1: asking the run to stop, `date +%T`"
    if [ -n "$gdn_child" ]; then kill -USR2 "$gdn_child" 2> /dev/null || true; fi
}
gdn_child='' gdn_asked=''
trap 'gdn_hand_on USR2' USR2
trap 'gdn_hand_on TERM' TERM

# ------------------------------------------------------------------------------------------- the parts

gdn_need_config() {
    [ $# -ge 1 ] || gdn_fail "a configuration is missing: sbatch [OPTION …] SCRIPT CONFIG.yaml [OPTION of gdn train …]"
}

gdn_begin() {
    gdn_need_config "$@"
    gdn_config=$1
    shift
    gdn_options=("$@")
    GDN_HOME=${GDN_HOME:-$SLURM_SUBMIT_DIR}
    local name=${gdn_config##*/}
    GDN_RUN=${GDN_RUN:-runs/${name%.yaml}}
    gdn_load_modules
    gdn_find_program
    gdn_find_ranks
    gdn_tell_end
    gdn_report
}

gdn_train() {
    local -a command=("$gdn_config" --run-dir "$GDN_RUN" ${gdn_options[@]+"${gdn_options[@]}"})
    gdn_status=0 gdn_trained=
    if gdn_is_continued && gdn_has_gone_on; then command+=(--resume auto); fi # behind a --resume PATH or none of the first start
    if [ -z "$gdn_asked" ] && [ "${GDN_CHECK:-1}" != 0 ]; then gdn_pass "$1" check "${command[@]}" || gdn_status=$?; fi
    if [ "$gdn_status" -ne 0 ] && ! gdn_is_killed "$gdn_status"; then
        gdn_say "the environment check ended with status $gdn_status"
        return
    fi
    gdn_note_start
    # Asked to stop during the check already, or a rank was lost in it: a start without progress.
    [ "$gdn_status" -eq 0 ] || return 0
    if [ -n "$gdn_asked" ]; then gdn_status=3; return; fi
    gdn_trained=1
    gdn_pass "$1" train "${command[@]}" || gdn_status=$?
    gdn_say "training ended with status $gdn_status at `gdn_latest`, `date '+%F %T'`"
}

gdn_continues() {
    if [ "$gdn_status" -ne 3 ] && ! gdn_is_killed "$gdn_status"; then return 1; fi
    if [ "$gdn_status" -eq 3 ] && [ -e "$GDN_RUN/hold" ]; then
        gdn_say "$GDN_RUN/hold is there: not going on; remove it and submit again to do so"
        return 1
    fi
    if [ "$gdn_status" -eq 3 ] && gdn_is_there; then
        gdn_say "the run is at train.stop_at: not going on; submit again with another to do so"
        return 1
    fi
    # Cancelled, preempted or out of time: what becomes of the job is decided already.
    local state
    state=`gdn_ask squeue -h -j "$gdn_job" -o %T` || state=RUNNING # as far as anybody knows
    if [ "$state" != RUNNING ]; then
        gdn_say "the job is $state: not going on by itself"
        return 1
    fi
    gdn_stop_idle
}

gdn_requeue() {
    local second
    gdn_say "back to the queue"
    gdn_asked=
    # A TERM to all of the job's processes may end the command when its request has been granted.
    scontrol requeue "$gdn_job" || [ -n "$gdn_asked" ] || { gdn_say "the job cannot be requeued; submit it again to go on" >&2; exit "$gdn_status"; }
    # Until Slurm ends this start, by a TERM that may already have come: one long sleep begun after it would last until the KILL.
    for ((second = 0; second < 600; second++)); do
        if [ -n "$gdn_asked" ]; then break; fi
        sleep 1 || true
    done
    exit 3
}
