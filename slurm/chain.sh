#!/usr/bin/env bash
# shellcheck disable=SC2006 # common.sh says why
# A chain of jobs, one after the other, for clusters where jobs are short or may not requeue themselves:
#   sbatch --account=A --partition=P --job-name=mine slurm/chain.sh CONFIG.yaml [OPTION of gdn train …]
#
# Every link submits the next before it trains (--dependency=singleton: that waits for all jobs of the same name and user, so
# give each chain a name of its own), so that the chain survives the loss of a node too, and takes it back when the run is finished or
# cannot go on, or this link is cancelled. Account, partition, nodes, tasks, cores, GPUs, memory and time limit of the first link
# hold for all.
#   GDN_LINKS          at most so many links (default 100)
#   GDN_CHAIN_OPTIONS  more options of sbatch for the later links: "--signal=B:USR2@600 --constraint=h200"
# Status 10: GDN_IDLE links in a row (default 2) have added no checkpoint. The others, and more variables: slurm/common.sh.
#SBATCH --job-name=gdn-chain
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4        # ranks of each node; with GPUs, one for each
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR2@300        # seconds that the longest step and a checkpoint need together
#SBATCH --no-requeue
#SBATCH --output=%x-%j.out
set -euo pipefail
# Slurm runs a copy: what belongs to the script lies beside the one that was submitted.
script=$(scontrol show job -o "${SLURM_JOB_ID:-none}" 2> /dev/null | sed -nE '1s#.* Command=(/[^ ]+).*#\1#p') || script=
if [ -z "${GDN_HOME:-}" ] && [ -r "${script%/*}/common.sh" ]; then GDN_HOME=${script%/*}/..; fi
. "${GDN_HOME:-${SLURM_SUBMIT_DIR:-$(dirname "$0")/..}}/slurm/common.sh"

# What sbatch was told of this job, as far as it holds for the next. GDN_CHAIN_OPTIONS goes before what the job has.
like_this() {
    local record value other=" ${GDN_CHAIN_OPTIONS:-}"
    local -a more
    record=`gdn_ask scontrol show job -o "$gdn_job"` || gdn_fail "scontrol tells nothing of job $gdn_job"
    field() { sed -nE "s/.* $1=([^ ]*).*/\1/p" <<< " $record"; }
    words=(--job-name="$SLURM_JOB_NAME" --partition="$SLURM_JOB_PARTITION" --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_NTASKS"
        --time="`field TimeLimit`")
    [ -z "${SLURM_JOB_ACCOUNT:-}" ] || words+=(--account="$SLURM_JOB_ACCOUNT")
    [ -z "${SLURM_NTASKS_PER_NODE:-}" ] || words+=(--ntasks-per-node="$SLURM_NTASKS_PER_NODE")
    [ -z "${SLURM_CPUS_PER_TASK:-}" ] || words+=(--cpus-per-task="$SLURM_CPUS_PER_TASK")
    [ -z "${SLURM_CPUS_PER_GPU:-}" ] || words+=(--cpus-per-gpu="$SLURM_CPUS_PER_GPU")
    if [[ $other != *" --gres"* && $other != *" --gpus"* && $other != *" -G"* ]]; then gpus; fi
    if [[ $other != *" --mem"* ]]; then memory; fi
    read -ra more <<< "$other"
    words+=(${more[@]+"${more[@]}"})
}

# A field's gres:gpu:h200:2 (gres/gpu:h200=2 in later versions) as options have it: gpu:h200:2.
resources() { field "$1" | sed -E 's#(^|,)(cpu|mem|node)=[^,]*##g; s#^,##; s#gres[:/]##g; s#=#:#g'; }

gpus() {
    value=`field TresPerSocket`
    [ -z "$value" ] ||
        gdn_fail "GPUs per socket ($value) cannot be asked for again: name the GPUs of the later links in GDN_CHAIN_OPTIONS, --gres=…"
    value=`resources TresPerNode`
    [ -z "$value" ] || words+=(--gres="$value")
    value=`resources TresPerJob`
    [ -z "$value" ] || words+=(--gpus="${value//gpu:/}")
    value=`resources TresPerTask`
    [ -z "$value" ] || words+=(--gpus-per-task="${value//gpu:/}")
}

memory() {
    local option=--mem
    value=`field MinMemoryNode`
    if [ -n "`field MemPerTres`" ]; then
        option=--mem-per-gpu value=`resources MemPerTres` value=${value##*:}
    elif [ -n "`field MinMemoryCPU`" ]; then
        option=--mem-per-cpu value=`field MinMemoryCPU`
    fi
    [[ $value =~ ^[0-9]+[KMGT]?$ ]] ||
        gdn_fail "the job's memory, '$value', cannot be asked for again: name that of the later links in GDN_CHAIN_OPTIONS, --mem=…"
    words+=("$option=$value")
}

# Preempted or out of time, so that the next link has the rest to do; a job that a person has cancelled gives no reason.
put_out() {
    local record
    case $gdn_status in 0 | 2 | 4 | 5) return 1 ;; esac
    [ ! -e "$GDN_RUN/hold" ] || return 1
    record=`gdn_ask scontrol show job -o "$gdn_job"` || return 0
    [[ $record != *" JobState=RUNNING "* ]] || return 1
    [[ $record != *" Reason=None "* || $record == *" PreemptTime=2"* ]]
}

submit_next() { # sets $next, empty where this is the last link
    local -a words
    next=
    if [ "$link" -ge "${GDN_LINKS:-100}" ]; then return; fi
    like_this
    next=`GDN_CHAIN_LINK=$((link + 1)) sbatch --parsable --dependency=singleton --export=ALL "${words[@]}" \
        "$GDN_HOME/slurm/chain.sh" "$@"` || gdn_fail "the next link cannot be submitted"
    next=${next%%;*}
    gdn_say "link $link; the next is job $next"
}

gdn_begin "$@"
link=${GDN_CHAIN_LINK:-1}
if [ "$link" -gt 1 ]; then gdn_stop_idle; fi
submit_next "$@"
# Whatever this link ends with, the next stays only where it has something to do.
goes_on=
trap '[ -n "$goes_on" ] || [ -z "$next" ] || scancel "$next"' EXIT
gdn_train gdn_srun
if gdn_continues || put_out; then
    goes_on=1
    [ -n "$next" ] || gdn_say "the last of $link link(s): submit again to go on"
fi
exit "$gdn_status"
