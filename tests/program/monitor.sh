#!/usr/bin/env bash
# What a run tells of itself (train/monitor/monitor.h): gates and contributions are the same on every mesh, events come when they
# are due, metrics.prom is there and speaks of the run, across a stop and a resume, and does not end it where it cannot be
# written.
. "$SOURCE/tests/program/small.sh"

number() { # the number behind "KEY": in a line
    sed -E "s/.*\"$1\":([^],}]*).*/\1/"
}
sample() { # the value of a sample of RUN's metrics.prom: its name, and labels besides run
    LC_ALL=C awk -v name="$2{run=\"$(realpath "$1")\"${3:+,}${3:-}}" 'index($0, name " ") == 1 { print $NF }' "$1/metrics.prom" | grep . || fail "$1/metrics.prom has no $2"
}

steps=(--set train.gate_interval=4 --set monitor.interval=5 --set model.delta.regularizer=none)
train 1 one "${steps[@]}"
for mesh in data tensor pipeline; do
    train 2 $mesh "${steps[@]}" --set mesh.$mesh=2 --set train.micro_batch_size=2
done

# Every fourth step, in order, the connections that are introduced by then: distance 2 from step 15 on.
lines gates one | sed -E 's/,"gate".*//' > got
for step in 0 4 8 12; do echo "{\"event\":\"gates\",\"step\":$step,\"layer\":[1,2],\"distance\":[1,1]"; done > wanted
for step in 16 20 24 28 32 36; do
    echo "{\"event\":\"gates\",\"step\":$step,\"layer\":[1,2,2],\"distance\":[1,1,2]"
done >> wanted
diff wanted got || fail "events gates"

# Their mean contribution is what the step's line has as sparsity, of which it is the mean; gates lie between 0 and 1, and
# have learnt something. Other meshes add the same numbers in another order, and train in another order.
flat() { grep -hE '"event":"(gates|step)"' "$1/metrics.jsonl"; }
flat one | LC_ALL=C awk '
    /"event":"step"/ { match($0, /"sparsity":[^,]*/); s = substr($0, RSTART + 11, RLENGTH - 11); next }
    { match($0, /"gate":\[[^]]*/); n = split(substr($0, RSTART + 8, RLENGTH - 8), g, ",")
      match($0, /"contribution":\[[^]]*/); k = split(substr($0, RSTART + 16, RLENGTH - 16), c, ",")
      sum = 0; for (i = 1; i <= k; i++) sum += c[i]
      d = sum / k - s; if (d < 0) d = -d
      for (i = 1; i <= n; i++) if (!(g[i] > 0.3 && g[i] < 0.7) || g[i] == 0.5) bad = 1
      if (n != k || d > 1e-6 * s || bad || ++count == 0) { print; exit 1 } last = sum }
    END { if (count != 10 || last < 1e-4) exit 1 }' || fail "gates and contributions of one"
for mesh in data tensor pipeline; do
    paste -d' ' <(lines gates one | tr -s '[]' '\n' | grep '^[0-9.,e-]*$') \
        <(lines gates $mesh | tr -s '[]' '\n' | grep '^[0-9.,e-]*$') |
        LC_ALL=C awk '{ n = split($1, a, ","); if (split($2, b, ",") != n) exit 1
            for (i = 1; i <= n; i++) { d = a[i] - b[i]; if (d < 0) d = -d; if (d > 1e-3 * a[i] + 1e-9) { print; exit 1 } } }
            END { if (NR < 40) exit 1 }' || fail "gates on two ranks, $mesh"
done

