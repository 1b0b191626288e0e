/* The store of differences in the training loop: what is told of it, and what its failures mean. */
#include "train/loop/loop.h"
#include "kernels/backends/backends.h"

#include <math.h>
#include <stdio.h>

int loop_store_create(struct loop *loop) {
    struct run *run = loop->run;
    const struct delta_place place = {
        .config = &run->config,
        .layout = run->part.layout,
        .edges = &run->part.pipeline.edges,
        .ops = ops_on_host(run->ops),
        .mesh = &run->mesh,
        .batch = run->part.micro_batch,
        .directory = loop->rundir->path,
    };
    return mesh_agree(&run->mesh, delta_store_create(&place, &loop->store));
}

static void record_stored(struct loop *loop, const struct delta_report *report) {
    struct metrics *metrics = &loop->rundir->metrics;
    const struct delta_tally *tally = &report->tally;
    metrics_begin(metrics, "delta_store");
    metrics_integer(metrics, "step", report->step);
    metrics_integer(metrics, "files", tally->files);
    metrics_integer(metrics, "connections", tally->connections);
    metrics_integer(metrics, "bytes", tally->bytes);
    metrics_integer(metrics, "plain_bytes", tally->plain_bytes);
    metrics_number(metrics, "rank",
                   tally->connections ? (double)tally->rank / (double)tally->connections : NAN);
    metrics_number(metrics, "relative_error", tally->connections ? tally->error : NAN);
    metrics_number(metrics, "factorise_seconds", report->factorise_seconds);
    metrics_number(metrics, "stall_seconds", report->stall_seconds);
    metrics_end(metrics);
}

/* "step 100: 3 of 12 differences are not stored: layer 4, distance 2: …" */
static void describe_failure(const struct delta_report *report, char text[1280]) {
    const struct delta_failure *failure = &report->failure;
    long failed = report->tally.failed, all = failed + report->tally.connections;
    char distance[32] = "";
    if (failure->distance) snprintf(distance, sizeof distance, ", distance %d", failure->distance);
    snprintf(text, 1280, "step %lld: %ld of %ld differences %s not stored: layer %d%s: %s",
             (long long)report->step, failed, all, failed == 1 ? "is" : "are", failure->layer, distance,
             failure->text);
}

static void record_failed(struct loop *loop, const struct delta_report *report, const char *text) {
    struct metrics *metrics = &loop->rundir->metrics;
    metrics_begin(metrics, "delta_store_failed");
    metrics_integer(metrics, "step", report->step);
    metrics_integer(metrics, "connections", report->tally.failed);
    metrics_integer(metrics, "layer", report->failure.layer);
    if (report->failure.distance) metrics_integer(metrics, "distance", report->failure.distance);
    metrics_text(metrics, "reason", report->failure.text);
    metrics_end(metrics);
    if (!loop->run->config.delta_store.required) progress_note(&loop->progress, "warning: %s", text);
}

int loop_store_poll(struct loop *loop, bool wait) {
    struct delta_report report;
    TRY(delta_store_poll(loop->store, wait, &report));
    if (!report.done) return 0;
    if (report.tally.files || !report.tally.failed) record_stored(loop, &report);
    if (!report.tally.failed) return 0;
    char text[1280];
    describe_failure(&report, text);
    record_failed(loop, &report, text);
    if (!loop->run->config.delta_store.required) return 0;
    return gdn_fail(GDN_INTERNAL, "%s\n(delta_store.required is set)", text);
}
