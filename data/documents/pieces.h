/* The work of writing documents in pieces, which are done in any order and by any process: files that follow
 * each other, or a range of one file's lines. Where they are cut depends on the files alone. Private to this
 * folder. */
#ifndef GDN_DOCUMENTS_PIECES_H
#define GDN_DOCUMENTS_PIECES_H

#include "data/documents/reader.h"
#include "data/paths.h"

enum { PIECE_NAME = 33 };

struct piece {
    struct path_list files; /* of the list that was cut */
    struct range range;     /* WHOLE_FILE, but of a file that is cut */
    long bytes;             /* as they lie on disk */
    char name[PIECE_NAME];  /* hash of all that its tokens depend on, the times of its files for their text */
    bool done;              /* for its user */
};

struct pieces {
    struct piece *piece; /* [count] in the order of their documents; free() it */
    int count;
    long bytes; /* of all */
};

/* Bytes of files, as they lie on disk; one that is not there counts for nothing. */
long pieces_bytes(const struct path_list *files);

/* `options`: words that stand for all that a document's tokens depend on, besides its text. GDN_INPUT for a
 * file that is not there. */
int pieces_cut(const struct path_list *files, const char *options, struct pieces *out);

#endif
