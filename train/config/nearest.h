/* "Did you mean …?": the right word that is nearest to a wrong one. */
#ifndef GDN_NEAREST_H
#define GDN_NEAREST_H

/* Least number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (the
 * optimal string alignment distance). Only the first 63 characters count. */
int edit_distance(const char *a, const char *b);

/* How many edits still count as a slip of the pen in a word of this length. */
int edit_tolerance(const char *word);

/* The word of `words` (ended by NULL) nearest to `word`, or NULL where none is near: one that needs few
 * edits, or begins with `word`. */
const char *nearest_word(const char *word, const char *const *words);

#endif
