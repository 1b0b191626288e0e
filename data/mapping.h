/* A whole file mapped for reading. Pages are fetched when touched, so a file may be larger than memory. */
#ifndef GDN_MAPPING_H
#define GDN_MAPPING_H

#include <stddef.h>
#include <stdint.h>

struct mapping {
    const uint8_t *bytes; /* [size]; NULL where nothing is mapped */
    size_t size;
};

/* Maps `path`. GDN_INPUT, naming the file, where it cannot be opened, is no regular file or is empty. */
int mapping_open(const char *path, struct mapping *out);

/* Unmaps it; a mapping of zeros is left alone. */
void mapping_close(struct mapping *mapping);

#endif
