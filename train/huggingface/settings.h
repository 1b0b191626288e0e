/* What a config.json says, as gdn's configuration says it. Private to this folder. */
#ifndef GDN_HUGGINGFACE_SETTINGS_H
#define GDN_HUGGINGFACE_SETTINGS_H

#include <jansson.h>

#include "train/config/config.h"
#include "train/huggingface/family.h"

/* A config.json that is being read. */
struct settings {
    const char *path; /* for messages */
    json_t *object;
    const struct family *family;
    FILE *model;  /* takes lines of gdn's section `model` */
    long context; /* positions that the model was made for */
};

/* Reads DIRECTORY/config.json as *config, which the caller frees with config_free. Whatever it says
 * that gdn does not have, or does not know, is refused by name: GDN_INPUT. */
int settings_read(const char *directory, struct config *config);

/* The same of the text of a config.json. */
int settings_parse(const char *text, size_t length, const char *path, struct config *config);

/* Adds a line to the section `model`: "  KEY: VALUE". */
void settings_add(struct settings *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A value, or a key, as it may stand in a message: on one line and not endless. `out` is returned. */
enum { SHOWN_JSON = 64 };
const char *settings_shown(const json_t *value, char out[SHOWN_JSON]);

/* Records that a key has a value that is not understood, GDN_INPUT; `right`: what is. */
int settings_refuse(const struct settings *s, const char *name, const json_t *value, const char *right);

/* Rotary positions, of rope_theta and rope_scaling or of rope_parameters. (rope.c) */
int settings_take_rope(struct settings *s);

#endif
