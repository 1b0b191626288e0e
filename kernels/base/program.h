/* Where the running program lies. */
#ifndef GDN_PROGRAM_H
#define GDN_PROGRAM_H

#include <limits.h>

/* Puts its folder there, or "" where the system does not tell. */
void program_folder(char folder[PATH_MAX]);

#endif
