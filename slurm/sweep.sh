#!/usr/bin/env bash
# Several runs that differ in a few settings, as a job array with one run for each line of a text file:
#   sbatch --account=A --partition=P --array=0-3 --export=ALL,GDN_SWEEP=sweep.txt slurm/sweep.sh CONFIG.yaml [OPTION of gdn train …]
#
# Index 0 is the file's first line; blank lines and those that begin with # do not count. A line has one or more KEY=VALUE, without
# spaces in them, for gdn's --set:
#   train.lr=0.001
#   train.lr=0.003 model.delta.distances=[1,2]
# Runs go to GDN_RUN/0, GDN_RUN/1, … (default: runs/NAME/0, …). Each goes on like those of single.sh. More variables: slurm/common.sh.
#SBATCH --job-name=gdn-sweep
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1        # ranks of each run; with GPUs, one for each
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR2@300        # seconds that the longest step and a checkpoint need together
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%A_%a.out
set -euo pipefail
# Slurm runs a copy: what belongs to the script lies beside the one that was submitted.
script=$(scontrol show job -o "${SLURM_JOB_ID:-none}" 2> /dev/null | sed -nE '1s#.* Command=(/[^ ]+).*#\1#p') || script=
if [ -z "${GDN_HOME:-}" ] && [ -r "${script%/*}/common.sh" ]; then GDN_HOME=${script%/*}/..; fi
. "${GDN_HOME:-${SLURM_SUBMIT_DIR:-$(dirname "$0")/..}}/slurm/common.sh"

gdn_need_config "$@"
index=${SLURM_ARRAY_TASK_ID:-}
[ -n "$index" ] || gdn_fail "this is an array script: sbatch --array=0-3 …"
[ -r "${GDN_SWEEP:-}" ] || gdn_fail "GDN_SWEEP is '${GDN_SWEEP:-}': a file with one line of KEY=VALUE for each index is expected"
lines=()
while IFS= read -r line || [ -n "$line" ]; do
    [[ $line =~ ^[[:space:]]*(#|$) ]] || lines+=("$line")
done < "$GDN_SWEEP"
[ "$index" -lt ${#lines[@]} ] || gdn_fail "index $index: $GDN_SWEEP has ${#lines[@]} line(s), for indices from 0 on"
read -ra pairs <<< "${lines[index]}"
settings=()
for pair in "${pairs[@]}"; do settings+=(--set "$pair"); done

name=${1##*/}
GDN_RUN=${GDN_RUN:-runs/${name%.yaml}}/$index

gdn_begin "$@" "${settings[@]}"
gdn_say "index $index: ${lines[index]}"
gdn_train gdn_srun
if gdn_continues; then gdn_requeue; fi
exit "$gdn_status"
