/* The header of a safetensors file. Private to this folder. */
#ifndef GDN_SAFETENSORS_HEADER_H
#define GDN_SAFETENSORS_HEADER_H

#include "data/safetensors/safetensors.h"

/* Bytes of a header at most, as in the format's own library. */
#define HEADER_LONGEST 100000000L

/* "__metadata__": an entry of the header that is no tensor. */
#define HEADER_METADATA "__metadata__"

/* Fills names, count and tensor of a file whose path and map are set. GDN_INPUT. */
int header_read(struct safetensors *file);

#endif
