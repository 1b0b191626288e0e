/* Paths and globs to the files they name, in order. Private to this room. */
#ifndef GDN_FILES_H
#define GDN_FILES_H

#include "data/paths.h"
#include "data/tokens.h"

/* The files of the patterns, in the order of the patterns, those of a glob in the order of their names.
 * They have the names that `format` opens (of Megatron's pairs .idx, by whichever name one is given). A
 * pattern without wildcards is a path, whether there is such a file or not, so that opening it says what is
 * wrong. files_free, whatever this returns. GDN_INPUT where a glob matches nothing, or two patterns name the
 * same file. */
int files_find(const struct path_list *patterns, const struct token_format *format, struct path_list *out);

#endif
