/* Documents of files that people have: a text file is one, a line of JSON (`.jsonl`) is one; each may be
 * compressed (`.gz`, `.zst`). What a file is its name says. Private to this folder. */
#ifndef GDN_DOCUMENT_READER_H
#define GDN_DOCUMENT_READER_H

#include <limits.h>
#include <stdbool.h>

#include "data/tokenizer/text.h"

struct reader; /* opaque: one open file */

/* Where documents begin that are to be read, in bytes of a file: in [from, to). */
struct range {
    long from, to;
};
#define WHOLE_FILE ((struct range){0, LONG_MAX})

bool reader_is_lines(const char *path);
/* Whether it may be read in several ranges: of plain lines. */
bool reader_may_cut(const char *path);

/* GDN_INPUT where it cannot be read, or is not what its name says. */
int reader_open(const char *path, struct range range, struct reader **out);
void reader_close(struct reader *reader);

/* The next document's bytes in place of what is in `out`: all of a text file, a line with something in it;
 * *found says whether there is one. *line is its number in the range,
 * from 1; 0 of a text file. */
int reader_next(struct reader *reader, struct text *out, long *line, bool *found);

/* Lines that begin before byte `from`; 0 where they cannot be counted. */
long reader_lines_before(const char *path, long from);

/* Bytes of the range, as they lie in the file, that have been read. */
long reader_position(const struct reader *reader);

#endif
