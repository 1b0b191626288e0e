/* What a token format is: how one file is opened, read and closed. stream.c joins files to a stream and knows
 * no format; a new one is a format_*.c and a row of token_formats (formats.c). Private to this room. */
#ifndef GDN_FORMAT_H
#define GDN_FORMAT_H

#include <stdbool.h>

#include "data/elements.h"
#include "data/mapping.h"
#include "data/tokens.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the token formats are read as they lie in the file, which needs a little-endian machine"
#endif
_Static_assert(sizeof(long) == 8, "positions in token files are `long` and need 64 bits");

enum { NOT_RECORDED = -1 };

/* One open file. stream.c sets `path`, the format's open() the rest. */
struct token_file {
    char *path;           /* owned; what messages name */
    long count;           /* tokens */
    long documents;       /* NOT_RECORDED where the format does not tell */
    long bytes;           /* of the file (Megatron: of .bin and .idx) */
    char stored_as[64];   /* for people: "uint16" */
    struct mapping map;   /* the file, where it is mapped */
    const uint8_t *raw;   /* first token, in map; NULL where tokens have another way */
    enum element element; /* what lies at raw */
    void *state;          /* the format's own, freed by its close() */
};

struct token_format {
    const char *name;
    const char *suffix; /* that every file of the format ends in, or "" */
    bool separated;     /* TEXT_SEPARATOR stands between files, as the last token of all files but the last */

    /* Opens file->path, checking header and sizes. After a failure close() is called all the same. */
    int (*open)(struct token_file *file);

    /* Tokens [first, first + count), which lie inside the file, to out. */
    int (*read)(struct token_file *file, long first, long count, int32_t *out);

    /* Frees state and map; the rest of the file is zero or was set by open(). */
    void (*close)(struct token_file *file);
};

extern const struct token_format text_format, hdf5_format, llmc_format, megatron_format, nanogpt_format;
extern const struct token_format *const token_formats[NUM_TOKENS_FORMATS];

/* For formats whose tokens lie in one piece at file->raw. */
int format_read_raw(struct token_file *file, long first, long count, int32_t *out);
void format_close_map(struct token_file *file);

#endif
