#include "train/report/read.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/config/private.h"
#include "train/report/text.h"
#include "kernels/base/utf8.h"

/* Room for one more entry of an array. */
static int make_room(void **array, long count, long *room, size_t size) {
    if (count < *room) return GDN_OK;
    long more = *room ? 2 * *room : 64;
    void *larger = realloc(*array, (size_t)more * size);
    if (!larger) return report_no_memory();
    *array = larger, *room = more;
    return GDN_OK;
}

/* ---- events */

static const struct {
    const char *event, *key;
} curves[CURVES] = {
    [CURVE_LOSS] = {"step", "loss"},
    [CURVE_GRAD_NORM] = {"step", "grad_norm"},
    [CURVE_LR] = {"step", "lr"},
    [CURVE_THROUGHPUT] = {"step", "tokens_per_second"},
    [CURVE_STEP_SECONDS] = {"step", "step_seconds"},
    [CURVE_TOKENS] = {"step", "tokens"},
    [CURVE_VALIDATION] = {"eval", "loss"},
    [CURVE_GOODPUT] = {"monitor", "goodput"},
    [CURVE_CONNECTION_SHARE] = {"monitor", "connection_share"},
    [CURVE_RESIDENT] = {"monitor", "resident_bytes"},
    [CURVE_DEVICE] = {"monitor", "device_bytes"},
    [CURVE_ACTIVE] = {"monitor", "active_connections"},
    [CURVE_EFFECTIVE] = {"monitor", "effective_connections"},
    [CURVE_VARIANCE] = {"noise", "variance"},
    [CURVE_GRADIENT] = {"noise", "gradient_squared"},
};

/* The run goes on with `step` steps done: what was done beyond them no longer counts. Steps are counted from
 * 0, but an evaluation's is how many were done. */
static void go_back(struct report_run *run, double step) {
    if (!(step < run->done)) return;
    for (int c = 0; c < CURVES; c++)
        series_cut(&run->curve[c], strcmp(curves[c].event, "eval") ? step : nextafter(step, INFINITY));
    for (long s = 0; s < run->sets; s++) series_cut(&run->set[s].loss, nextafter(step, INFINITY));
    series_cut(&run->useful, step);
    while (run->gates > 0 && run->gate[run->gates - 1].step >= step) run->gates--;
    run->done = step;
}

/* What changed before that step or a later one no longer counts: it changes again, or not. A step's own line does not
 * say so, as its changes are told before it. */
static void forget_changes(struct report_run *run, double step) {
    while (run->changes > 0 && run->change[run->changes - 1].step >= step) run->changes--;
}

static int take_curves(struct report_run *run, const char *kind, double step, const json_t *line) {
    for (int c = 0; c < CURVES; c++)
        if (!strcmp(curves[c].event, kind))
            TRY(series_add(&run->curve[c], step, report_number(line, curves[c].key)));
    return GDN_OK;
}

static int take_step(struct report_run *run, double step, const json_t *line) {
    go_back(run, step);
    TRY(take_curves(run, "step", step, line));
    double time = report_number(line, "time"), tokens = report_number(line, "tokens");
    bool left_out = json_is_null(json_object_get(line, "grad_norm")); /* it was not finite */
    TRY(series_add(&run->useful, step, left_out ? NAN : report_number(line, "step_seconds")));
    if (isfinite(time)) TRY(series_push(&run->clock, time, step + 1));
    if (isfinite(tokens)) run->tokens = tokens;
    run->done = step + 1;
    return GDN_OK;
}

/* The set of that name, made where there is none yet; NULL without memory. */
static struct report_set *find_set(struct report_run *run, const char *name) {
    for (long s = 0; s < run->sets; s++)
        if (!strcmp(run->set[s].name, name)) return &run->set[s];
    if (make_room((void **)&run->set, run->sets, &run->set_room, sizeof *run->set)) return NULL;
    struct report_set *set = &run->set[run->sets];
    *set = (struct report_set){.name = strdup(name)};
    if (!set->name) return NULL;
    run->sets++;
    return set;
}

static int take_eval(struct report_run *run, double step, const json_t *line) {
    const char *name;
    json_t *loss;
    TRY(take_curves(run, "eval", step, line));
    json_object_foreach(json_object_get(line, "losses"), name, loss) {
        if (!config_set_name(name)) continue;
        struct report_set *set = find_set(run, name);
        if (!set) return report_no_memory();
        TRY(series_add(&set->loss, step, json_is_number(loss) ? json_number_value(loss) : NAN));
    }
    return GDN_OK;
}