# Figures every five steps, with everything in them.
[ "$(lines monitor one | number step | tr '\n' ' ')" = "4 9 14 19 24 29 34 39 " ] || fail "events monitor"
lines monitor tensor | tail -1 | LC_ALL=C awk '
    !/"step_seconds_p50":.*"step_seconds_p95":.*"step_seconds_p99":.*"goodput":0\.[0-9]+,"connection_share":0\.[0-9]+,/ { exit 1 }
    !/"resident_bytes":[0-9]+,"device_bytes":null,"checkpoint_stall_seconds":[0-9.e-]+,"active_connections":3,/ { exit 1 }
    !/"effective_connections":[12]\.[0-9]+/ { exit 1 }' || { lines monitor tensor | tail -1 >&3; fail "figures"; }

# The file: of a run that goes on (and that nobody tells that it has ended), after the end, after a stop, after a resume.
"$GDN" train small.yaml --run-dir live "${steps[@]}" --set train.steps=1000000 > live.log 2>&1 &
for i in $(seq 600); do
    sleep 0.1
    ! grep -qE '^gdn_step\{run="[^"]*/live"\} [1-9]' live/metrics.prom 2> /dev/null || break
done
kill -9 $!
wait $! 2> /dev/null || true
[ "$(sample live gdn_up)" = 1.0 ] && [ "$(sample live gdn_step)" != 0.0 ] || fail "a run that goes on"
! grep -q exit_status live/metrics.prom || fail "a run that goes on has no exit status"
[ "$(sample one gdn_up)" = 0.0 ] && [ "$(sample one gdn_exit_status 'reason="finished"')" = 0.0 ] || fail "ended"
expect 3 train 2 half "${steps[@]}" --set train.stop_at=17 2> /dev/null
[ "$(sample half gdn_exit_status 'reason="stopped"')" = 3.0 ] || fail "stopped"
[ "$(sample half gdn_resumes_total)" = 0.0 ] || fail "no resume yet"
mkdir half/metrics.prom.new # cannot be replaced by a file
train 2 half "${steps[@]}"
[ "$(sample half gdn_step)" = 17.0 ] || fail "the file that could not be replaced has changed"
[ "$(lines monitor_failed half | wc -l)" = 1 ] || fail "not told once that the file cannot be written"
grep -q 'warning: half/metrics.prom.new: cannot create: Is a directory' half.log || fail "no warning"
rmdir half/metrics.prom.new
train 1 ../"$(basename "$PWD")"/half "${steps[@]}" --set train.steps=48 # another spelling, the same series
[ "$(sample half gdn_resumes_total)" = 2.0 ] || fail "resumes"
[ "$(sample half gdn_step)" = 48.0 ] && [ "$(sample half gdn_tokens_total)" = 9216.0 ] || fail "steps and tokens"
[ "$(sample half gdn_checkpoint_step)" = 48.0 ] || fail "the last checkpoint"
sample half gdn_connection_gate 'layer="2",distance="2"' > /dev/null
sample half gdn_step_duration_seconds 'quantile="0.95"' > /dev/null
for run in one half; do
    ! LC_ALL=C grep -vE '^(# (HELP|TYPE) gdn_[a-z_]+ .+|gdn_[a-z_]+\{run="[^"]+"(,[a-z]+="[^"]*")*\} [-+.0-9eInf]+)$' $run/metrics.prom >&3 ||
        fail "$run/metrics.prom is not in Prometheus's format"
    ! command -v promtool > /dev/null || promtool check metrics < $run/metrics.prom >&3 || fail "promtool does not like $run/metrics.prom"
done

# Switched off: no events, no file, nor one of before; and the same training to the bit.
mkdir silent
cp one/metrics.prom silent/
expect 3 train 1 silent --set train.gate_interval=0 --set monitor.interval=0 --set model.delta.regularizer=none --set train.stop_at=12 2> /dev/null
losses() { lines step "$1" | head -n 12 | grep -oE '"(loss|grad_norm)":[^,}]*'; }
[ "$(losses silent | wc -l)" -eq 24 ] && cmp <(losses one) <(losses silent) || fail "what is measured changes the training"
[ -z "$(lines gates silent; lines monitor silent)" ] && [ ! -e silent/metrics.prom ] || fail "not silent"
