/* A trained model and data that it is measured on: what `gdn eval` and `gdn prune` begin with. Each rank
 * holds the whole model, however it was trained, and a part of the sequences. */
#ifndef GDN_SUBJECT_H
#define GDN_SUBJECT_H

#include "dist/mesh/mesh.h"
#include "train/command/options.h"
#include "train/command/saved_model.h"
#include "train/evaluation/evaluation.h"
#include "train/evaluation/validation.h"
#include "train/run/tokenizer.h"

/* Options that say which data; NULL: not given. */
struct subject_options {
    const char *data;       /* a file or glob, in place of the run's validation data */
    const char *format;     /* of it */
    const char *validation; /* the one set of the run's that is meant; */
    bool first;             /* where that is not given, the first alone, not all */
};

/* Their rows and what takes them, for a command's table of options: false for a key of another option. */
enum { SUBJECT_KEY_DATA = 512, SUBJECT_KEY_FORMAT, SUBJECT_KEY_VALIDATION };
#define SUBJECT_OPTIONS(validation_default)                                                                  \
    {                                                                                                        \
        "data",                                                                                              \
        SUBJECT_KEY_DATA,                                                                                    \
        "FILE",                                                                                              \
        0,                                                                                                   \
        "Measure on this file or glob instead of the run's validation data",                                 \
        0},                                                                                                  \
        {"format", SUBJECT_KEY_FORMAT, "FORMAT", 0, subject_format_help, 0}, {                               \
        "validation", SUBJECT_KEY_VALIDATION, "NAME", 0,                                                     \
            "Measure on this one of the run's validation sets (default: " validation_default ")", 0          \
    }
extern char subject_format_help[];
bool subject_take(struct subject_options *options, int key, const char *value);
/* Fills subject_format_help, before options are parsed. */
void subject_begin(void);

/* outputs_verify of a file that `option` names, which is not to be the data's either. */
int subject_verify_output(const char *option, const char *path, const struct options *options,
                          const struct subject_options *given);

struct subject {
    struct mesh mesh; /* of ranks_begin */
    struct saved_model saved;
    struct run_tokenizer tokenizer;
    struct validation validation;
    struct evaluation evaluation;
    const struct ops *ops;
};

/* Loads the model of options->argument[0] with --set and --format over its configuration, opens the data and
 * prepares evaluations; `subject` has its mesh and nothing else. Collective. Whatever this returns,
 * subject_free must follow. GDN_INPUT naming the option or file at fault, GDN_INTERNAL. */
int subject_load(struct subject *subject, const struct options *options, const struct subject_options *given);
void subject_free(struct subject *subject);

#endif
