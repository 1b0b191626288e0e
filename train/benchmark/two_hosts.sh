# Sourced by hosts.sh and by tests: two hosts on one machine, network namespaces with a name and a core of their own, joined by a bridge; Open MPI goes
# between them over TCP, as between machines.
#
#   hosts_up                      makes them; 1 with a word why on standard error where that cannot be. In a folder of one's own, which gets a file `agent`
#   hosts_rate RATE               each sends at that rate at most, from then on: what `tc` calls one, 500mbit. What was not sent in the 200 microseconds
#                                 before may be sent at once, but for 16 KiB at least
#   rate_bytes RATE [PART]        such a rate in bytes a second, or that part of it
#   on_host HOST COMMAND …        on that host, 1 or 2, without mpirun
#   on_hosts RANKS COMMAND …      by mpirun, one rank on one host, or half of them on each
#   hosts_down                    takes them away
hosts=gdn$$ hosts_net=10.213.77
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

hosts_down() {
    for host in 1 2; do
        ip link del "$hosts-v$host" 2> /dev/null || true
        ip netns del "$hosts-$host" 2> /dev/null || true
    done
    ip link del "$hosts" 2> /dev/null || true
}

hosts_up() {
    local host tool
    [ "$(id -u)" -eq 0 ] || { echo "not root" >&2; return 1; }
    for tool in ip tc unshare taskset; do command -v $tool > /dev/null || { echo "$tool is not installed (iproute2, util-linux)" >&2; return 1; }; done
    [ "$(env -u OMP_NUM_THREADS nproc)" -ge 2 ] || { echo "two hosts need two cores" >&2; return 1; }
    ip link add "$hosts" type bridge && ip addr add $hosts_net.254/24 dev "$hosts" && ip link set "$hosts" up || return 1
    for host in 1 2; do
        ip netns add "$hosts-$host" && ip link add "$hosts-v$host" type veth peer name net0 netns "$hosts-$host" || return 1
        ip link set "$hosts-v$host" master "$hosts" up
        ip -n "$hosts-$host" addr add $hosts_net.$host/24 dev net0
        ip -n "$hosts-$host" link set net0 up
        ip -n "$hosts-$host" link set lo up
    done
    # What mpirun starts its daemons with, in place of ssh: on the host of an address, under its name, on its core.
    cat > agent << AGENT
#!/bin/bash
host=\${1##*.}
shift
exec ip netns exec $hosts-\$host unshare --uts taskset -c \$((host - 1)) bash -c 'hostname '$hosts_net.\$host'; eval "\$*"' agent "\$*"
AGENT
    chmod +x agent
}

rate_bytes() { LC_ALL=C awk -v rate="$1" -v part="${2:-1}" 'BEGIN { printf "%.0f\n", rate * (rate ~ /gbit/ ? 1e9 : 1e6) / 8 * part }'; }

hosts_rate() {
    local host burst
    burst=$(rate_bytes "$1" 200e-6)
    [ "$burst" -gt 16384 ] || burst=16384
    for host in 1 2; do
        tc -n "$hosts-$host" qdisc replace dev net0 root tbf rate "$1" burst "$burst" latency 100ms || return 1
        # What is larger than the bucket would be cut into frames by the cores that compute: a card does that itself.
        ip -n "$hosts-$host" link set net0 gso_max_size $((burst * 3 / 4 < 65536 ? burst * 3 / 4 : 65536)) || return 1
    done
}

on_host() { ip netns exec "$hosts-$1" taskset -c $(($1 - 1)) "${@:2}"; }

on_hosts() {
    local list=$hosts_net.1:$((($1 + 1) / 2))
    [ "$1" -eq 1 ] || list=$list,$hosts_net.2:$(($1 / 2))
    mpirun --mca plm_rsh_agent "$PWD/agent" --mca oob_tcp_if_include $hosts_net.0/24 --mca btl self,tcp --mca btl_tcp_if_include $hosts_net.0/24 --bind-to none \
        -x OMP_NUM_THREADS -np "$1" --host "$list" "${@:2}"
}