/* The step's line, which comes before this, is one of a step whose update was left out. */
static void take_skip(struct report_run *run, double step) {
    struct series *useful = &run->useful;
    if (useful->count > 0 && useful->x[useful->count - 1] == step) useful->count--;
}

/* The connection of place i of a line's lists `layer` and `distance`; false: there is none. */
static bool connection_of(const json_t *line, size_t i, int *layer, int *distance) {
    const json_t *l = json_array_get(json_object_get(line, "layer"), i),
                 *d = json_array_get(json_object_get(line, "distance"), i);
    double at = json_number_value(l), over = json_number_value(d);
    /* Beyond what any model has, a map of all layers would not fit into memory. */
    if (!(json_is_number(l) && json_is_number(d) && at >= 0 && at < 4096 && over >= 1 && over <= 4096)) return false;
    *layer = (int)at, *distance = (int)over;
    return true;
}

/* One of several lines of its step where there are many connections; a step's own line has dropped those of
 * the same step done before. */
static int take_gates(struct report_run *run, double step, const json_t *line) {
    const json_t *gate = json_object_get(line, "gate"), *contribution = json_object_get(line, "contribution");
    while (run->gates > 0 && run->gate[run->gates - 1].step > step) run->gates--;
    for (size_t i = 0; i < json_array_size(json_object_get(line, "layer")); i++) {
        const json_t *g = json_array_get(gate, i), *c = json_array_get(contribution, i);
        int at, over;
        if (!connection_of(line, i, &at, &over)) continue;
        TRY(make_room((void **)&run->gate, run->gates, &run->gate_room, sizeof *run->gate));
        run->gate[run->gates++] = (struct report_gate){
            .step = step,
            .layer = at,
            .distance = over,
            .gate = json_is_number(g) ? json_number_value(g) : NAN,
            .contribution = json_is_number(c) ? json_number_value(c) : NAN,
        };
    }
    return GDN_OK;
}

/* One of several lines of its step where there are many connections, and where some go and some come back. */
static int take_changes(struct report_run *run, bool back, double step, const json_t *line) {
    for (size_t i = 0; i < json_array_size(json_object_get(line, "layer")); i++) {
        struct report_change change = {.step = step, .back = back};
        if (!connection_of(line, i, &change.layer, &change.distance)) continue;
        TRY(make_room((void **)&run->change, run->changes, &run->change_room, sizeof *run->change));
        run->change[run->changes++] = change;
    }
    return GDN_OK;
}

static int take_checkpoint(struct report_run *run, double step, const json_t *line) {
    const json_t *asynchronous = json_object_get(line, "asynchronous");
    TRY(make_room((void **)&run->checkpoint, run->checkpoints, &run->checkpoint_room,
                  sizeof *run->checkpoint));
    run->checkpoint[run->checkpoints++] = (struct report_checkpoint){
        .step = step,
        .seconds = report_number(line, "seconds"),
        .stall = report_number(line, "stall_seconds"),
        .bytes = report_number(line, "bytes"),
        .asynchronous = json_is_boolean(asynchronous) ? json_is_true(asynchronous) : -1,
    };
    return GDN_OK;
}

static void take_memory(struct report_run *run, const json_t *line) {
    run->memory.there = true;
    for (int part = 0; part < MEMORY_PARTS; part++) {
        char key[64];
        snprintf(key, sizeof key, "planned_%s", memory_key[part]);
        double planned = report_number(line, key);
        snprintf(key, sizeof key, "reserved_%s", memory_key[part]);
        double reserved = report_number(line, key);
        run->memory.planned.bytes[part] = planned > 0 && planned < 1e18 ? (int64_t)planned : 0;
        run->memory.reserved.bytes[part] = reserved > 0 && reserved < 1e18 ? (int64_t)reserved : 0;
    }
    run->memory.peak_resident = report_number(line, "peak_resident");
    run->memory.available = report_number(line, "available");
}

static int take_text(const json_t *line, const char *key, char **text) {
    const char *value = report_string(line, key);
    free(*text);
    *text = value ? strdup(value) : NULL;
    return value && !*text ? report_no_memory() : GDN_OK;
}

