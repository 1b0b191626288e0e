/* The command line of a subcommand: glibc's argp, made to return instead of ending the program. `--help`
 * prints to standard output; bad usage is one recorded failure (GDN_INPUT) that names the option and the
 * nearest right one. */
#ifndef GDN_OPTIONS_H
#define GDN_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "data/format.h"

/* Options that several commands have, to be joined with `|`. */
enum common_option {
    OPTION_SET = 1,          /* --set KEY=VALUE, repeatable */
    OPTION_RUN_DIR = 2,      /* --run-dir DIR */
    OPTION_RESUME = 4,       /* --resume auto|none|PATH */
    OPTION_HELP_CONFIG = 8,  /* --help-config: prints every configuration key */
    OPTION_RESUME_WITH = 16, /* --resume-with KEY=VALUE, repeatable */
};

/* What a command takes. */
struct command_line {
    const char *arguments; /* of the usage line: "CONFIG.yaml"; "" for none */
    const char *doc;       /* the text of --help before the options and, after a '\v', the text behind them */
    unsigned common;       /* enum common_option, joined */
    const struct argp_option *own; /* the command's own options, ended by {0}; NULL for none. Keys from 1 to
                                      255 are short options as well */
    /* Called for each own option, with its key and value (NULL where it takes none); returns a status. */
    int (*take)(int key, const char *value, void *input);
    int min, max; /* how many arguments without a dash; max −1: any number */
};

/* What the user gave. */
struct options {
    bool done;  /* --help, --usage or --help-config was answered: return GDN_OK and do nothing more */
    char **set; /* [num_set] "KEY=VALUE", in order, as config_load takes them */
    int num_set;
    char **resume_with; /* [num_resume_with] the same, as config_resume takes them */
    int num_resume_with;
    const char *run_dir; /* NULL: not given */
    const char *resume;  /* NULL: not given */
    char **argument;     /* [num_arguments] */
    int num_arguments;
};

/* Reads argv (argv[0] is "gdn NAME") into `out`, calling line->take(…, input) for the command's own options.
 * Options and arguments may be mixed; "--" ends the options. Not collective; needs no MPI. `out` is owned by
 * the caller: options_free, after success and failure alike. Fails with GDN_INPUT, or what `take`
 * returned. */
int options_parse(const struct command_line *line, int argc, char **argv, struct options *out, void *input);
void options_free(struct options *options);

/* A decimal number given to an option, within limits; fails with GDN_INPUT naming the option, the text and
 * the limits. */
int options_long(const char *option, const char *text, long min, long max, long *out);
int options_real(const char *option, const char *text, double min, double max, double *out);

/* A path given to an option. GDN_INPUT names the option where it is ''. */
int options_path(const char *option, const char *text, const char **out);

/* --data-changed refuse|accept. GDN_INPUT for another word. */
int options_data_changed(const char *text, bool *accept);

/* The token format that --format names. GDN_INPUT, with all names, where there is none. */
int options_format(const char *name, const struct token_format **out);

/* GDN_INPUT unless an option that the command (its full name) needs was given. */
int options_need(bool given, const char *command, const char *option);

/* A command that consists of commands: "gdn data write", "gdn data show", … */
struct command_group {
    const char *name;     /* "gdn data" */
    const char *expected; /* its commands in words: "write, show or sample" */
    const char *overview; /* all of its --help */
    /* [count] rows of `size` bytes that begin with the command's full name, a char pointer. */
    const void *commands;
    size_t size;
    int count;
    int (*run)(int i, int argc, char **argv); /* command i; argv[0] is its full name */
};

/* Runs the command that argv[1] names, or answers --help. GDN_INPUT for any other. */
int options_choose(const struct command_group *group, int argc, char **argv);

#endif
