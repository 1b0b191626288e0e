/* In what type activations and their gradients travel between pipeline stages and tensor ranks (mesh.wire).
 * In bf16 a value is rounded when it is sent (kernels/base/bf16.h), and nowhere else. */
#ifndef GDN_WIRE_H
#define GDN_WIRE_H

#include <stddef.h>

#include "kernels/base/real.h"

enum wire {
    WIRE_STORED, /* as they lie in memory */
    WIRE_FP32,   /* the same, where they are stored so */
    WIRE_BF16,
};

/* Bytes of an element. */
static inline size_t wire_bytes(enum wire wire) {
    return wire == WIRE_BF16 ? 2 : sizeof(real);
}

#endif
