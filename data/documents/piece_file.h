/* The tokens of a piece's documents in a hidden file: int32 ids, which may have MARK_UNCOUNTED
 * (kernels/base/marks.h), then where each document ends among them,
 * then how many there are, with a checksum, since such files are not brought to disk before they get their
 * name. Private to this folder. */
#ifndef GDN_DOCUMENTS_PIECE_FILE_H
#define GDN_DOCUMENTS_PIECE_FILE_H

#include <xxhash.h>

#include "data/format.h"
#include "data/output.h"
#include "data/tokenizer/text.h"

/* At the end of the file. */
struct piece_end {
    char mark[8];
    int64_t tokens, documents;
    int64_t bytes; /* of the documents' texts */
    uint64_t sum;  /* XXH3 of all before this, and of this without the sum */
};

struct piece_writer {
    struct output output;
    XXH3_state_t *sum;
    struct text ends; /* int64 [documents] */
    struct piece_end end;
};

/* piece_writer_close, whatever this returns; without piece_writer_publish it leaves nothing. */
int piece_writer_open(const char *path, struct piece_writer *out);
int piece_writer_add(struct piece_writer *writer, const struct ids *ids, long bytes);
int piece_writer_publish(struct piece_writer *writer);
void piece_writer_close(struct piece_writer *writer);

/* Whether the file is there, and as it was written. */
bool piece_file_whole(const char *path);

/* Its numbers, and int64 [documents], where they end in the piece, in the mapping, which the caller closes.
 */
int piece_file_open(const char *path, struct mapping *map, struct piece_end *end, const int64_t **ends);

/* Its tokens, for tokens_open_files; of files that have any. */
extern const struct token_format piece_format;

#endif
