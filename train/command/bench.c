/* gdn bench: measured speed of operations and of whole training steps. One process. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/mesh/mesh.h"
#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "kernels/base/threads.h"
#include "model/table/params.h"
#include "train/run/backend.h"
#include "train/bench/bench.h"
#include "train/command/commands.h"
#include "train/command/options.h"
#include "train/optimizer/groups.h"

enum key {
    KEY_JSON = 256,
    KEY_SECONDS,
    KEY_THREADS,
    KEY_DEVICE,
    KEY_PRECISION,
    KEY_BACKEND,
    KEY_FORM,
    KEY_STEPS_ONLY,
    KEY_RECOMPUTE,
};

struct settings {
    bool json, steps_only, recompute;
    double seconds;
    long threads;                   /* 0: as the environment has it */
    const char *device, *precision; /* NULL: as the configuration has them */
    const char *backend;            /* of the cpu; NULL: the fastest */
    enum projection_way projection;
};

static int take_option(int key, const char *value, void *input) {
    struct settings *s = input;
    switch (key) {
    case KEY_JSON:
        s->json = true;
        return GDN_OK;
    case KEY_STEPS_ONLY:
        s->steps_only = true;
        return GDN_OK;
    case KEY_RECOMPUTE:
        s->recompute = true;
        return GDN_OK;
    case KEY_SECONDS:
        return options_real("--seconds", value, 0, 1e6, &s->seconds);
    case KEY_THREADS:
        return options_long("--threads", value, 1, MOST_THREADS, &s->threads);
    case KEY_DEVICE:
        s->device = value;
        return GDN_OK;
    case KEY_PRECISION:
        s->precision = value;
        return GDN_OK;
    case KEY_BACKEND:
        s->backend = value;
        return GDN_OK;
    default:
        s->projection = !strcmp(value, "direct")  ? PROJECTION_DIRECT
                        : !strcmp(value, "split") ? PROJECTION_SPLIT
                                                  : PROJECTION_AUTO;
        if (s->projection != PROJECTION_AUTO || !strcmp(value, "auto")) return GDN_OK;
        return gdn_fail(GDN_INPUT, "--form '%s': auto, direct or split is expected", value);
    }
}

static const struct argp_option own[] = {
    {"json", KEY_JSON, NULL, 0, "one JSON object a line instead of a table", 0},
    {"steps-only", KEY_STEPS_ONLY, NULL, 0, "whole training steps only, not the operations", 0},
    {"recompute", KEY_RECOMPUTE, NULL, 0,
     "only memory and time of a training step with each setting of train.recompute, taken in turn", 0},
    {"seconds", KEY_SECONDS, "X", 0,
     "how long to repeat training steps (default 5; 0: they and all else a few times only)", 0},
    {"threads", KEY_THREADS, "N", 0, "OpenMP threads (default: OMP_NUM_THREADS, or all processors)", 0},
    {"device", KEY_DEVICE, "NAME", 0,
     "cpu, cuda or emulated: --set device=NAME (default auto: a GPU, or the cpu)", 0},
    {"precision", KEY_PRECISION, "NAME", 0,
     "fp32, bf16, fp16 or fp8: --set train.precision=NAME (default: the configuration's)", 0},
    {"backend", KEY_BACKEND, "NAME", 0, "of the cpu: cpu, its fast operations (default), or reference", 0},
    {"form", KEY_FORM, "FORM", 0, "linear maps of the connections: auto, direct or split (default auto)", 0},
    {0},
};

static const struct command_line line = {
    .arguments = "CONFIG.yaml",
    .doc = "Measures the operations of a configuration's model at its shapes, against this device's "
           "measured matrix product "
           "and copying speeds, and whole training steps on random tokens against the time of their matrix "
           "products alone.\v"
           "Example:\n\n  gdn bench configs/bench-small.yaml --set model.delta.distances=[]\n"
           "  gdn bench configs/bench-deep.yaml --recompute\n"
           "  gdn bench configs/bench-gpu.yaml --device cuda --precision bf16",
    .common = OPTION_SET,
    .own = own,
    .take = take_option,
    .min = 1,
    .max = 1,
};

