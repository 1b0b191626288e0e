/* gdn prune: what each delta connection of a checkpoint does for its loss, and the model without some of
 * them. */
#include "train/command/commands.h"

#include "data/outcome.h"
#include "kernels/base/status.h"
#include "train/command/options.h"
#include "train/command/prune_layers.h"
#include "train/command/prune_print.h"
#include "train/command/subject.h"
#include "train/loop/loop.h"
#include "train/records/reading.h"
#include "train/run/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_KEEP = 256, KEY_BY, KEY_OUTPUT, KEY_POINTS, KEY_SVG, KEY_JSON, KEY_LAYERS };

static const struct argp_option own[] = {
    {"keep", KEY_KEEP, "PART", 0, "Keep this part of the connections, from 0 to 1, the most important ones",
     0},
    {"layers", KEY_LAYERS, "N", 0, "In place of connections, leave out the N least important layers", 0},
    {"by", KEY_BY, "MEASURE", 0,
     "Importance: leave-one-out (default), the loss without it, an evaluation each; contribution, gate x "
     "contribution, of one evaluation; or first-order, what groups of the data lose by their gradients, of one pass. With "
     "--layers: leave-one-out (default) or angle",
     0},
    {"output", KEY_OUTPUT, "DIR", 0,
     "Write the model of those kept into this new folder: checkpoint.h5 and config.yaml", 0},
    {"points", KEY_POINTS, "N", 0, "Points of the loss curve, an evaluation each (default 16)", 0},
    {"svg", KEY_SVG, "FILE", 0, "Also draw the loss curve", 0},
    SUBJECT_OPTIONS("the first"),
    {"json", KEY_JSON, NULL, 0, "Print one object as JSON, on one line", 0},
    {0},
};

struct arguments {
    struct subject_options subject;
    double keep; /* NAN: not given */
    long points;
    long layers; /* that go; 0: connections do */
    const char *by; /* NULL: not given */
    const char *output, *svg; /* NULL: not given */
    bool json;
};

/* The number of the measure that was asked for, 0 where none was; `expected` ends the message of one that is none. */
static int find_by(const char *given, const char *const *words, const char *expected, int *out) {
    *out = 0;
    for (int i = 0; given && words[i]; i++)
        if (!strcmp(words[i], given)) {
            *out = i;
            return GDN_OK;
        }
    return given ? gdn_fail(GDN_INPUT, "--by '%s': %s is expected", given, expected) : GDN_OK;
}

static int take(int key, const char *value, void *input) {
    struct arguments *given = input;
    if (subject_take(&given->subject, key, value)) return GDN_OK;
    switch (key) {
    case KEY_KEEP:
        return options_real("--keep", value, 0, 1, &given->keep);
    case KEY_BY:
        given->by = value;
        return GDN_OK;
    case KEY_LAYERS:
        return options_long("--layers", value, 1, 100000, &given->layers);
    case KEY_OUTPUT:
        return options_path("--output", value, &given->output);
    case KEY_POINTS:
        return options_long("--points", value, 2, MAX_EDGES + 1, &given->points);
    case KEY_SVG:
        given->svg = value;
        return GDN_OK;
    default:
        given->json = true;
        return GDN_OK;
    }
}

