/* gdn plan: what a run would take on a mesh of any size. One process. */
#include <stdio.h>
#include <string.h>

#include "data/output.h"
#include "kernels/base/status.h"
#include "kernels/backends/backends.h"
#include "train/command/commands.h"
#include "train/command/options.h"
#include "train/config/profile.h"
#include "train/plan/plan.h"

enum key {
    KEY_RANKS = 256,
    KEY_JSON,
    KEY_SCHEDULE,
    KEY_TRACE,
    KEY_SVG,
    KEY_FLOPS,
    KEY_MEMORY,
    KEY_LATENCY,
    KEY_MACHINE,
    KEY_AXES, /* --bandwidth-… of axis 0, and so on */
};

struct settings {
    long ranks; /* 0: as many as the mesh names */
    bool json, schedule;
    const char *trace;           /* NULL: none */
    const char *svg;             /* likewise */
    const char *profile;         /* --machine; likewise */
    struct plan_machine machine; /* what is 0, and a latency of −1, was not given */
};

static int take_bandwidth(enum mesh_axis axis, const char *value, struct plan_machine *machine) {
    char option[40];
    snprintf(option, sizeof option, "--bandwidth-%s", axis_rows[axis].name);
    return options_real(option, value, 1, 1e24, &machine->bandwidth[axis]);
}

static int take_option(int key, const char *value, void *input) {
    struct settings *s = input;
    switch (key) {
    case KEY_RANKS:
        return options_long("--ranks", value, 1, PLAN_RANKS, &s->ranks);
    case KEY_JSON:
        s->json = true;
        return GDN_OK;
    case KEY_SCHEDULE:
        s->schedule = true;
        return GDN_OK;
    case KEY_TRACE:
        if (!*value) return gdn_fail(GDN_INPUT, "--trace is '': a directory is expected");
        s->trace = value;
        return GDN_OK;
    case KEY_SVG:
        s->svg = value;
        return GDN_OK;
    case KEY_FLOPS:
        return options_real("--flops", value, 1, 1e24, &s->machine.flops);
    case KEY_MEMORY:
        return options_real("--bandwidth-memory", value, 1, 1e24, &s->machine.memory);
    case KEY_MACHINE:
        return options_path("--machine", value, &s->profile);
    case KEY_LATENCY:
        return options_real("--latency", value, 0, 1e6, &s->machine.latency);
    default:
        return take_bandwidth((enum mesh_axis)(key - KEY_AXES), value, &s->machine);
    }
}

/* Behind those of the axes. */
static const struct argp_option fixed[] = {
    {"ranks", KEY_RANKS, "N", 0,
     "for N ranks (default: as many as mesh.data x tensor x context x pipeline; data 0 is 1)", 0},
    {"schedule", KEY_SCHEDULE, NULL, 0, "every pipeline rank's list of actions in words, instead of tables",
     0},
    {"json", KEY_JSON, NULL, 0, "one JSON object, with every rank's figures, instead of tables", 0},
    {"trace", KEY_TRACE, "DIR", 0,
     "also write a trace of each rank for SimGrid's smpirun -replay DIR/traces.txt", 0},
    {"svg", KEY_SVG, "FILE", 0, "also draw the step as a time line of all pipeline ranks", 0},
    {"machine", KEY_MACHINE, "NAME", 0,
     "the machine of configs/machines/NAME.yaml, or of another file, PATH.yaml: what the options that "
     "follow say of a rank, and on which axes it sends inside a node",
     0},
    {"flops", KEY_FLOPS, "X", 0,
     "a rank's arithmetic a second (default: what this machine's processors together are measured to reach)",
     0},
    {"bandwidth-memory", KEY_MEMORY, "X", 0, "bytes a second of memory during the update (default 20e9)", 0},
    {"latency", KEY_LATENCY, "X", 0, "seconds of a message or sum besides those of its bytes (default 5e-6)",
     0},
    {0},
};
enum { FIXED = sizeof fixed / sizeof *fixed };

/* All options, with one for each axis. */
struct options_list {
    struct argp_option option[AXES + FIXED];
    char name[AXES][32], help[AXES][96];
};

static void list_options(struct options_list *out) {
    for (int i = 0; i < axes_count(); i++) {
        const char *axis = axis_rows[axis_order[i]].name;
        snprintf(out->name[i], sizeof out->name[i], "bandwidth-%s", axis);
        snprintf(out->help[i], sizeof out->help[i], "%s on the %s axis (default 12.5e9)",
                 i ? "the same" : "bytes a second that a rank sends", axis);
        out->option[i] =
            (struct argp_option){out->name[i], KEY_AXES + (int)axis_order[i], "X", 0, out->help[i], 0};
    }
    memcpy(out->option + axes_count(), fixed, sizeof fixed);
}

