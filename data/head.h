/* The first bytes of a file, by which its format is told. Private to this room and to rows of its table. */
#ifndef GDN_HEAD_H
#define GDN_HEAD_H

#include <stdbool.h>
#include <stddef.h>

enum { HEAD_BYTES = 512 }; /* bytes that are looked at */

struct head {
    char bytes[HEAD_BYTES];
    size_t length; /* 0 of what cannot be read */
};

struct head head_read(const char *path);

/* Whether `size` bytes from byte `at` on are these. */
bool head_has(const struct head *head, size_t at, const void *mark, size_t size);

#endif
