#!/usr/bin/env bash
# signals.sh: signals that come while a batch script says what it does, hundreds of them, end nothing and are each answered. No Slurm is needed.
export SLURM_JOB_ID=1 SLURM_JOB_NODELIST=none SLURM_SUBMIT_DIR=$PWD GDN_RUN=run GDN_END_TIME=0
rounds=40
cat > job.sh <<SH
set -euo pipefail
. "$SOURCE/slurm/common.sh"
gdn_program=(gdn)
for ((round = 0; round < $rounds; round++)); do
    gdn_report
    gdn_note_start
done
echo "all \$round rounds"
SH
bash job.sh > said 2> errors &
job=$! sent=0
until [ -s said ]; do sleep 0.01; done # its traps are set
while kill -USR2 $job 2> /dev/null; do
    sent=$((sent + 1))
    sleep 0.002
done
status=0
wait $job || status=$?
answered=$(grep -c 'signal USR2: asking the run to stop' said) || true
[ $status -eq 0 ] && [ "$(tail -n 1 said)" = "all $rounds rounds" ] && [ ! -s errors ] && [ "$(wc -l < run/starts.log)" -eq $rounds ] ||
    { echo "FAILED: status $status after $sent signals, $(wc -l < run/starts.log) of $rounds rounds: $(tail -n 1 said); $(head -n 3 errors)"; exit 1; }
# Signals of a kind that come at once are one.
[ "$answered" -ge 20 ] || { echo "FAILED: $answered of $sent signals were answered"; exit 1; }
echo "$answered answers to $sent signals"