static const struct command_line line = {
    .arguments = "CHECKPOINT",
    .doc =
        "Measure what each delta connection of a trained model does for its loss, and write the model "
        "without the "
        "least important of them. CHECKPOINT is a run directory, which stands for the newest checkpoint in "
        "it, its "
        "checkpoints/best or a step_N directory there, or a checkpoint.h5."
        "\v"
        "Examples:\n"
        "  gdn prune runs/small\n"
        "  gdn prune runs/small --keep 0.5 --output runs/half\n"
        "  gdn prune runs/small --layers 2 --output runs/less\n"
        "  gdn eval runs/half\n"
        "  gdn train runs/half/config.yaml --run-dir runs/healed\n"
        "  mpirun -n 4 gdn prune runs/small --by contribution --svg curve.svg\n"
        "\n"
        "A connection is judged by how much the loss on validation data grows without it alone "
        "(leave-one-out), the others "
        "staying as they are; where the aggregate is a mean or shares, these are made anew. That takes one "
        "evaluation for each "
        "connection. --by contribution takes one evaluation for all: the mean gate times the mean root mean "
        "square of what it adds, "
        "where it has a mix times that. --by first-order takes one pass forward and backward, on the cpu: what groups of "
        "about 1024 tokens would lose without it, the gradient times the change of what enters the layer, root mean "
        "square over groups. Both are cheap and rough: with leave-one-out the correlation of each order with that is "
        "printed, 1 where they are the same.\n\n"
        "Printed are the connections from the most important to the least, and the loss curve: with how many "
        "of the most important ones "
        "which loss is left. Importance is measured once, so that what two connections do for each other is "
        "seen in the curve "
        "alone. --keep F keeps round(F x connections) of them. What is measured on the data that connections "
        "were chosen by flatters a "
        "little: choose by one set (--data, --validation) and judge by another, with gdn eval.\n\n"
        "train.prune in a configuration prunes connections by the same measures while training goes on.\n\n"
        "--layers N leaves out N layers in place of connections: those without which alone the loss grows least, a model and an "
        "evaluation each, or with --by angle those that turn the stream least, of one pass. A connection into such a layer "
        "goes with it, one that reads it reads the nearest layer below that stays, or the embedding. On the cpu; not of "
        "models with model.rules or model.exit.\n\n"
        "--output DIR, which must be new or empty, gets checkpoint.h5, with the tensors of the connections "
        "kept and all others, and "
        "config.yaml, which lists these as model.delta.edges and starts from those weights "
        "(checkpoint.init_from); set "
        "train.steps, train.lr and train.warmup_steps for a short training that heals what was lost. "
        "Connections that are not there "
        "take no time, no memory and no bytes between stages: gdn plan DIR/config.yaml says what is left.\n\n"
        "With --json one line is printed: an object of checkpoint, step, sequences, tokens, loss (nats a "
        "token, with all), by, correlation "
        "and effect_correlation (null unless leave-one-out), keep, kept (how many), kept_loss, output (all null where not given), "
        "connections, a list by falling importance of "
        "target, source (-1: the embedding), distance, gate, contribution, effect (first-order), increase (of the loss without it; "
        "null where not measured) and kept, and "
        "curve, a list of kept and loss. With --layers: checkpoint, step, sequences, tokens, loss, by, kept (layers), "
        "kept_loss, output and layers, a list by falling importance of layer, angle (in parts of half a turn), increase and "
        "kept.",
    .common = OPTION_SET,
    .own = own,
    .take = take,
    .min = 1,
    .max = 1,
};

static void tell(void *context, int done, int all) {
    reading_tell_each(context, "evaluations", done, all);
}

static int measure(struct subject *subject, const struct arguments *given, enum prune_by by, struct prune *prune) {
    const struct saved_model *saved = &subject->saved;
    const struct edge_set *active = loop_active(&saved->config, &subject->evaluation.pipeline, saved->step);
    int count = prune_count(&subject->evaluation.pipeline.edges, active);
    struct reading_progress progress;
    struct prune_job job = {.evaluation = &subject->evaluation,
                            .active = active,
                            .config = &saved->config.model,
                            .table = &saved->table,
                            .state = &saved->state,
                            .ops = subject->ops,
                            .by = by,
                            .keep = isnan(given->keep) ? -1 : (int)lround(given->keep * count),
                            .points = (int)given->points,
                            .tell = tell,
                            .context = &progress};
    reading_begin(&progress, subject->mesh.rank == 0 ? stderr : NULL);
    int status = prune_measure(&job, prune);
    reading_end(&progress);
    return gdn_fail_in(status, "%s", saved->path);
}