static int take_start(struct report_run *run, bool resumed, double step, const json_t *line) {
    if (run->started) run->restarts++;
    run->started = true;
    const double from = resumed ? step : 0; /* begun anew, where there was no checkpoint yet */
    go_back(run, from);
    forget_changes(run, from);
    run->parameters = report_number(line, "parameters"), run->ranks = report_number(line, "ranks");
    for (int a = 0; a < axes_count(); a++) run->axis[a] = report_number(line, axis_rows[a].name);
    run->interleave = report_number(line, "interleave");
    run->steps = report_number(line, "steps");
    TRY(take_text(line, report_string(line, "device") ? "device" : "backend", &run->device));
    TRY(take_text(line, report_string(line, "precision") ? "precision" : "number", &run->precision));
    double time = report_number(line, "time");
    return isfinite(time) ? series_push(&run->clock, time, NAN) : GDN_OK;
}

/* Events that are only told in words. */
static int take_event(struct report_run *run, const char *kind, double step, const json_t *line) {
    TRY(make_room((void **)&run->event, run->events, &run->event_room, sizeof *run->event));
    struct report_event event = {.kind = strdup(kind),
                                 .text = report_text(kind, line),
                                 .step = step,
                                 .time = report_number(line, "time"),
                                 .status = -1};
    double status = report_number(line, "status");
    if (!strcmp(kind, "end")) event.status = status >= 0 && status < 256 ? (int)status : GDN_INTERNAL;
    if (!event.kind || !event.text) {
        free(event.kind);
        free(event.text);
        return report_no_memory();
    }
    run->event[run->events++] = event;
    const char *action = report_string(line, "action");
    if (!strcmp(kind, "spike") && action && !strcmp(action, "rewind")) {
        go_back(run, report_number(line, "to_step"));
        forget_changes(run, report_number(line, "to_step"));
    }
    return GDN_OK;
}

static int take_line(struct report_run *run, const char *kind, const json_t *line) {
    double step = report_number(line, "step"), time = report_number(line, "time");
    if (isfinite(time)) {
        if (!isfinite(run->first_time)) run->first_time = time;
        run->last_time = time;
    }
    bool start = !strcmp(kind, "start"), resume = !strcmp(kind, "resume"), back = !strcmp(kind, "regrow");
    if (start || resume) TRY(take_start(run, resume, step, line));
    if (!strcmp(kind, "step")) return take_step(run, step, line);
    if (!strcmp(kind, "gates")) return take_gates(run, step, line);
    if (back || !strcmp(kind, "prune")) TRY(take_changes(run, back, step, line)); /* told in words too */
    if (!strcmp(kind, "checkpoint")) return take_checkpoint(run, step, line);
    if (!strcmp(kind, "eval")) return take_eval(run, step, line);
    if (!strcmp(kind, "monitor") || !strcmp(kind, "noise")) return take_curves(run, kind, step, line);
    if (!strcmp(kind, "memory")) return take_memory(run, line), GDN_OK;
    const char *reason = report_string(line, "reason");
    bool skipped = !strcmp(kind, "skip"), scaled = !strcmp(kind, "loss_scale");
    if (skipped || (scaled && reason && strstr(reason, "skipped"))) take_skip(run, step);
    if (!strcmp(kind, "delta_store") || scaled) return GDN_OK; /* many, and all is well */
    return take_event(run, kind, step, line);
}

/* ---- lines */

/* Bytes that are no UTF-8 become '?', in place: names of files, in an event's reason, may have any. */
static void make_text(char *line, size_t length) {
    for (size_t i = 0, width; i < length; i += width)
        if (!(width = utf8_bytes(line + i, length - i))) line[i] = '?', width = 1;
}

static int read_line(struct report_run *run, char *text, size_t length, const char *file, long number) {
    json_error_t error;
    /* Integers as reals: one too long for 64 bits is no reason to stop. */
    enum { HOW = JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL };
    json_t *line = json_loadb(text, length, HOW, &error);
    if (!line && json_error_code(&error) == json_error_invalid_utf8) {
        make_text(text, length);
        line = json_loadb(text, length, HOW, &error);
    }
    if (!line) return gdn_fail(GDN_INPUT, "%s, line %ld is not JSON: %s", file, number, error.text);
    const char *kind = report_string(line, "event");
    int status;
    if (!kind)
        status =
            gdn_fail(GDN_INPUT, "%s, line %ld is no event: an object with a string \"event\" is expected",
                     file, number);
    else if (!isfinite(report_number(line, "step")) &&
             (!strcmp(kind, "step") || !strcmp(kind, "eval") || !strcmp(kind, "monitor") || !strcmp(kind, "noise") ||
              !strcmp(kind, "prune") || !strcmp(kind, "regrow") || !strcmp(kind, "gates") || !strcmp(kind, "checkpoint") || !strcmp(kind, "resume")))
        status =
            gdn_fail(GDN_INPUT, "%s, line %ld: the event '%s' has no number \"step\"", file, number, kind);
    else
        status = take_line(run, kind, line);
    json_decref(line);
    return status;
}

