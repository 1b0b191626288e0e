/* gdn eval: the loss of a checkpoint on a data set. */
#include "train/command/commands.h"

#include "train/command/eval_exits.h"
#include "train/command/json_line.h"
#include "train/command/options.h"
#include "train/command/subject.h"
#include "train/loop/loop.h"
#include "train/run/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_JSON = 256, KEY_EXITS, KEY_AGREEMENT, KEY_SVG };

static const struct argp_option own[] = {
    SUBJECT_OPTIONS("on all"),
    {"exits", KEY_EXITS, NULL, 0,
     "Also measure the model's exits (model.exit): loss, agreement with the last layer, and the confidence from "
     "which on --agreement is reached; of one set, the first or --validation's. On the cpu",
     0},
    {"agreement", KEY_AGREEMENT, "X", 0, "With --exits: the wished agreement (default 0.98)", 0},
    {"svg", KEY_SVG, "FILE", 0, "With --exits: also draw loss and agreement over layers", 0},
    {"json", KEY_JSON, NULL, 0, "Print one object as JSON, on one line", 0},
    {0},
};

struct arguments {
    struct subject_options subject;
    bool json, exits;
    double agreement; /* NAN: not given */
    const char *svg;  /* NULL: not given */
};

static int take(int key, const char *value, void *input) {
    struct arguments *given = input;
    if (key == KEY_JSON) given->json = true;
    if (key == KEY_EXITS) given->exits = given->subject.first = true;
    if (key == KEY_SVG) given->svg = value;
    if (key == KEY_AGREEMENT) return options_real("--agreement", value, 0, 1, &given->agreement);
    subject_take(&given->subject, key, value);
    return 0;
}

static const struct command_line line = {
    .arguments = "CHECKPOINT",
    .doc =
        "Measure the loss of a checkpoint. CHECKPOINT is a run directory, which stands for the newest "
        "checkpoint "
        "in it, its checkpoints/best or a step_N directory there, or a checkpoint.h5."
        "\v"
        "Examples:\n"
        "  gdn eval runs/small\n"
        "  gdn eval runs/small/checkpoints/best --data book.txt --format text\n"
        "  gdn eval runs/small --validation letters --json\n"
        "  mpirun -n 4 gdn eval runs/small --set train.eval_batches=100\n"
        "\n"
        "Measured is what training measures: data.validation, or what data.validation_fraction holds out (of "
        "a "
        "mixture also each source's part), and data.validations, each under its name; or the one set that "
        "--validation names, or the file that --data names. Sequences have the run's train.sequence_length; "
        "the "
        "first train.eval_batches batches of each set are read, and with 0 every whole sequence of every "
        "source "
        "once, whatever its weight.\n\n"
        "Printed are the mean cross entropy of a token in nats and in bits, the perplexity (e to the power "
        "of "
        "the nats) and, where a tokenizer or bytes are known to be behind tokens, bits a byte: all that the "
        "tokens cost, those between "
        "documents too, over the bytes. They do not depend on the number of ranks: these share the "
        "sequences, "
        "and each holds the whole model, whatever mesh it was trained on (the run's mesh.* settings do not "
        "matter here).\n\n"
        "With --json one line is printed: an object of checkpoint, step, sequences, tokens, loss (nats a "
        "token), "
        "bits_per_token, bits_per_byte (null where not known) and perplexity, all of the first set, and "
        "losses, "
        "which has the loss of each set by its name.\n\n"
        "With --exits a table says of each exit its loss, for which part of tokens its likeliest token is the last "
        "layer's, and the least confidence (the probability of its likeliest token) such that, of the tokens that "
        "have it, the part --agreement agrees: what gdn generate --exit takes, as the line behind the table has "
        "it. In JSON: exits.",
    .common = OPTION_SET,
    .own = own,
    .take = take,
    .min = 1,
    .max = 1,
};

/* "1.23456 nats a token, 1.78 bits a byte, perplexity 3.4378, 60 sequences" of each set. */
static void print_sets(const struct subject *subject, FILE *out) {
    const struct validation *validation = &subject->validation;
    for (int i = 0; i < validation->sets; i++) {
        const struct evaluation_result *r = &subject->evaluation.result[i];
        long sequences = validation_sequences(validation, i);
        fprintf(out, "%-12s ", validation->set[i].name);
        if (!sequences) {
            fprintf(out, "no sequence among the first train.eval_batches batches\n");
            continue;
        }
        if (!(r->counted > 0)) {
            fprintf(out, "no target counts in the loss\n");
            continue;
        }
        fprintf(out, "%.9g nats a token", r->loss);
        if (!isnan(r->bits_per_byte)) fprintf(out, ", %.6g bits a byte", r->bits_per_byte);
        fprintf(out, ", perplexity %.6g, %ld sequences\n", evaluation_perplexity(r), sequences);
    }
}

