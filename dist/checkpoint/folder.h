/* The folder `checkpoints` of a run directory: step_00000100/ for each checkpoint, and the one-line files
 * `latest` and `best` that name one. Names that begin with a dot are work in progress. Functions take the
 * folder's descriptor, so that names stay short and a moved run directory does no harm. One process. Private
 * to dist/. */
#ifndef GDN_FOLDER_H
#define GDN_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

enum { FOLDER_NAME = 48 };

/* "step_%08ld" and the step of such a name, −1 for any other name. */
void folder_step_name(int64_t step, char name[FOLDER_NAME]);
int64_t folder_step(const char *name);

/* The steps that have a checkpoint, the newest first: the one that `latest` names, then lower steps, then
 * higher ones, which a run that was resumed from an older step has left behind; by step alone where `latest`
 * names none that is there. free() *steps. Returns 0 or errno. */
int folder_list(int folder, int64_t **steps, int *count);

/* The step that file `pointer` ("latest", "best") names, −1 where it names none.
 *
 * The file is one line that people and scripts read and write, so what it is checked by stands elsewhere: the
 * directory of the step that it names holds an empty file of the pointer's name, its mark. A directory
 * appears marked, before the pointer names it, and the others' marks go when it does: so between two renames
 * both the old and the new step are marked, and at other times no damage to the line makes it name another.
 * Where the line names a step without a mark and others have one (*doubtful, which may be NULL), the newest
 * of these is returned. Without any mark, as before there were marks, the line is believed. */
int64_t folder_pointer(int folder, const char *pointer, bool *doubtful);

/* Marks what is being prepared under the name `directory`, not synced. 0 or errno. */
int folder_mark(int folder, const char *directory, const char *pointer);
/* Takes the marks of all steps but one. One that stays, because its disk fails, does no harm by itself. */
void folder_unmark(int folder, const char *pointer, int64_t but);

/* ".NAME.tmp": where what will be NAME is prepared. */
void folder_temporary(const char *name, char out[FOLDER_NAME]);

/* Writes what `pointer` will be, synced. 0 or errno. */
int folder_prepare_pointer(int folder, const char *pointer, int64_t step);

/* Makes what is prepared for `name`, a file or directory, appear under it; what was there before (*replaced)
 * is then the prepared one, so that folder_take_back can undo it. Renames alone: no space is needed. 0 or
 * errno. */
int folder_publish(int folder, const char *name, bool *replaced);
int folder_take_back(int folder, const char *name, bool replaced);

/* Removes what an interrupted or failed save has left, after putting back what an exchange that was cut off
 * between two renames has put aside. */
void folder_clean_up(int folder);

/* Removes a checkpoint: first its name, so that no half of it is ever seen. 0 or errno. */
int folder_remove_step(int folder, int64_t step);

#endif
