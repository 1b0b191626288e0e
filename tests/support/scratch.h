/* A folder for the files that a test program writes: one a program, the same on all ranks of rank_main.h, in
 * $TMPDIR (/tmp where that is not set), removed with all that is in it when the program ends. Scripts have
 * theirs as working directory (in_scratch.sh). */
#ifndef GDN_TEST_SCRATCH_H
#define GDN_TEST_SCRATCH_H

enum { SCRATCH_LONGEST = 256 }; /* its path with the zero byte */

/* The folder; made at the first call. Ends the program where it cannot be. */
const char *scratch(void);

/* A path in it, in a buffer that is used again after eight more. */
const char *scratch_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A new folder in it. Ranks that all call this get the same one. free() */
char *scratch_folder(void);

/* For rank_main: this process uses a folder that another one has made and removes. */
void scratch_join(const char *folder);

#endif
