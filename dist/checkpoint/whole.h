/* Which checkpoints this process knows to be whole, so that old ones are removed only when enough others are
 * (checkpoint_save): those it has written, and those it has opened. Of others the seal is checked, once. What
 * is known is of the file as it was: one that was changed or replaced since is checked again. One process.
 * Private to dist/. */
#ifndef GDN_CHECKPOINT_WHOLE_H
#define GDN_CHECKPOINT_WHOLE_H

#include <stdbool.h>
#include <stdint.h>

/* The checkpoint.h5 of a step in the folder `checkpoints` is whole; or any one by its path. */
void checkpoint_note_whole(const char *folder, int64_t step);
void checkpoint_note_file(const char *path);

/* Whether it is; reads all of it where that is not known. */
bool checkpoint_is_whole(const char *folder, int64_t step);

#endif
