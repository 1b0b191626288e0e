# Writes the metrics.jsonl of a made-up training run, for report.sh:
#   awk -f made_up_run.awk -v steps=20000 -v layers=12 -v distances=4 -v seed=1 -v lr=0.001 [-v calm=1] [-v monitor=10] [-v gates=100]
# calm: without interruptions. Otherwise the run is stopped by a signal, killed and resumed from an older checkpoint, has
# spikes, a failed checkpoint, alerts, a slow rank and an event that nobody knows.
function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()) }
function line(event, step, rest) { printf "{\"event\":\"%s\",\"step\":%d%s,\"time\":%.3f}\n", event, step, rest, now }

function loss_at(s) { return 1.7 + 3.8 * exp(-s / (steps * 0.02)) + 0.9 * exp(-s / (steps * 0.3)) + 50 * (0.001 - lr) }

function start(kind, step, skipped) {
    line(kind, step, sprintf(",\"steps\":%d,\"parameters\":%.0f,\"ranks\":8,\"data\":2,\"tensor\":2,\"pipeline\":2,\"interleave\":1,\"threads\":4,\"backend\":\"cpu\",\"device\":\"AVX-512, 4 threads\",\"precision\":\"fp32\",\"transport\":\"mpi\",\"number\":\"float32\",\"skipped_checkpoints\":%d", steps, 12e6 * layers, skipped))
    memory(step)
}
function memory(step,    i, n, name, bytes, planned, reserved) {
    n = split("weights gradients optimizer activations sources communication workspace", name, " ")
    split("576000000 576000000 288000000 910000000 151000000 96000000 204000000", bytes, " ")
    for (i = 1; i <= n; i++) {
        planned = planned ",\"planned_" name[i] "\":" bytes[i]
        reserved = reserved ",\"reserved_" name[i] "\":" bytes[i]
    }
    line("memory", step, ",\"rank\":3" planned ",\"planned_sum\":2801000000" reserved ",\"reserved_sum\":2801000000,\"available\":16000000000,\"peak_resident\":" (step ? 3300000000 : 2950000000))
}

