#include "train/command/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "train/command/commands.h"
#include "train/config/config.h"
#include "train/config/nearest.h"
#include "train/config/number.h"

/* Keys of the options that are handled here; those of a command's own are smaller. */
enum { KEY_SET = 0x1000, KEY_RUN_DIR, KEY_RESUME, KEY_HELP_CONFIG, KEY_RESUME_WITH, KEY_HELP, KEY_USAGE };

/* Row i belongs to bit i of enum common_option; the last two every command has. */
static const struct argp_option common[] = {
    {"set", KEY_SET, "KEY=VALUE", 0,
     "Override a configuration key, such as train.lr=3e-4; repeatable, later ones win", 0},
    {"run-dir", KEY_RUN_DIR, "DIR", 0, "The run's directory (default: runs/ and the configuration's name)",
     0},
    {"resume", KEY_RESUME, "auto|none|PATH", 0,
     "auto (default): continue from the newest valid checkpoint of the run directory, or start where there "
     "is none; "
     "none: start, and refuse a run directory that has checkpoints; PATH: continue from this checkpoint",
     0},
    {"help-config", KEY_HELP_CONFIG, NULL, 0, "Explain every configuration key", 0},
    {"resume-with", KEY_RESUME_WITH, "KEY=VALUE", 0,
     "Go on from a checkpoint with another train.batch_size, train.batch_ramp, train.sequence_length or "
     "train.optimizer, from there on; repeatable, and harmless where the change is made already",
     0},
    {"help", KEY_HELP, NULL, 0, "Explain this command", -1},
    {"usage", KEY_USAGE, NULL, 0, "The command's form in short", -1},
};
enum { COMMON = sizeof common / sizeof *common, CHOSEN = COMMON - 2 };

/* One command line being parsed. */
struct parse {
    const struct command_line *line;
    struct argp argp;
    const char *name; /* "gdn train" */
    struct options *out;
    void *input;
    int status;
};

/* Names what getopt stumbled over: an option that is unknown, ambiguous, or with a value too few or too
 * many. */
static int bad_option(const struct parse *parse, const char *word) {
    const struct argp_option *options = parse->argp.options;
    bool is_long = word[1] == '-';
    int length = is_long ? (int)strcspn(word, "=") : 2, matches = 0, count = 0;
    while (options[count].name || options[count].key || options[count].doc) count++;
    const char *names[count + 1], *likely[2] = {NULL};
    memset(names, 0, sizeof names);
    for (int i = 0, named = 0; i < count; i++) {
        if (options[i].name) names[named++] = options[i].name;
        bool exact = is_long ? options[i].name && (int)strlen(options[i].name) == length - 2
                             : options[i].key == word[1];
        bool begins =
            is_long ? options[i].name && !strncmp(options[i].name, word + 2, (size_t)length - 2) : exact;
        if (begins && exact && options[i].arg)
            return gdn_fail(GDN_INPUT, "%s: %.*s needs a value: %.*s %s", parse->name, length, word, length,
                            word, options[i].arg);
        if (begins && exact) return gdn_fail(GDN_INPUT, "%s: %.*s takes no value", parse->name, length, word);
        if (begins && matches < 2) likely[matches++] = options[i].name;
    }
    if (matches == 2)
        return gdn_fail(GDN_INPUT, "%s: %.*s may be --%s or --%s: write it out", parse->name, length, word,
                        likely[0], likely[1]);
    if (matches == 1)
        return gdn_fail(GDN_INPUT, "%s: %.*s is short for --%s, and has a value too few or too many",
                        parse->name, length, word, likely[0]);
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", length - 2, word + 2);
    const char *near = is_long ? nearest_word(copy, names) : NULL;
    if (near)
        return gdn_fail(GDN_INPUT, "%s: unknown option %.*s; did you mean --%s?", parse->name, length, word,
                        near);
    return gdn_fail(GDN_INPUT, "%s: unknown option %.*s; %s --help lists them", parse->name, length, word,
                    parse->name);
}

static error_t on_option(int key, char *value, struct argp_state *state) {
    struct parse *parse = state->input;
    struct options *out = parse->out;
    switch (key) {
    case ARGP_KEY_ARG:
        out->argument[out->num_arguments++] = value;
        return 0;
    case KEY_SET:
        out->set[out->num_set++] = value;
        return 0;
    case KEY_RUN_DIR:
        out->run_dir = value;
        return 0;
    case KEY_RESUME:
        out->resume = value;
        return 0;
    case KEY_RESUME_WITH:
        out->resume_with[out->num_resume_with++] = value;
        return 0;
    case KEY_HELP_CONFIG:
        if (gdn_print_failure_here()) config_help(stdout);
        out->done = true;
        return ECANCELED; /* what follows does not count any more */
    case KEY_HELP:
    case KEY_USAGE:
        if (gdn_print_failure_here())
            argp_help(&parse->argp, stdout, key == KEY_HELP ? ARGP_HELP_STD_HELP : ARGP_HELP_USAGE,
                      state->name);
        out->done = true;
        return ECANCELED;
    case ARGP_KEY_ERROR:
        if (out->done || parse->status) return 0;
        /* getopt is past the word it could not take, unless that is a cluster of short options. */
        int at = state->next > 1 && state->argv[state->next - 1][0] == '-' ? state->next - 1 : state->next;
        parse->status = at < state->argc
                            ? bad_option(parse, state->argv[at])
                            : gdn_fail(GDN_INPUT, "%s: bad usage; see %s --help", parse->name, parse->name);
        return 0;
    default:
        if (key > KEY_USAGE) return ARGP_ERR_UNKNOWN; /* argp's other events */
        parse->status = parse->line->take(key, value, parse->input);
        return parse->status ? ECANCELED : 0;
    }
}