/* On rank 0. */
static int give(const struct subject *subject, const struct arguments *given, enum prune_by by,
                const struct prune *prune, struct outcome *outcome) {
    struct prune_report report = {.prune = prune,
                                  .checkpoint = subject->saved.path,
                                  .step = subject->saved.step,
                                  .sequences = validation_sequences(&subject->validation, 0),
                                  .tokens = subject->evaluation.result[0].counted,
                                  .by = by,
                                  .keep = given->keep,
                                  .output = given->output};
    if (given->output) TRY(prune_write(prune, subject->saved.path, outcome));
    if (given->svg) TRY(prune_draw(prune, given->svg));
    return given->json ? prune_print_json(&report) : prune_print(&report, stdout);
}

/* The folder is made, and the picture's file looked at, before anything is computed. */
static int open_output(const struct mesh *mesh, const struct options *options, const struct arguments *given,
                       struct outcome *outcome) {
    if (given->output && isnan(given->keep) && !given->layers)
        return gdn_fail(
            GDN_INPUT,
            "--output %s: --keep says what part of the connections the model there has, or --layers how many layers it "
            "has not, and is missing",
            given->output);
    if (mesh->rank != 0) return GDN_OK;
    if (given->svg) TRY(subject_verify_output("--svg", given->svg, options, &given->subject));
    if (!given->output) return GDN_OK;
    TRY(prune_verify_folder(given->output));
    return outcome_open(given->output, outcome);
}

static int prune_connections(struct subject *subject, const struct arguments *given, enum prune_by by,
                             struct outcome *outcome) {
    struct prune prune = {0};
    if (by == PRUNE_FIRST_ORDER && !subject->ops->device->host)
        return mesh_agree(&subject->mesh, gdn_fail(GDN_INPUT, "--by first-order is measured on the cpu alone; give --set "
                                                              "device=cpu"));
    int status = measure(subject, given, by, &prune);
    if (!status)
        status = mesh_agree(&subject->mesh,
                            subject->mesh.rank == 0 ? give(subject, given, by, &prune, outcome) : GDN_OK);
    prune_free(&prune);
    return status;
}

static int prune_model(struct subject *subject, const struct options *options, const struct arguments *given,
                       struct outcome *outcome) {
    int by;
    TRY(mesh_agree(&subject->mesh,
                   given->layers ? find_by(given->by, prune_layers_by_words, "of layers leave-one-out or angle", &by)
                                 : find_by(given->by, prune_by_words, "leave-one-out, contribution or first-order (of --layers angle too)", &by)));
    if (given->layers && (!isnan(given->keep) || given->svg))
        return mesh_agree(&subject->mesh, gdn_fail(GDN_INPUT, "--layers leaves out layers, %s is of connections: one of "
                                                              "them is expected",
                                                   given->svg ? "--svg" : "--keep"));
    TRY(mesh_agree(&subject->mesh, open_output(&subject->mesh, options, given, outcome)));
    TRY(subject_load(subject, options, &given->subject));
    const struct prune_layers_wish wish = {.less = (int)given->layers,
                                           .by = (enum prune_layers_by)by,
                                           .output = given->output,
                                           .json = given->json};
    return given->layers ? prune_layers_command(subject, &wish, outcome)
                         : prune_connections(subject, given, (enum prune_by)by, outcome);
}

int cmd_prune(int argc, char **argv) {
    struct options options;
    struct arguments given = {.subject.first = true, .keep = NAN, .points = 16};
    subject_begin();
    int status = options_parse(&line, argc, argv, &options, &given);
    if (!status && !options.done) {
        struct subject subject = {0};
        struct outcome outcome = {0};
        status = ranks_begin(&subject.mesh);
        if (!status) status = prune_model(&subject, &options, &given, &outcome);
        if (executor_failed(subject.evaluation.executor)) ranks_abort(&subject.mesh, status);
        outcome_close(&outcome);
        subject_free(&subject);
        status = ranks_end(&subject.mesh, status);
    }
    options_free(&options);
    return status;
}
