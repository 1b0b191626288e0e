/* A configuration of gdn's as config.json and generation_config.json. Private to this folder. */
#ifndef GDN_HUGGINGFACE_DESCRIBE_H
#define GDN_HUGGINGFACE_DESCRIBE_H

#include "train/config/config.h"
#include "train/huggingface/family.h"

/* The family whose keys can say all of a configuration's model; GDN_INPUT naming what none can. */
int describe_family(const struct config *config, const struct family **out);

/* The tokens that begin and end a text; −1 where none is known to. */
struct text_ends {
    int32_t first, last;
};

/* The texts; free(). NULL without memory. */
char *describe_model(const struct config *config, const struct family *family, const char *dtype,
                     const struct text_ends *ends);
char *describe_generation(const struct text_ends *ends);

#endif
