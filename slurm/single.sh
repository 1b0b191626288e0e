#!/usr/bin/env bash
# Trains on one node: sbatch --account=A --partition=P slurm/single.sh CONFIG.yaml [OPTION of gdn train …]
#
# Asked to stop (USR2 300 s before the time limit, TERM, or a file RUN/stop) it saves a checkpoint, goes back to the queue and
# continues from there; likewise after the loss of a rank. What it is told by: slurm/README.md and the head of slurm/common.sh.
#SBATCH --job-name=gdn
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4        # ranks of each node; with GPUs, one for each
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR2@300        # seconds that the longest step and a checkpoint need together
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.out
set -euo pipefail
# Slurm runs a copy: what belongs to the script lies beside the one that was submitted.
script=$(scontrol show job -o "${SLURM_JOB_ID:-none}" 2> /dev/null | sed -nE '1s#.* Command=(/[^ ]+).*#\1#p') || script=
if [ -z "${GDN_HOME:-}" ] && [ -r "${script%/*}/common.sh" ]; then GDN_HOME=${script%/*}/..; fi
. "${GDN_HOME:-${SLURM_SUBMIT_DIR:-$(dirname "$0")/..}}/slurm/common.sh"

gdn_begin "$@"
gdn_train gdn_srun
if gdn_continues; then gdn_requeue; fi
exit "$gdn_status"
