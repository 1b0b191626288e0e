/* The hidden folder beside the output where pieces lie that are done, until the output is there: a command
 * that was killed goes on with those that its own pieces have the names of. One process at a time works
 * there, or the ranks of one job. Private to this folder. */
#ifndef GDN_DOCUMENTS_STORE_H
#define GDN_DOCUMENTS_STORE_H

#include "data/documents/pieces.h"

struct store {
    char *folder;
    int descriptor; /* of the folder, with its lock; −1: not taken */
};

/* Names it, of the output. store_close, whatever this returns. */
int store_name(const char *output, struct store *out);

/* Makes the folder where it is not there, takes its lock, and clears away what was being written. GDN_INPUT
 * where it cannot be made, or another process has the lock. */
int store_take(struct store *store);

/* The path of a piece in it; free() it. NULL without memory. */
char *store_path(const struct store *store, const struct piece *piece);

/* Removes the folder with all that is in it. */
void store_remove(const struct store *store);

/* Whether a piece lies there. */
bool store_keeps(const struct store *store);

/* Lets go of the folder, and removes it where it is empty. */
void store_close(struct store *store);

#endif