static int print_result(const struct subject *subject, FILE *out) {
    const struct evaluation_result *r = &subject->evaluation.result[0];
    fprintf(out, "checkpoint   %s, after %ld steps\n", subject->saved.path, subject->saved.step);
    const long sequences = validation_sequences(&subject->validation, 0),
               all = validation_all(&subject->validation, 0);
    fprintf(out, "data         %ld sequences of %ld tokens", sequences, subject->evaluation.length);
    if (sequences < all) fprintf(out, ", of %ld (all: --set train.eval_batches=0)", all);
    fputc('\n', out);
    fprintf(out, "loss         %.9g nats a token\n", r->loss);
    fprintf(out, "             %.6g bits a token\n", r->loss / M_LN2);
    if (!isnan(r->bits_per_byte)) fprintf(out, "             %.6g bits a byte\n", r->bits_per_byte);
    fprintf(out, "perplexity   %.6g\n", evaluation_perplexity(r));
    if (subject->validation.sets > 1) print_sets(subject, out);
    return 0;
}

/* `exits` NULL: not asked for. */
static int print_json(const struct subject *subject, const struct exits_report *exits) {
    const struct validation *validation = &subject->validation;
    const struct evaluation_result *r = &subject->evaluation.result[0];
    const long sequences = validation_sequences(validation, 0);
    json_t *losses = json_object();
    for (int i = 0; i < validation->sets; i++)
        if (json_object_set_new(losses, validation->set[i].name,
                                json_finite(subject->evaluation.result[i].loss))) {
            json_decref(losses);
            return gdn_fail(GDN_INTERNAL, "out of memory for the output as JSON");
        }
    json_t *object = json_pack(
        "{s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "checkpoint",
        json_bytes(subject->saved.path, strlen(subject->saved.path)), "step", (json_int_t)subject->saved.step,
        "sequences", (json_int_t)sequences, "tokens", (json_int_t)r->counted, "loss", json_finite(r->loss),
        "bits_per_token", json_finite(r->loss / M_LN2), "bits_per_byte", json_finite(r->bits_per_byte),
        "perplexity", json_finite(evaluation_perplexity(r)), "losses", losses);
    if (exits && object) json_object_set_new(object, "exits", exits_json(exits));
    return json_print_line(object);
}

static int check_options(const struct mesh *mesh, const struct options *options,
                         const struct arguments *given) {
    if (!given->exits && (given->svg || !isnan(given->agreement)))
        return gdn_fail(GDN_INPUT, "%s goes with --exits", given->svg ? "--svg" : "--agreement");
    if (!given->svg || mesh->rank != 0) return 0;
    return subject_verify_output("--svg", given->svg, options, &given->subject);
}

/* What --exits needs. */
static int check_exits(const struct subject *subject, const struct arguments *given) {
    if (!given->exits) return 0;
    if (!subject->saved.config.model.exit.num_layers)
        return gdn_fail(GDN_INPUT, "--exits: %s has no exits (model.exit.layers is [])", subject->saved.path);
    if (subject->ops->device->host) return 0;
    return gdn_fail(GDN_INPUT, "--exits: logits are read on the host; --set device=cpu is expected, not %s",
                    subject->ops->device->name);
}

static int print_exits(struct subject *subject, const struct arguments *given, const struct exits_found *found) {
    const struct exits_report report = {&subject->saved.config.model, found,
                                        isnan(given->agreement) ? 0.98 : given->agreement};
    if (given->svg) TRY(exits_draw(&report, given->svg));
    if (given->json) return print_json(subject, &report);
    TRY(print_result(subject, stdout));
    exits_print(&report, stdout);
    return 0;
}

static int evaluate(struct subject *subject, const struct options *options, const struct arguments *given) {
    struct mesh *mesh = &subject->mesh;
    double loss = NAN;
    TRY(mesh_agree(mesh, check_options(mesh, options, given)));
    TRY(subject_load(subject, options, &given->subject));
    struct saved_model *saved = &subject->saved;
    const struct edge_set *active = loop_active(&saved->config, &subject->evaluation.pipeline, saved->step);
    TRY(mesh_agree(mesh, check_exits(subject, given)));
    int status = 0;
    if (given->exits) {
        struct exits_found found;
        status = exits_measure(&subject->evaluation, &saved->config.model, active, &found);
        if (!status && mesh->rank == 0) status = print_exits(subject, given, &found);
        exits_found_free(&found);
        return mesh_agree(mesh, status);
    }
    TRY(evaluation_loss(&subject->evaluation, active, NULL, NULL, &loss));
    if (mesh->rank == 0) status = given->json ? print_json(subject, NULL) : print_result(subject, stdout);
    return mesh_agree(mesh, status);
}

int cmd_eval(int argc, char **argv) {
    struct options options;
    struct arguments given = {.agreement = NAN};
    subject_begin();
    int status = options_parse(&line, argc, argv, &options, &given);
    if (!status && !options.done) {
        struct subject subject = {0};
        status = ranks_begin(&subject.mesh);
        if (!status) status = evaluate(&subject, &options, &given);
        if (executor_failed(subject.evaluation.executor)) ranks_abort(&subject.mesh, status);
        subject_free(&subject);
        status = ranks_end(&subject.mesh, status);
    }
    options_free(&options);
    return status;
}