static int read_lines(struct report_run *run, FILE *in, const char *file) {
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    long number = 0;
    int status = GDN_OK;
    errno = 0;
    while (!status && (length = getline(&text, &room, in)) > 0 && text[length - 1] == '\n')
        status = read_line(run, text, (size_t)length, file, ++number);
    if (!status && ferror(in)) status = gdn_fail(GDN_INPUT, "%s cannot be read: %s", file, strerror(errno));
    free(text);
    return status;
}

static int read_metrics(struct report_run *run) {
    char *file;
    if (asprintf(&file, "%s/metrics.jsonl", run->path) < 0) return report_no_memory();
    FILE *in = fopen(file, "re");
    int status =
        in ? read_lines(run, in, file)
           : gdn_fail(GDN_INPUT, "%s is not a run directory: %s: %s", run->path, file, strerror(errno));
    if (in) fclose(in);
    free(file);
    return status;
}

/* ---- config.yaml */

static char *read_text(const char *path) {
    FILE *in = fopen(path, "re");
    if (!in) return NULL;
    char *text = NULL;
    size_t room = 0;
    ssize_t length = getdelim(&text, &room, 0, in); /* up to a zero byte, which no such text has */
    fclose(in);
    if (length < 0) free(text), text = NULL;
    return text;
}

/* One that is missing or of another version is no reason to show nothing. */
static int read_config(struct report_run *run) {
    char *file;
    if (asprintf(&file, "%s/config.yaml", run->path) < 0) return report_no_memory();
    run->text = read_text(file);
    free(file);
    if (!run->text)
        return run->problem = strdup("it cannot be read"), run->problem ? GDN_OK : report_no_memory();
    int status = config_read_saved(run->text, &run->config);
    run->configured = status == GDN_OK;
    if (status == GDN_INPUT) {
        run->problem = strdup(gdn_failure());
        gdn_failure_clear();
        return run->problem ? GDN_OK : report_no_memory();
    }
    return status;
}

/* ---- a run */

/* The last name of the path with all links and dots resolved. */
static char *name_of(const char *path) {
    char *whole = realpath(path, NULL);
    if (!whole) return strdup(path);
    char *slash = strrchr(whole, '/'), *name = strdup(slash && slash[1] ? slash + 1 : whole);
    free(whole);
    return name;
}

int report_run_read(const char *path, struct report_run *run) {
    *run = (struct report_run){.path = strdup(path), .name = name_of(path)};
    run->parameters = run->ranks = run->interleave = run->steps = NAN;
    for (int a = 0; a < axes_count(); a++) run->axis[a] = NAN;
    run->memory.peak_resident = run->memory.available = run->tokens = run->first_time = run->last_time = NAN;
    if (!run->path || !run->name) return report_no_memory();
    TRY(read_metrics(run));
    return read_config(run);
}

void report_run_free(struct report_run *run) {
    for (int c = 0; c < CURVES; c++) series_free(&run->curve[c]);
    series_free(&run->useful);
    series_free(&run->clock);
    for (long i = 0; i < run->events; i++) {
        free(run->event[i].kind);
        free(run->event[i].text);
    }
    for (long s = 0; s < run->sets; s++) {
        free(run->set[s].name);
        series_free(&run->set[s].loss);
    }
    if (run->configured) config_free(&run->config);
    free(run->path);
    free(run->name);
    free(run->text);
    free(run->problem);
    free(run->checkpoint);
    free(run->event);
    free(run->gate);
    free(run->change);
    free(run->set);
    free(run->device);
    free(run->precision);
    *run = (struct report_run){0};
}

double report_goodput(const struct report_run *run) {
    double wall = run->last_time - run->first_time;
    return wall > 0 && run->curve[CURVE_STEP_SECONDS].count ? series_sum(&run->useful) / wall : NAN;
}
