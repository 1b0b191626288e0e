# shellcheck shell=bash
# A Slurm of its own for a test, sourced: munged, slurmctld and one slurmd for each of several "nodes", all on this machine as this user, in
# one private directory and on free ports. Services of the system are neither needed nor touched.
#   cluster_up NODES CPUS   sets $cluster and exports SLURM_CONF; nodes n1, n2, … with so many CPUs each (more than there are, if wanted) and
#                           two "cards"
#   cluster_down            cancels all jobs and ends every process of the cluster; does nothing where there is none

cluster='' # the directory

# The first of COUNT consecutive ports that nothing listens on.
free_ports() {
    local count=$1 first port
    for _ in $(seq 50); do
        first=$((20000 + (RANDOM % 1100) * 10))
        for ((port = first; port < first + count; port++)); do
            if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then continue 2; fi
        done
        echo "$first"
        return
    done
    return 1
}

cluster_configure() { # NODES CPUS
    local port host user
    port=$(free_ports $(($1 + 1))) || return 1
    host=$(hostname -s)
    user=$(id -un)
    cat > "$cluster/slurm.conf" << END
ClusterName=gdn-test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool/%n
SlurmctldPidFile=$cluster/pid/slurmctld
SlurmdPidFile=$cluster/pid/slurmd-%n
SlurmctldLogFile=$cluster/log/slurmctld
SlurmdLogFile=$cluster/log/slurmd-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0,defer
MpiDefault=pmix
TmpFS=$cluster/tmp/%n
TaskProlog=$cluster/prolog.sh
ReturnToService=2
SlurmdTimeout=30
SlurmctldTimeout=60
InactiveLimit=0
KillWait=30
MinJobAge=600
JobRequeue=1
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=n[1-$1] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + $1))] CPUs=$2 RealMemory=2000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
END
    touch "$cluster"/card{0,1} # never opened
    echo "Name=gpu File=$cluster/card[0-1]" > "$cluster/gres.conf"
    # Open MPI's shared memory of ranks on different "nodes" must not meet.
    cat > "$cluster/prolog.sh" << END
#!/bin/bash
echo "export OMPI_MCA_btl_vader_backing_directory=$cluster/shm/\$SLURMD_NODENAME"
echo "export OMPI_MCA_btl_tcp_if_include=lo"
END
    chmod +x "$cluster/prolog.sh"
}

cluster_up() {
    local n
    cluster=$(mktemp -d /tmp/gdn-slurm.XXXXXX) # short: sockets lie in it
    mkdir "$cluster"/{state,log,spool,pid,tmp,shm}
    export SLURM_CONF=$cluster/slurm.conf
    for ((n = 1; n <= $1; n++)); do mkdir "$cluster"/{spool,tmp,shm}/n$n; done
    dd if=/dev/urandom of="$cluster/munge.key" bs=1024 count=1 status=none
    chmod 400 "$cluster/munge.key"
    munged --key-file="$cluster/munge.key" --socket="$cluster/munge.socket" --pid-file="$cluster/pid/munged" \
        --log-file="$cluster/log/munged" --seed-file="$cluster/munge.seed" --force --num-threads=2 || return 1
    cluster_configure "$@" || return 1
    slurmctld -c || return 1
    for ((n = 1; n <= $1; n++)); do slurmd -N "n$n" || return 1; done
    for _ in $(seq 150); do
        [ "$(sinfo -h -t idle -o %D 2> /dev/null)" != "$1" ] || return 0
        sleep 0.2
    done
    echo "the nodes do not come up: $(sinfo 2>&1)" >&2
    return 1
}

cluster_down() {
    local file pid
    local -a pids=()
    [ -n "$cluster" ] || return 0
    if [ -n "$(squeue -h 2> /dev/null || true)" ]; then
        scancel --full --signal=KILL --user="$(id -un)" 2> /dev/null || true
        scancel --user="$(id -un)" 2> /dev/null || true
        for _ in $(seq 80); do
            if [ -z "$(squeue -h 2> /dev/null || true)" ]; then break; fi
            sleep 0.25
        done
    fi
    for file in "$cluster"/pid/slurmd-* "$cluster"/pid/slurmctld "$cluster"/pid/munged; do
        if [ -r "$file" ]; then pids+=("$(cat "$file")"); fi
    done
    for pid in ${pids[@]+"${pids[@]}"}; do kill "$pid" 2> /dev/null || true; done
    for _ in $(seq 40); do # they finish what they are at
        for pid in ${pids[@]+"${pids[@]}"}; do
            if kill -0 "$pid" 2> /dev/null; then sleep 0.25; continue 2; fi
        done
        break
    done
    for pid in ${pids[@]+"${pids[@]}"}; do kill -KILL "$pid" 2> /dev/null || true; done
    rm -rf "$cluster"
    cluster=''
}
