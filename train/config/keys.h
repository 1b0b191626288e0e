/* The configuration's keys, one row each. Reading, defaults, limits, writing, --help-config and the
 * comparison at a resume walk this table; a new key is one new member of struct config and one new row.
 * For config/, and for reports, which list them. */
#ifndef GDN_CONFIG_KEYS_H
#define GDN_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "train/config/config.h"

enum key_type {
    KEY_INT,
    KEY_LONG,
    KEY_UNSIGNED, /* uint64_t */
    KEY_REAL,     /* double */
    KEY_BOOL,
    KEY_WORD,    /* int: the index of one of `choices` */
    KEY_STRING,  /* char *, allocated */
    KEY_FILES,   /* struct path_list: one text, '' for none, or a list of them */
    KEY_INTS,    /* int[MAX_DISTANCES] and its count */
    KEY_REALS,   /* double[MAX_EXITS] and its count */
    KEY_EDGES,   /* struct delta_edge[MAX_EDGES] and its count; a list of [TARGET, SOURCE] */
    KEY_RAMP,    /* long[RAMP_MAX][2] and its count */
    KEY_GROUPS,  /* struct parameter_group[GROUPS_MAX] and its count; a list of {match, lr_scale, …} */
    KEY_RULES,   /* struct rule_config[MAX_RULES] and its count; a list of {kind, …} */
    KEY_SOURCES, /* struct source_config *, allocated, and its count; a list of {path, weight, name} */
    KEY_PATHS,   /* the same as a mapping of names to paths */
};

struct key {
    const char *path; /* "model.delta.kind"; also the member of struct config */
    enum key_type type;
    size_t offset;       /* of the member in its struct */
    const char *value;   /* the default, as YAML; NULL: must be given */
    double min, max;     /* limits of a number, or of each in a list */
    bool below;          /* max itself is not allowed */
    const char *choices; /* KEY_WORD: "cosine|linear", in the order of the enum */
    const char *(*rows)(void); /* KEY_WORD, in its place: the same of a table, by its rows */
    size_t count_offset; /* lists: of the int that counts the entries */
    bool home;           /* KEY_STRING: a path, at whose start ~/ is the home directory */
    bool resume;         /* must be as in the checkpoint that a run continues from */
    bool asked;          /* but may change there where --resume-with asks for it */
    const char *help;
};

extern const struct key config_keys[];
enum { CONFIG_KEYS = 152 }; /* rows of config_keys, which its initialiser is checked against */

/* The keys of one entry of data.sources; offsets are in struct source_config. */
enum { SOURCE_PATH, SOURCE_WEIGHT, SOURCE_NAME, SOURCE_KEYS };
extern const struct key source_keys[SOURCE_KEYS];

/* The same of an entry of train.groups, in struct parameter_group; `match` is read by itself. */
enum { GROUP_NAMES, GROUP_LR_SCALE, GROUP_WEIGHT_DECAY, GROUP_BETA1, GROUP_BETA2, GROUP_KEYS };
extern const struct key group_keys[GROUP_KEYS];

/* The row of a path, or NULL. */
const struct key *key_find(const char *path);

/* KEY_WORD: the words that it may have, "cosine|linear". */
const char *key_choices(const struct key *key);

/* Whether `path` names a section, such as "model.delta". */
bool key_is_section(const char *path);

/* The known key or section that a wrong path was probably meant to be, or NULL. */
const char *key_nearest(const char *path);

/* A member's path, checked by the compiler: KEY_PATH(model.delta.kind). */
#define KEY_PATH(member) (sizeof(((struct config *)0)->member) ? #member : NULL)

#endif
