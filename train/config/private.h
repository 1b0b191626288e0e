/* What the files of this folder share: a YAML document, the places that values come from, and the texts of
 * errors. */
#ifndef GDN_CONFIG_PRIVATE_H
#define GDN_CONFIG_PRIVATE_H

#include <libfyaml.h>
#include <stdio.h>

#include "train/config/config.h"
#include "train/config/keys.h"

/* ------------------------------------------------------------------------------- where a value comes from */

struct place {
    const char *file; /* NULL: the default, or --set */
    const char *set;  /* "KEY=VALUE" of an option; NULL: not from there */
    int line;         /* 0: not known */
    bool resumed;     /* the option is --resume-with, not --set */
};

/* A configuration that is being read. */
struct reading {
    struct config *config;
    const char *name;                /* of the file, for messages */
    struct place place[CONFIG_KEYS]; /* of each key's value; both NULL: the default */
    bool trained;                    /* of a trained model, which may be used elsewhere than it was trained */
};

/* Where the value of a key comes from: `path` as in KEY_PATH. */
const struct place *key_place(const struct reading *reading, const char *path);

/* Text from the user in a form that fits one line of a message: control characters become blanks, what is too
 * long ends in "...". `out` has room for SHOWN characters and is returned. */
enum { SHOWN = 128 };
const char *shown(const char *text, char *out);

