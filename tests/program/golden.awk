# Compares a run with a golden file; -v double=0|1 is the build's precision, -v regularized=0|1 and -v every=N say when
# sparsity and entropy are written. Reads three files: the golden and the run's checkpoint, both flattened
# (flatten.awk), then metrics.jsonl. Prints what differs; status 1 where anything does.
#
# Tolerances, relative to the golden's value:
#  - losses, norms and entropies: 1e-5, which the golden files ask of a float32 run (float32 PyTorch stays below
#    3e-6 on these files, so a wrong formula cannot hide), and 1e-9 in double, where only the order of sums differs.
#  - the learning rate is computed in double in every build: 1e-12.
#  - a final weight tensor: the distance ‖w − golden‖ may be `share` of how far the golden moved in training, and on top
#    one rounding a step of the stored weight. Float32 PyTorch needs a share of at most 9e-5: 3e-4. In double 1e-8,
#    and one rounding only, for a checkpoint stores float32. A tensor that the golden never moved must not move.
#  - with -v rounded=1, of a stream stored in bf16, ten times these in floats, of which sums in another order round an element now and then
#    to its other neighbour, 2^-8 away: 9e-5 of a norm was seen. A rounding that is missing, or is one too many, is for double builds to tell.
function abs(x) { return x < 0 ? -x : x }
function fail(text) { print text; bad = 1 }
function close_to(what, got, want, tolerance) {
    compared++
    if (got !~ /^-?[0-9]/ || abs(got - want) > tolerance * abs(want))
        fail(sprintf("step %d: %s is %s, golden has %s (relative difference allowed: %g)", step, what, got, want, tolerance))
}
function value(line, key,    at) { # of "key": in a JSON line; "" where it is missing
    at = index(line, "\"" key "\":")
    if (!at) return ""
    line = substr(line, at + length(key) + 3)
    sub(/[,}].*/, "", line)
    return line
}

BEGIN { wider = rounded && !double ? 10 : 1 }
FNR == 1 { file++ }
file == 1 { golden[$1] = $0; next }
file == 2 { run[$1] = $0; next }

# file 3: metrics. A resumed run may repeat a step; here every step comes once.
value($0, "event") == "\"step\"" {
    step = value($0, "step")
    if (step != steps++) fail("metrics.jsonl: step " step " where " steps - 1 " is due")
    n = split(golden["/trajectory/loss"], unused)
    if (steps > n - 1) next
    tolerance = double ? 1e-9 : 1e-5 * wider
    for (i = split("loss ce grad_norm lr active_distances sparsity entropy z_loss l1", keys); i > 0; i--) {
        key = keys[i]
        if ((key == "z_loss" || key == "l1") && !(("/trajectory/" key) in golden)) { # without a weight
            if (index($0, "\"" key "\":")) fail("step " step ": " key " is there")
            continue
        }
        split(golden["/trajectory/" key], series)
        want = series[step + 2]
        got = value($0, key)
        if (key == "sparsity" || key == "entropy") {
            if (!regularized && step % every) {
                compared++
                if (got != "null") fail(sprintf("step %d: %s is %s, null is due", step, key, got))
                continue
            }
            if (want == 0 && (got == "null" || got == "0")) continue # no connection is active
        }
        close_to(key, got, want, key == "lr" ? 1e-12 : key == "active_distances" ? 0 : tolerance)
    }
    exits = split(golden["/trajectory/exits"], series) - 1
    if (exits < 1 && index($0, "\"exits\":")) fail("step " step ": exits are there")
    exits = exits > 0 ? exits / (n - 1) : 0
    list = $0
    if (exits && !sub(/.*"exits":\[/, "", list)) fail("step " step ": there are no exits")
    split(list, numbers, /[],]/)
    for (i = 1; i <= exits; i++) {
        want = series[1 + step * exits + i]
        if (want != "nan") close_to("exits " i, numbers[i], want, tolerance)
        else if (numbers[i] != "null") fail("step " step ": exit " i " is " numbers[i] ", null is due")
        else compared++
    }
}

END {
    n = split(golden["/trajectory/loss"], unused) - 1
    if (n < 1) fail("the golden file has no trajectory")
    if (steps != n) fail("metrics.jsonl has " steps + 0 " steps, the golden " n)
    for (path in golden) {
        if (path !~ /^\/final\//) continue
        name = substr(path, 8)
        tensors++
        if (!(("/model/" name) in run)) { fail("the checkpoint has no /model/" name); continue }
        count = split(golden[path], final)
        split(golden["/initial/" name], initial)
        if (split(run["/model/" name], got_w) != count) { fail("/model/" name " has another size"); continue }
        error = moved = norm = 0
        for (i = 2; i <= count; i++) {
            if (got_w[i] !~ /^-?[0-9]/) { fail("/model/" name " holds " got_w[i]); break }
            error += (got_w[i] - final[i]) ^ 2
            moved += (final[i] - initial[i]) ^ 2
            norm += final[i] ^ 2
        }
        allowed = (double ? 1e-8 : 3e-4 * wider) * sqrt(moved) + (moved > 0 ? (double ? 1 : n) * 2 ^ -24 * sqrt(norm) : 0)
        if (sqrt(error) > allowed)
            fail(sprintf("/model/%s: ‖w − golden‖ = %g, allowed %g (golden moved by %g)", name, sqrt(error), allowed, sqrt(moved)))
    }
    for (path in run) if (path ~ /^\/model\// && !(("/final/" substr(path, 8)) in golden)) fail("unexpected " path)
    if (!tensors || !compared) fail("nothing was compared")
    exit bad
}
