/* Token files: one stream of token ids, memory-mapped (or read by hyperslab where the file is chunked), never
 * read whole, whatever format it is kept in. Knows nothing of models or ranks. */
#ifndef GDN_TOKENS_H
#define GDN_TOKENS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "data/paths.h"

/* What a file is kept in: a row of a table (format.h). */
struct token_format;

enum { TEXT_SEPARATOR = 256 }; /* between documents, of text, whose bytes are tokens 1 to 255 */

struct tokens; /* opaque */

/* The format of a file, or of the first that a glob matches, by its content; text where nothing is known of
 * it. Not collective. GDN_INPUT where nothing matches. */
int tokens_detect(const char *pattern, const struct token_format **out);

/* Opens a file, or every file of a glob in name order as one stream. Not collective. Checks headers and
 * sizes. GDN_INPUT where nothing matches, a file is empty, truncated, plainly of another format or not
 * readable; the message names the file, what was found and what is expected. */
int tokens_open(const char *pattern, const struct token_format *format, struct tokens **out);

/* The same of a list of files and globs, one stream in the given order; GDN_INPUT too where two of them name
 * the same file. */
int tokens_open_list(const struct path_list *patterns, const struct token_format *format,
                     struct tokens **out);
void tokens_close(struct tokens *tokens);

/* Tokens of the whole stream. */
long tokens_count(const struct tokens *tokens);

/* Copies tokens [first, first + count) to out as int32. Fails where the range is outside, a value does not
 * fit int32 or reading fails. */
int tokens_read(struct tokens *tokens, long first, long count, int32_t *out);

/* Whether any file of the stream says which tokens count as targets in the loss (a loss mask). */
bool tokens_masked(const struct tokens *tokens);

/* Marks those of row [count], tokens first, first + 1, … of the stream, that do not count: MARK_UNCOUNTED
 * (kernels/base/marks.h). Fails where the range is outside, or a loss mask cannot be read or is none. */
int tokens_mark_uncounted(struct tokens *tokens, long first, long count, int32_t *row);

/* Whether the files tell where their documents start: GDN_INPUT naming one that does not. */
int tokens_find_documents(struct tokens *tokens);

/* Adds MARK_DOCUMENT (kernels/base/marks.h) to those of `row`, the tokens [first, first + count) that
 * tokens_read gave, that documents start with; after tokens_find_documents. */
int tokens_mark_documents(struct tokens *tokens, long first, long count, int32_t *row);

/* Whether all files that say what has made their tokens say this tokenizer, the XXH3 of whose file is given (0:
 * bytes; `name` for messages). GDN_INPUT names the first other file. */
int tokens_verify_tokenizer(const struct tokens *tokens, uint64_t hash, const char *name);

/* Which file a position of the stream lies in, and where in that file (a token index there). */
const char *tokens_place(const struct tokens *tokens, long position, long *in_file);

enum { TOKENS_SHOWN = 16 };

/* What a stream holds. The strings live as long as the stream is open. */
struct tokens_summary {
    const char *format, *stored_as; /* "text", "uint16" */
    const char *first_file, *last_file;
    int files;
    long tokens, bytes;
    long documents;   /* −1: not recorded in the format */
    int32_t min, max; /* of `seen` tokens: all, or of a large stream a sample spread over it */
    long seen, counted; /* of which so many count as targets in the loss; −1: no file says, all do */
    int32_t first[TOKENS_SHOWN]; /* [shown] */
    int shown;
};

/* Fails like tokens_read. Not collective. */
int tokens_summarize(struct tokens *tokens, struct tokens_summary *out);

/* Prints what the stream holds: format, files, tokens, documents, dtype, bytes, least and greatest value (of
 * a sample where it is large), and the first few tokens. */
int tokens_describe(struct tokens *tokens, FILE *out);

/* Writes text files as one token file of any format that has a `write`, in uint16. Each of the
 * `num_documents` files `documents` is a document. TEXT_SEPARATOR stands between documents (Megatron: closes
 * each of them). Written beside and renamed: complete or absent; a file of that name is replaced, unless it
 * is one of `documents`. GDN_INPUT for that, for what cannot be read or written, and for more tokens than the
 * format can count. */
int tokens_write(const char *path, const struct token_format *format, const char *const *documents,
                 int num_documents);

#endif
