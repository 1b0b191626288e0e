/* Token formats: how a file of tokens is recognised, opened, read and written. A format is a row of a table
 * (formats.c), which streams, commands and data.format walk without knowing which formats there are. */
#ifndef GDN_FORMAT_H
#define GDN_FORMAT_H

#include <stdbool.h>

#include "data/elements.h"
#include "data/head.h"
#include "data/mapping.h"
#include "data/tokens.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the token formats are read as they lie in the file, which needs a little-endian machine"
#endif
_Static_assert(sizeof(long) == 8, "positions in token files are `long` and need 64 bits");

enum { NOT_RECORDED = -1 };

/* One open file. Who opens it sets `path` and `first`, the format's open() the rest. */
struct token_file {
    char *path;           /* owned; what messages name */
    bool first;           /* of its stream */
    long count;           /* tokens */
    long documents;       /* NOT_RECORDED where the format does not tell */
    bool masked;          /* it says which of its tokens count; else all do */
    long bytes;           /* of the file (Megatron: of .bin and .idx) */
    char stored_as[64];   /* for people: "uint16" */
    bool has_tokenizer;   /* whether the file says what has made its tokens */
    uint64_t tokenizer;   /* XXH3 of the tokenizer's file; 0: bytes */
    struct mapping map;   /* the file, where it is mapped */
    const uint8_t *raw;   /* first token, in map; NULL where tokens have another way */
    enum element element; /* what lies at raw */
    void *state;          /* the format's own, freed by its close() */
};

/* output_tokens.h */
struct written_tokens;
struct output_inputs;

struct token_format {
    const char *name;  /* the word of data.format and of --format */
    const char *about; /* a word or two beside it in --help: "raw uint16" */

    bool text; /* a file is a document of bytes, its tokens; TEXT_SEPARATOR, as the last token of all files
                  but the last, stands between them */
    bool documents; /* a file has no tokens, but texts, of which a tokenizer makes some */
    bool narrow;    /* its tokens are uint16: none is written with a larger vocabulary */
    bool unmarked; /* any bytes may be its first, even those that mark a compressed file */

    /* What the file is, where its first bytes or its name tell that it is of this format: "an HDF5 file";
     * else NULL. NULL for a format that is never told so. */
    const char *(*recognise)(const char *path, const struct head *head);

    /* The name of what is opened, of the name or glob that is given; free() it, NULL without memory. NULL
     * where that is the name itself. */
    char *(*name_of)(const char *given);

    /* Opens file->path, checking header and sizes. After a failure close() is called all the same. */
    int (*open)(struct token_file *file);

    /* Tokens [first, first + count), which lie inside the file, to out. */
    int (*read)(struct token_file *file, long first, long count, int32_t *out);

    /* Which of those tokens count as targets in the loss, of a file that is `masked`. NULL for a format of
     * which none is. GDN_INPUT where what the file says is neither yes nor no. */
    int (*counted)(struct token_file *file, long first, long count, bool *out);

    /* Whether the file tells where its documents start: GDN_INPUT naming it where it does not. NULL where all
     * files of the format do, or none. */
    int (*find_documents)(struct token_file *file);

    /* Adds MARK_DOCUMENT to those of row, tokens [first, first + count) of the file, that documents start
     * with; to the file's first one too, unless another file's last token opens its document. Called after
     * find_documents. NULL for a format that does not tell. */
    int (*mark_documents)(struct token_file *file, long first, long count, int32_t *row);

    /* Frees state and map; the rest of the file is zero or was set by open(). */
    void (*close)(struct token_file *file);

    /* Writes a stream of tokens to `path`, complete or not at all (output_tokens.h). NULL where none is
     * written. */
    int (*write)(const char *path, const struct written_tokens *written);

    /* output_file_verify of each file that write() makes of `path`. NULL where that is `path` alone. */
    int (*verify_output)(const char *path, const struct output_inputs *inputs);
};

/* The rows of gdn. */
extern const struct token_format text_format, jsonl_format, hdf5_format, llmc_format, megatron_format, nanogpt_format;

/* Adds a row, for programs beside gdn: before anything else of the program. Returns its number
 * (data.format). */
int token_format_register(const struct token_format *row);
/* The row of a number, that of data.format; NULL behind the last. The number of a row that is there. The row
 * of a name, or NULL. */
const struct token_format *token_format_of(int number);
int token_format_number(const struct token_format *row);
const struct token_format *token_format_named(const char *name);

/* What data.format may be, "text|hdf5|…". */
const char *token_format_words(void);
/* Which formats a list for people has: all, those of token files with what they are in brackets, those that can be written, those
 * that no file is recognised as. */
enum format_list { FORMATS, FORMATS_EXPLAINED, FORMATS_WRITTEN, FORMATS_NEVER_FOUND };
enum { FORMAT_LIST = 512 };
/* Fills `out` with their names, `last` before the last one: "hdf5, llmc or nanogpt" for " or ". Returns
 * out. */
const char *token_format_list(enum format_list list, const char *last, char out[FORMAT_LIST]);

/* For formats whose tokens lie in one piece at file->raw. */
int format_read_raw(struct token_file *file, long first, long count, int32_t *out);
void format_close_map(struct token_file *file);

#endif