/* The common options that were chosen and the command's own; free it. */
static struct argp_option *join_options(const struct command_line *line) {
    int own = 0, count = 0;
    while (line->own && (line->own[own].name || line->own[own].key || line->own[own].doc)) own++;
    struct argp_option *all = calloc((size_t)(own + COMMON + 1), sizeof *all);
    if (!all) return NULL;
    for (int i = 0; i < own; i++) all[count++] = line->own[i];
    for (int i = 0; i < COMMON; i++)
        if (i >= CHOSEN || (line->common & 1u << i)) all[count++] = common[i];
    return all;
}

static int check_arguments(const struct parse *parse) {
    const struct command_line *line = parse->line;
    int count = parse->out->num_arguments;
    if (count < line->min)
        return gdn_fail(GDN_INPUT, "%s: an argument is missing: %s %s is expected; %s --help explains it",
                        parse->name, parse->name, line->arguments, parse->name);
    if (line->max >= 0 && count > line->max)
        return gdn_fail(GDN_INPUT, "%s: '%.200s' is an argument too many: %s %s is expected", parse->name,
                        parse->out->argument[line->max], parse->name, line->arguments);
    return GDN_OK;
}

int options_parse(const struct command_line *line, int argc, char **argv, struct options *out, void *input) {
    *out = (struct options){0};
    struct argp_option *all = join_options(line);
    out->set = calloc((size_t)argc + 1, sizeof *out->set);
    out->resume_with = calloc((size_t)argc + 1, sizeof *out->resume_with);
    out->argument = calloc((size_t)argc + 1, sizeof *out->argument);
    if (!all || !out->set || !out->resume_with || !out->argument) {
        free(all);
        return gdn_fail(GDN_INTERNAL, "out of memory for the command line");
    }
    struct parse parse = {.line = line, .name = argv[0], .out = out, .input = input};
    parse.argp =
        (struct argp){.options = all, .parser = on_option, .args_doc = line->arguments, .doc = line->doc};
    int error = argp_parse(&parse.argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &parse);
    free(all);
    if (out->done) return GDN_OK;
    if (parse.status) return parse.status;
    if (error)
        return gdn_fail(GDN_INTERNAL, "%s: the command line cannot be read: %s", argv[0], strerror(error));
    return check_arguments(&parse);
}

void options_free(struct options *options) {
    free(options->set);
    free(options->resume_with);
    free(options->argument);
    *options = (struct options){0};
}

int options_long(const char *option, const char *text, long min, long max, long *out) {
    if (number_long(text, out) && *out >= min && *out <= max) return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s is '%.100s': an integer from %ld to %ld is expected", option, text, min,
                    max);
}

int options_real(const char *option, const char *text, double min, double max, double *out) {
    if (number_real(text, out) && *out >= min && *out <= max) return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s is '%.100s': a decimal number from %g to %g is expected", option, text,
                    min, max);
}

int options_path(const char *option, const char *text, const char **out) {
    *out = text;
    return *text ? GDN_OK : gdn_fail(GDN_INPUT, "%s is '': a path is expected", option);
}

int options_data_changed(const char *text, bool *accept) {
    *accept = !strcmp(text, "accept");
    if (*accept || !strcmp(text, "refuse")) return GDN_OK;
    return gdn_fail(GDN_INPUT, "--data-changed '%.100s': refuse or accept is expected", text);
}

int options_format(const char *name, const struct token_format **out) {
    char list[FORMAT_LIST];
    *out = token_format_named(name);
    if (*out) return GDN_OK;
    return gdn_fail(GDN_INPUT, "--format '%s': %s is expected", name,
                    token_format_list(FORMATS, " or ", list));
}

int options_need(bool given, const char *command, const char *option) {
    if (given) return GDN_OK;
    return gdn_fail(GDN_INPUT, "%s: %s is missing; see '%s --help'", command, option, command);
}

int options_choose(const struct command_group *group, int argc, char **argv) {
    const char *wanted = argc > 1 ? argv[1] : "";
    if (!strcmp(wanted, "--help")) {
        fputs(group->overview, stdout);
        return commands_finish_printing();
    }
    for (int i = 0; i < group->count; i++) {
        const char *name = *(const char *const *)((const char *)group->commands + (size_t)i * group->size);
        if (strcmp(wanted, strrchr(name, ' ') + 1)) continue;
        argv[1] = (char *)name; /* what its usage messages begin with */
        return group->run(i, argc - 1, argv + 1);
    }
    if (!*wanted)
        return gdn_fail(GDN_INPUT, "%s: %s is expected; see '%s --help'", group->name, group->expected,
                        group->name);
    return gdn_fail(GDN_INPUT, "%s: '%s' is unknown; %s is expected", group->name, wanted, group->expected);
}
