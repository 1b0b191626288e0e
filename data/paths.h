/* Files named in a configuration or on a command line: paths and globs, in order. */
#ifndef GDN_PATHS_H
#define GDN_PATHS_H

#include <stddef.h>

struct path_list {
    char **paths; /* [count], each owned where the list is */
    int count;
    char *made_of; /* owned too. NULL, or the files stand for others, which are these in a few words: the
                      paths are then names alone, and no globs */
};

/* An initialiser for a list of one path that belongs to someone else; it ends with the block it stands in. */
#define ONE_PATH(path)                                                                                       \
    { .paths = (char *[]){(char *)(path)}, .count = 1 }

/* Appends a copy. GDN_INTERNAL without memory. */
int path_list_add(struct path_list *list, const char *path);

/* Frees all and empties the list. */
void path_list_free(struct path_list *list);

/* The list, or what it was made of, in a few words, for messages: "a.txt and 2 more". `out` has `size` bytes
 * and is returned. */
const char *path_list_name(const struct path_list *list, char *out, size_t size);

#endif
