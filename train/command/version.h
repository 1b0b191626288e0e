/* What this program was built from and with. */
#ifndef GDN_VERSION_H
#define GDN_VERSION_H

#include <stdio.h>

/* `gdn --version`: version, commit, compiler and its flags, number type, and the libraries with the
 * versions that are loaded now. Needs no MPI_Init. */
void version_print(FILE *out);

/* The commit it was built from, with "+" where files had changed since; "unknown" outside git. */
const char *version_commit(void);

#endif
