/* gdn checkpoint ls: the checkpoints of a run as a table or as JSON. */
#ifndef GDN_CHECKPOINT_LIST_H
#define GDN_CHECKPOINT_LIST_H

#include <stdbool.h>

/* Prints a run directory's checkpoints, the newest first, a line each; or all as a JSON list on one line.
 * Reads every byte of them. Fails like checkpoint_each, where standard output fails, and without memory. */
int checkpoint_list(const char *run, bool json);

#endif