static const struct command_line line = {
    .arguments = "CONFIG.yaml",
    .doc = "Shows what a run would take, without training and without other ranks: memory by category, the "
           "pipeline's schedule, arithmetic and bytes on the wire of a step, and how long a step should "
           "take.\v"
           "All but the time is exact: the parameter tables, schedules and passes are those of training, run "
           "dry.\n"
           "\n"
           "The time comes from running all pipeline ranks' schedules against each other, with these "
           "assumptions: a rank computes its matrix products and attention's at --flops and the rest in no "
           "time; sums over the tensor axis are waited for; messages between stages and sums of gradients "
           "move beside arithmetic, from when both ends have started them, and what moves at once on an axis "
           "(with --machine, on all axes that leave a node: they share the way out and the way in) divides "
           "its bandwidth; data and tensor ranks keep in step. Efficiency is the time of the arithmetic "
           "alone, without repetition, spread evenly over all ranks, over that of the step.\n"
           "\n"
           "Examples:\n"
           "  gdn plan configs/tiny.yaml\n"
           "  gdn plan configs/tiny.yaml --ranks 8 --set mesh.pipeline=2 \\\n      --set "
           "train.micro_batch_size=1\n"
           "  gdn plan configs/tiny.yaml --ranks 64 --machine h100-ib",
    .common = OPTION_SET | OPTION_HELP_CONFIG,
    .take = take_option,
    .min = 1,
    .max = 1,
};

static int show(const struct settings *s, const struct plan *plan) {
    if (s->trace) TRY(plan_trace(plan, s->trace)); /* which can fail: before any output */
    if (s->svg) TRY(plan_svg(plan, s->svg));
    if (s->json)
        plan_json(plan, stdout);
    else if (s->schedule)
        plan_print_schedule(plan, stdout);
    else
        plan_print(plan, stdout);
    return GDN_OK;
}

/* What is not given is the profile's, or that of an ordinary machine. */
static int complete_machine(struct settings *s) {
    struct plan_machine *m = &s->machine;
    struct profile profile = {.bandwidth_memory = 20e9, .latency = 5e-6, .asynchronous_progress = true};
    if (s->profile) {
        TRY(profile_find(s->profile, &profile));
        m->node = profile.node, m->inside = profile.bandwidth_inside, m->outside = profile.bandwidth_outside;
    }
    for (int a = 0; a < axes_count() && !s->profile; a++)
        if (!m->bandwidth[a]) m->bandwidth[a] = 12.5e9;
    m->synchronous = !profile.asynchronous_progress;
    if (!m->flops) m->flops = s->profile ? profile.flops : ops_peak();
    if (!m->memory) m->memory = profile.bandwidth_memory;
    if (m->latency < 0) m->latency = profile.latency;
    return GDN_OK;
}

static int verify_svg(const struct settings *s, const char *config) {
    if (!s->svg) return GDN_OK;
    TRY(output_verify("--svg", s->svg));
    TRY(output_refuse_input(s->svg, config, "the configuration"));
    return s->profile ? output_refuse_input(s->svg, s->profile, "the machine") : GDN_OK;
}

static int make_plan(struct settings *s, const struct options *options) {
    struct config config;
    struct plan plan;
    if (s->json && s->schedule)
        return gdn_fail(GDN_INPUT, "--json and --schedule are two forms of output: one of them is expected");
    TRY(verify_svg(s, options->argument[0]));
    TRY(config_load(options->argument[0], options->set, options->num_set, &config));
    int status = complete_machine(s);
    if (!status) status = plan_create(&config, s->ranks, &s->machine, &plan);
    if (!status) {
        status = show(s, &plan);
        plan_free(&plan);
    }
    config_free(&config);
    return status;
}

int cmd_plan(int argc, char **argv) {
    struct settings settings = {
        .machine = {.latency = -1},
    };
    struct options_list list;
    list_options(&list);
    struct command_line with_axes = line;
    with_axes.own = list.option;
    struct options options;
    int status = options_parse(&with_axes, argc, argv, &options, &settings);
    if (!status && !options.done) status = make_plan(&settings, &options);
    options_free(&options);
    return status;
}
