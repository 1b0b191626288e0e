/* The checkpoints that this process knows to be intact: those it has written and those it has opened. Old
 * ones are removed only while enough others are intact (checkpoint_save). Of other checkpoints the digest
 * is verified, once. A file that was changed or replaced since is verified again. One process. Private to
 * dist/. */
#ifndef GDN_CHECKPOINT_INTACT_H
#define GDN_CHECKPOINT_INTACT_H

#include <stdbool.h>
#include <stdint.h>

/* The checkpoint.h5 of a step in the folder `checkpoints` is intact; or any one by its path. */
void checkpoint_note_intact(const char *folder, int64_t step);
void checkpoint_note_file(const char *path);

/* Whether it is; reads all of it where that is not known. */
bool checkpoint_is_intact(const char *folder, int64_t step);

#endif