/* The configuration with what the options set, which comes after all of --set. */
static int load(const struct settings *s, const struct options *options, struct config *config) {
    char device[80], precision[80];
    const char *name = s->backend ? "cpu" : s->device;
    char **set = malloc(((size_t)options->num_set + 2) * sizeof *set);
    int count = options->num_set;
    if (!set) return gdn_fail(GDN_INTERNAL, "out of memory for --set");
    for (int i = 0; i < count; i++) set[i] = options->set[i];
    snprintf(device, sizeof device, "device=%s", name);
    snprintf(precision, sizeof precision, "train.precision=%s", s->precision);
    if (name) set[count++] = device;
    if (s->precision) set[count++] = precision;
    int status = config_load(options->argument[0], set, count, config);
    if (!status) config->train.num_ramp = 0; /* steps of batch_size */
    if (!status) config->mesh.sum_group = 1; /* one rank's */
    free(set);
    return status;
}

static int check_backend(const struct settings *s) {
    if (!s->backend) return GDN_OK;
    if (strcmp(s->backend, "cpu") && strcmp(s->backend, "reference"))
        return gdn_fail(GDN_INPUT,
                        "--backend '%s': cpu or reference is expected; GPUs are chosen by --device",
                        s->backend);
    if (s->device && strcmp(s->device, "cpu"))
        return gdn_fail(GDN_INPUT,
                        "--backend %s with --device %s: --backend is of the cpu; leave one of them out",
                        s->backend, s->device);
    return GDN_OK;
}

static int find_ops(const struct settings *s, struct config *config, const struct ops **ops) {
    struct mesh mesh = mesh_alone();
    for (int a = 0; a < axes_count(); a++)
        if (config->mesh.size[a] > 1)
            return gdn_fail(
                GDN_INPUT,
                "%s %d: gdn bench measures one process, 1 is expected; gdn train times a mesh's steps, "
                "gdn plan predicts them",
                axis_rows[a].key, config->mesh.size[a]);
    TRY(backend_choose(config, &mesh, ops));
    if (s->backend) *ops = ops_in(ops_find(s->backend), (enum precision)config->train.precision);
    return GDN_OK;
}

/* Groups of the optimiser that name no tensor are refused before anything is measured, as in training. */
static int check_groups(const struct config *config) {
    struct table table;
    struct group_uses uses;
    TRY(params_create(&config->model, NULL, &table));
    optimizer_treat(&config->train, &table);
    int status = groups_uses(&config->train, &table, &uses);
    params_free(&table);
    return status;
}

static int measure(const struct settings *s, const struct ops *ops, const struct config *config) {
    const struct bench_seconds spend = {.step = s->seconds, .operation = s->seconds > 0 ? 0.1 : 0};
    struct ceilings ceilings;
    TRY(bench_ceilings(ops, &spend, &ceilings));
    bench_print_machine(ops, &ceilings, s->json);
    if (s->recompute) return bench_recompute(ops, config, &spend, s->json);
    if (!s->steps_only) TRY(bench_operations(ops, config, &ceilings, &spend, s->json));
    return bench_steps(ops, config, &ceilings, s->projection, &spend, s->json);
}

static int bench(const struct settings *s, const struct options *options) {
    struct config config;
    const struct ops *ops;
    TRY(check_backend(s));
    TRY(load(s, options, &config));
    if (s->threads) omp_set_num_threads((int)s->threads);
    int status = check_groups(&config);
    if (!status) status = find_ops(s, &config, &ops);
    if (!status) status = measure(s, ops, &config);
    config_free(&config);
    return status;
}

int cmd_bench(int argc, char **argv) {
    struct settings settings = {.seconds = 5};
    struct options options;
    int status = options_parse(&line, argc, argv, &options, &settings);
    if (!status && !options.done) status = bench(&settings, &options);
    options_free(&options);
    return status;
}