function train(from, to,    s, loss, norm, seconds, t, rate) {
    for (s = from; s < to; s++) {
        t = s / steps
        loss = loss_at(s) + 0.06 * normal()
        norm = (0.35 + 2 * exp(-s / (steps * 0.02))) * exp(0.25 * normal())
        if (!calm && s == int(steps * 0.71)) { loss = 9.4; norm = 41 }
        seconds = 0.34 * (1 + 0.04 * normal()) * (rand() < 0.012 ? 1.9 : 1) * (!calm && t > 0.8 && t < 0.83 ? 1.35 : 1)
        now += seconds
        rate = s < steps / 50 ? lr * (s + 1) / (steps / 50) : lr * (0.1 + 0.45 * (1 + cos(3.14159265 * t)))
        printf "{\"event\":\"step\",\"step\":%d,\"loss\":%.16g,\"ce\":%.16g,\"sparsity\":null,\"entropy\":null,\"grad_norm\":%.16g,\"lr\":%.16g,\"active_distances\":%d,\"tokens\":%.0f,\"tokens_per_second\":%.14g,\"step_seconds\":%.9f,\"communication_seconds\":{\"data\":%.9f,\"tensor\":%.9f,\"pipeline\":%.9f},\"communication_bytes\":{\"data\":16777216,\"tensor\":4194304,\"pipeline\":2097152},\"model_flops_utilization\":null,\"time\":%.3f}\n", \
            s, loss, loss, norm, rate, distances, (s + 1) * 65536, 65536 / seconds, seconds, seconds * 0.06, seconds * 0.09, seconds * 0.02, now
        useful += seconds
        if (monitor && s % monitor == 0)
            line("monitor", s, sprintf(",\"step_seconds_p50\":0.34,\"step_seconds_p95\":0.37,\"step_seconds_p99\":0.62,\"tokens_per_second\":%.6g,\"goodput\":%.6g,\"connection_share\":%s,\"resident_bytes\":%.0f,\"device_bytes\":null,\"checkpoint_stall_seconds\":0.03,\"active_connections\":%d,\"effective_connections\":%.5g", \
                65536 / seconds, (useful / (now - begun)) * 0.99, s % (10 * monitor) ? "null" : sprintf("%.4f", 0.17 + 0.05 * t + 0.01 * normal()), 3e9 + 2e8 * t, layers * distances * (t < 0.1 ? 0.5 : 1), layers * distances * (0.35 + 0.4 * t) * (t < 0.1 ? 0.5 : 1)))
        if (gates && s % gates == 0) gate_lines(s, t)
        if ((s + 1) % int(steps / 25) == 0) line("eval", s + 1, sprintf(",\"loss\":%.16g,\"sequences\":600,\"seconds\":1.2", loss_at(s) + 0.05 + 0.004 * normal()))
        if ((s + 1) % int(steps / 20) == 0) checkpoint(s + 1)
    }
}
function checkpoint(step) {
    now += 0.02
    line("checkpoint", step, sprintf(",\"seconds\":%.4f,\"stall_seconds\":%.5f,\"asynchronous\":true,\"bytes\":%.0f", 4.1 * exp(0.15 * normal()), 0.021 * exp(0.2 * normal()), 1728e6 + step))
}
function gate_lines(s, t,    l, d, layer, distance, gate, contribution, comma, g) {
    for (l = 0; l < layers; l++)
        for (d = 1; d <= distances; d++) {
            if (d > l + 1) continue
            g = 1 / (1 + exp(-(3.2 * t * (sin(l * 1.1 + d) + 0.5) - 0.5 * d + 0.08 * normal())))
            layer = layer comma l; distance = distance comma d
            gate = gate comma sprintf("%.9f", g); contribution = contribution comma sprintf("%.9f", g * (0.02 + 0.3 * t) / d)
            comma = ","
        }
    line("gates", s, ",\"layer\":[" layer "],\"distance\":[" distance "],\"gate\":[" gate "],\"contribution\":[" contribution "]")
}

BEGIN {
    srand(seed)
    now = begun = 1795250000 + seed * 7000
    start("start", 0, 0)
    if (calm) {
        train(0, steps)
    } else {
        train(0, int(steps * 0.3))
        line("alert", int(steps * 0.3), ",\"rule\":\"latency\",\"value\":0.43,\"baseline\":0.34,\"words\":\"a step takes 26% longer than at the start\"")
        train(int(steps * 0.3), int(steps * 0.42))
        line("signal", int(steps * 0.42), ",\"reason\":\"USR2\"")
        checkpoint(int(steps * 0.42))
        now += steps * 0.02
        start("resume", int(steps * 0.42), 0)
        train(int(steps * 0.42), int(steps * 0.63))
        now += steps * 0.015
        start("resume", int(steps * 0.6), 1) # killed: goes on from an older checkpoint
        train(int(steps * 0.6), int(steps * 0.71) + 1)
        line("spike", int(steps * 0.71), ",\"what\":\"loss\",\"value\":9.4,\"mean\":2.05,\"deviation\":0.061,\"z\":120.5,\"action\":\"rewind\",\"to_step\":" int(steps * 0.7))
        train(int(steps * 0.7), int(steps * 0.71))
        line("skip", int(steps * 0.71), ",\"reason\":\"its data made the loss spike\"")
        train(int(steps * 0.71) + 1, int(steps * 0.82))
        line("slow_rank", int(steps * 0.82), ",\"rank\":5,\"host\":\"node-07\",\"seconds\":0.71,\"median\":0.33")
        train(int(steps * 0.82), int(steps * 0.85))
        line("checkpoint_failed", int(steps * 0.85), ",\"reason\":\"checkpoints/step_1: no space left <on> \\\"device\\\" & so on\"")
        line("comet_sighted", int(steps * 0.85), ",\"brightness\":2.5,\"tail\":true")
        train(int(steps * 0.85), steps)
    }
    memory(steps)
    line("finish", steps, sprintf(",\"seconds\":%.3f", now - begun))
}
