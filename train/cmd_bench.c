/* gdn bench: measured speed of operations and of whole training steps. One process. */
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/bench.h"
#include "train/commands.h"
#include "train/options.h"

enum key { KEY_JSON = 256, KEY_SECONDS, KEY_THREADS, KEY_BACKEND, KEY_FORM, KEY_STEPS_ONLY, KEY_RECOMPUTE };

struct settings {
    bool json, steps_only, recompute;
    double seconds;
    long threads; /* 0: as the environment has it */
    const char *backend;
    enum form form;
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
        return options_long("--threads", value, 1, 4096, &s->threads);
    case KEY_BACKEND:
        s->backend = value;
        return GDN_OK;
    default:
        s->form = !strcmp(value, "direct") ? FORM_DIRECT : !strcmp(value, "split") ? FORM_SPLIT : FORM_AUTO;
        if (s->form != FORM_AUTO || !strcmp(value, "auto")) return GDN_OK;
        return gdn_fail(GDN_INPUT, "--form '%s': auto, direct or split is expected", value);
    }
}

static const struct argp_option own[] = {
    {"json", KEY_JSON, NULL, 0, "one JSON object a line instead of a table", 0},
    {"steps-only", KEY_STEPS_ONLY, NULL, 0, "whole training steps only, not the operations", 0},
    {"recompute", KEY_RECOMPUTE, NULL, 0,
     "only memory and time of a training step with each setting of train.recompute, taken in turn", 0},
    {"seconds", KEY_SECONDS, "X", 0, "how long to repeat training steps (default 5)", 0},
    {"threads", KEY_THREADS, "N", 0, "OpenMP threads (default: OMP_NUM_THREADS, or all processors)", 0},
    {"backend", KEY_BACKEND, "NAME", 0, "cpu or reference (default: the fastest there is)", 0},
    {"form", KEY_FORM, "FORM", 0, "linear maps of the connections: auto, direct or split (default auto)", 0},
    {0},
};

static const struct command_line line = {
    .arguments = "CONFIG.yaml",
    .doc = "Measures the operations of a configuration's model at its shapes, against this machine's "
           "measured matrix product "
           "and copying speeds, and whole training steps on random tokens against the time of their matrix "
           "products alone.\v"
           "Example:\n\n  gdn bench configs/bench-small.yaml --set model.delta.distances=[]\n"
           "  gdn bench configs/bench-deep.yaml --recompute",
    .common = OPTION_SET,
    .own = own,
    .take = take_option,
    .least = 1,
    .most = 1,
};

static int bench(const struct settings *s, const struct options *options) {
    struct config config;
    const struct ops *ops = s->backend ? ops_find(s->backend) : ops_all()[0];
    if (!ops) return gdn_fail(GDN_INPUT, "--backend '%s': cpu or reference is expected", s->backend);
    TRY(config_load(options->argument[0], options->set, options->num_set, &config));
    if (config.mesh.data > 1 || config.mesh.tensor > 1 || config.mesh.pipeline > 1) {
        config_free(&config);
        return gdn_fail(
            GDN_INPUT,
            "gdn bench measures one process: mesh.data, mesh.tensor and mesh.pipeline of at most 1 are "
            "expected; gdn train times a mesh's steps, gdn plan predicts them");
    }
    if (s->threads) omp_set_num_threads((int)s->threads);
    struct ceilings ceilings;
    bench_ceilings(ops, &ceilings);
    if (!s->json)
        printf("%s\nmatrix products reach %.1f of %.1f GFLOP/s, %.0f%% of the processor's measured peak; "
               "copying %.1f GB/s\n",
               ops_describe(ops), ceilings.gemm / 1e9, ceilings.arithmetic / 1e9,
               100 * ceilings.gemm / ceilings.arithmetic, ceilings.copy / 1e9);
    int status = s->steps_only || s->recompute ? GDN_OK : bench_operations(ops, &config, &ceilings, s->json);
    if (!status && s->recompute)
        status = bench_recompute(ops, &config, s->seconds, s->json);
    else if (!status)
        status = bench_steps(ops, &config, &ceilings, s->form, s->seconds, s->json);
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
