/* gdn rules: what the rules between layers of a trained model have learned. */
#include "train/command/commands.h"

#include <string.h>

#include "kernels/base/status.h"
#include "train/command/json_line.h"
#include "train/command/options.h"
#include "train/command/outputs.h"
#include "train/command/saved_model.h"
#include "train/learned/learned.h"

enum { KEY_SVG = 256, KEY_JSON };

static const struct argp_option own[] = {
    {"svg", KEY_SVG, "FILE", 0, "Also draw it: a map of layers and sources, or a curve over layers, for each tensor", 0},
    {"json", KEY_JSON, NULL, 0, "Print one object as JSON, on one line", 0},
    {0},
};

struct arguments {
    const char *svg; /* NULL: not given */
    bool json;
};

static int take(int key, const char *value, void *input) {
    struct arguments *given = input;
    if (key == KEY_JSON) {
        given->json = true;
        return GDN_OK;
    }
    given->svg = value;
    return GDN_OK;
}

static const struct command_line line = {
    .arguments = "CHECKPOINT",
    .doc = "Show what the rules between layers of a trained model, the delta connection among them, have learned: layer by layer, and "
           "of each layer source by source. CHECKPOINT is a run directory, which stands for the newest checkpoint in it, its "
           "checkpoints/best or a step_N directory there, or a checkpoint.h5."
           "\v"
           "Examples:\n"
           "  gdn rules runs/small\n"
           "  gdn rules runs/small --svg learned.svg\n"
           "\n"
           "Printed is a table for each tensor of a rule: a line for each layer, a column for each source that it reads, emb standing for "
           "the embedding. A tensor with one number is shown as that, with its sign, a larger one by the root mean square of its numbers. "
           "Tensors that are a layer's own, whatever it reads, stand side by side in a last table. Names are those in checkpoints without "
           "layer and distance; model.md says what they are.\n\n"
           "--svg draws maps, red where a number is above zero and blue below.\n\n"
           "With --json one line is printed: an object of checkpoint, step and learned, a list of name, number (whether values are the "
           "numbers themselves) and values, a list of layer, source (-1: the embedding, null: the layer's own) and value.",
    .own = own,
    .take = take,
    .min = 1,
    .max = 1,
};

static const char *kind(const struct learned *l) {
    return l->number ? "the number itself" : "root mean square";
}

static void print_value(const struct learned *l, const struct learned_value *v) {
    printf(l->number ? " %+8.4f" : " %8.4f", v->value);
}

/* Of one that has sources; values of a layer follow one another. */
static void print_by_source(const struct learned *l) {
    int low = l->value[0].source, high = low, i = 0;
    for (int v = 0; v < l->count; v++) {
        if (l->value[v].source < low) low = l->value[v].source;
        if (l->value[v].source > high) high = l->value[v].source;
    }
    printf("\n%s, of each source: %s\n  layer", l->name, kind(l));
    for (int s = low; s <= high; s++) {
        if (s == -1)
            printf("      emb");
        else
            printf(" %8d", s);
    }
    while (i < l->count) {
        const int layer = l->value[i].layer;
        printf("\n  %5d", layer);
        for (int s = low; s <= high; s++) {
            if (i < l->count && l->value[i].layer == layer && l->value[i].source == s)
                print_value(l, &l->value[i++]);
            else
                printf("        .");
        }
    }
    putchar('\n');
}

static const struct learned_value *of_layer(const struct learned *l, int layer) {
    for (int i = 0; i < l->count; i++)
        if (l->value[i].layer == layer) return &l->value[i];
    return NULL;
}

/* A line of those that have none, where any has the layer. */
static void print_own_line(const struct learned_set *set, int layer) {
    bool any = false;
    for (int i = 0; i < set->count; i++) any = any || (set->learned[i].own && of_layer(&set->learned[i], layer));
    if (!any) return;
    printf("\n  %5d", layer);
    for (int i = 0; i < set->count; i++) {
        const struct learned *l = &set->learned[i];
        const struct learned_value *v = of_layer(l, layer);
        if (!l->own) continue;
        if (v)
            print_value(l, v);
        else
            printf("        .");
    }
}

/* Of all that have none: a column each, by number. */
static void print_own(const struct learned_set *set) {
    int count = 0;
    for (int i = 0; i < set->count; i++) {
        const struct learned *l = &set->learned[i];
        if (!l->own) continue;
        if (!count) printf("\nOf layers themselves\n");
        printf("  %d  %s: %s\n", ++count, l->name, kind(l));
    }
    if (!count) return;
    printf("  layer");
    for (int i = 1; i <= count; i++) printf(" %8d", i);
    for (int layer = 0; layer < set->layers; layer++) print_own_line(set, layer);
    putchar('\n');
}

static void print_all(const struct saved_model *saved, const struct learned_set *set) {
    printf("checkpoint   %s, after %ld steps\n", saved->path, saved->step);
    for (int i = 0; i < set->count; i++)
        if (!set->learned[i].own) print_by_source(&set->learned[i]);
    print_own(set);
}

static json_t *values_json(const struct learned *l) {
    json_t *list = json_array();
    for (int i = 0; i < l->count; i++) {
        const struct learned_value *v = &l->value[i];
        json_t *source = v->source == LEARNED_OWN ? json_null() : json_integer(v->source);
        json_array_append_new(list, json_pack("{s:i, s:o, s:o}", "layer", v->layer, "source", source, "value",
                                              json_finite(v->value)));
    }
    return list;
}

static int print_json(const struct saved_model *saved, const struct learned_set *set) {
    json_t *list = json_array();
    for (int i = 0; i < set->count; i++)
        json_array_append_new(list, json_pack("{s:s, s:b, s:o}", "name", set->learned[i].name, "number",
                                              set->learned[i].number, "values", values_json(&set->learned[i])));
    return json_print_line(json_pack("{s:o, s:I, s:o}", "checkpoint", json_bytes(saved->path, strlen(saved->path)),
                                     "step", (json_int_t)saved->step, "learned", list));
}

static int show(const struct saved_model *saved, const struct arguments *given) {
    struct learned_set set;
    int status = learned_read(&saved->table, saved->state.weight, saved->config.model.num_layers, &set);
    if (!status && !set.count)
        status = gdn_fail(GDN_INPUT, "%s has no rules between layers: model.rules is [], and there are no delta connections",
                          saved->path);
    if (!status && given->svg) status = learned_draw(&set, saved->path, given->svg);
    if (!status && given->json) status = print_json(saved, &set);
    if (!status && !given->json) print_all(saved, &set);
    learned_free(&set);
    return status;
}

static int load_and_show(const char *checkpoint, const struct arguments *given) {
    struct saved_model saved;
    struct mesh mesh = mesh_alone();
    if (given->svg) TRY(outputs_verify("--svg", given->svg, checkpoint));
    TRY(saved_model_load(&mesh, checkpoint, NULL, 0, &saved));
    int status = show(&saved, given);
    saved_model_free(&saved);
    return status;
}

int cmd_rules(int argc, char **argv) {
    struct arguments given = {0};
    struct options options;
    int status = options_parse(&line, argc, argv, &options, &given);
    if (!status && !options.done) status = load_and_show(options.argument[0], &given);
    options_free(&options);
    return status;
}