/* Records a failure (GDN_INPUT) that begins with the place: "FILE, line 3: …" or "--set KEY=VALUE: …". */
int fail_at(const struct place *place, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ------------------------------------------------------------------------------------------ config/yaml.c */

struct yaml {
    struct fy_diag *diag;
    struct fy_parser *parser;
    struct fy_document *document; /* NULL: the text holds none */
};

/* Parses exactly one document. `place` names the text's origin; syntax errors give line and column. */
int yaml_open(const char *text, size_t length, const struct place *place, struct yaml *out);
void yaml_close(struct yaml *yaml);

/* Follows an alias to the node it stands for; refuses tags. `label` is the key, for messages. */
int yaml_resolve(struct fy_node *node, const struct place *place, const char *label, struct fy_node **out);

/* The document's node, NULL for a text without one. */
struct fy_node *yaml_root(const struct yaml *yaml);

/* The line of the node's first scalar, or `otherwise` where there is none. */
int yaml_line(struct fy_node *node, int otherwise);

/* The node as one line of YAML, for messages; NULL stands for an empty text. `out` as in shown(). */
const char *yaml_shown(struct fy_node *node, char *out);

/* A key of a mapping: "FILE, line L: …" where it is no plain text. `out` is owned by the caller (free). */
int yaml_key(struct fy_node *mapping, struct fy_node_pair *pair, const struct place *place,
             const char *section, char **out);

/* ------------------------------------------------------ config/allowed.c, config/scalar.c, config/entry.c */

/* What is allowed: "an integer from 1 to 64 in plain digits". */
void value_allowed(const struct key *key, FILE *out);

/* Records that the value is not what the key allows. */
int value_wrong(const struct key *key, const char *label, struct fy_node *node, const struct place *place);

/* value_read and value_write (below) for numbers, truth values, words and texts; `node` is no alias. */
int scalar_read(void *base, const struct key *key, const char *label, struct fy_node *node,
                const struct place *place);
void scalar_write(const void *base, const struct key *key, FILE *out);

/* Writes text in double quotes, as YAML. */
void value_write_string(const char *text, FILE *out);

/* The same, and value_free, for what may stand in an entry of a list: these and files. */
int entry_read(void *base, const struct key *key, const char *label, struct fy_node *node,
               const struct place *place);
void entry_write(const void *base, const struct key *key, FILE *out);
void entry_free(void *base, const struct key *key);

/* Reads the key's default by entry_read or value_read. */
typedef int read_value(void *base, const struct key *key, const char *label, struct fy_node *node,
                       const struct place *place);
int default_read(void *base, const struct key *key, read_value *read);

/* ----------------------------------------------------------------------------------------- config/value.c */

/* Reads the node into the key's member of the struct at `base` and checks type and limits. `label` names it
 * in messages. Replaces (and frees) the value that was there. */
int value_read(void *base, const struct key *key, const char *label, struct fy_node *node,
               const struct place *place);

/* Reads the key's default. */
int value_default(void *base, const struct key *key);

/* Writes the member as YAML on one line. */
void value_write(const void *base, const struct key *key, FILE *out);

/* The same in a string of its own (free it), NULL without memory. */
char *value_text(const void *base, const struct key *key);

/* Whether two members have the same text. */
bool value_same(const void *a, const void *b, const struct key *key);

/* Frees what the member points at and empties it. */
void value_free(void *base, const struct key *key);

/* ------------------------------------------------------------------------------------------ config/list.c */

/* value_read, value_write and value_free for the list types; `list` is a sequence, `entries` the member. */
int list_read_ints(void *base, const struct key *key, const char *label, struct fy_node *list,
                   const struct place *place);
int list_read_sources(void *base, const struct key *key, const char *label, struct fy_node *list,
                      const struct place *place);
/* The same of a mapping of names to paths. */
int list_read_paths(void *base, const struct key *key, const char *label, struct fy_node *mapping,
                    const struct place *place);
void list_write(const void *entries, const struct key *key, int count, FILE *out);
void list_free_sources(void *base, const struct key *key);

/* What an entry of a list is, so that it is read like any other value. */
struct place place_of(struct fy_node *node, const struct place *list);

/* The keys that an entry may have which is a mapping, and what it has in words: "path, and may have name". */
struct members {
    const struct key *key; /* [count] */
    int count;
    const char *words;
    const char *entry; /* what has them, in messages: "an entry" */
};
/* Which of them a pair of the mapping gives, and its place. GDN_INPUT for one that is none. */
int list_member(struct fy_node *mapping, struct fy_node_pair *pair, const struct place *place,
                const char *label, const struct members *of, struct place *at, int *member);

/* Reads the members that a mapping gives into `base`, as `label`.KEY, and of the others the defaults; messages
 * say that `who` lacks one that has none. At most 64 members. GDN_INPUT for what is wrong, missing or unknown. */
int members_read(void *base, struct fy_node *mapping, const struct place *place, const char *label,
                 const char *who, const struct members *of);

/* The node as the list of a key, or as the mapping of KEY_PATHS. GDN_INPUT where it is none. */
int list_resolve(const struct key *key, const char *label, struct fy_node *node, const struct place *place,
                 struct fy_node **out);

/* A member of up to `most` structs of `size` bytes, one for each entry of a list. An entry is read as `label`
 * into zeros; what the one before has become is right before it, of the first (index 0) none. */
struct entries {
    int most;
    size_t size;
    int (*read)(void *entry, int index, const struct key *key, const char *label, struct fy_node *node,
                const struct place *list);
    void (*write)(const void *entry, FILE *out);
};
/* config/edge.c: all of model.delta.edges, given at `place`, lead into layers that there are, and not too many into
 * one; puts them in their order. */
int edges_validate(struct model_config *model, const struct place *place);

/* config/rule.c: whether a rule's kind and form have a setting of enum rule_setting. */
bool rule_has(const struct rule_config *rule, int setting);
/* A rule's setting of this name, kind and form among them, as YAML; NULL where its kind has none of it
 * or without memory. free() it. */
char *rule_setting_text(const struct rule_config *rule, const char *name);

/* config/group.c, rule.c, ramp.c, edge.c */
extern const struct entries group_entries, rule_entries, ramp_entries, edge_entries, real_entries;

/* value_read and value_write for such lists; `list` is a sequence. */
int entries_read(const struct entries *of, void *base, const struct key *key, const char *label,
                 struct fy_node *list, const struct place *place);
void entries_write(const struct entries *of, const void *entries, int count, FILE *out);

/* --------------------------------------------------------------------------- config/read.c, what is refused */

/* Reads the document's keys into the configuration. */
int read_file_text(struct reading *reading, const char *text, size_t length);
/* Applies "KEY=VALUE" of --set, or where `resumed` of --resume-with. */
int read_override(struct reading *reading, const char *set, bool resumed);

/* config/refuse.c: records that values do not go together, with the places of all keys involved,
 * model.rules[] being entry `rule`; and where a row of a table says so, else GDN_OK. */
int refuse(const struct reading *reading, const struct conflict *conflict, int rule);
int possible(const struct reading *reading, const struct conflict *conflict);
/* The same of what rules between layers say. */
int possible_rules(const struct reading *reading, int tensor, int sharing);
/* The same of the values of at most four paths. */
#define impossible(reading, why, ...) refuse(reading, &(const struct conflict){why, {__VA_ARGS__, NULL}}, 0)

#define MODEL(name) KEY_PATH(model.name)
#define DELTA(name) KEY_PATH(model.delta.name)
#define TRAIN(name) KEY_PATH(train.name)
#define MESH(name) KEY_PATH(mesh.name)
#define STORE(name) KEY_PATH(delta_store.name)

/* What cannot go together: all of it (config/validate.c, which resolves num_kv_heads and device too), with the
 * mesh (mesh.c), with several context ranks (context.c), with train.prune (prune.c). */
int validate_combinations(struct reading *reading);
int validate_mesh(const struct reading *reading);
int validate_context(const struct reading *reading);
int validate_prune(const struct reading *reading);

/* config/write.c: the configuration's values as YAML, as config_text writes them: of keys with `asked`
 * alone, or all. NULL without memory; free() it. */
char *config_text_of(const struct config *config, bool asked);

/* config/difference.c: where two texts of a value of `path`, as value_text has them, differ: all of both
 * where they can be shown, else the first entry or member that does, whose path is then longer. */
struct difference {
    char path[SHOWN], now[SHOWN], before[SHOWN];
    bool whole; /* could all of the one now be shown? */
};
void difference_find(const char *path, const char *now, const char *before, struct difference *out);

/* config/resume.c: as config_match_resume, with all keys compared but those that are `decided`
 * [CONFIG_KEYS]. */
int config_match_but(const struct config *now, const char *saved, const bool *decided);

/* config/load.c: a whole YAML file; free the text. GDN_INPUT where it cannot be read or is too large. */
int config_read_file(const char *path, char **text, size_t *length);

/* config/load.c: a checkpoint's configuration for comparison: read, not checked for what this build and
 * machine can do. config_free. */
int config_read_saved(const char *text, struct config *out);

#endif
