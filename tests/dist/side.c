#include "side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct ops *side_ops(void) {
    static const struct ops *ops;
    const char *name = getenv("GDN_TEST_BACKEND");
    if (!name) name = "cpu";
    if (!ops) ops = ops_find(name);
    if (ops) return ops;
    fprintf(stderr, "GDN_TEST_BACKEND: %s\n", gdn_failure());
    exit(strcmp(name, "cuda") == 0 ? 77 : 1); /* skipped without a card */
}

bool side_slow(void) {
    return strcmp(side_ops()->name, "emulated") == 0;
}

int side_mesh(int data, int tensor, int pipeline, struct mesh *out) {
    const char *asked = getenv("GDN_TEST_TRANSPORT");
    enum mesh_transport choice = !asked ? MESH_AUTO : strcmp(asked, "staged") == 0 ? MESH_STAGED : MESH_NCCL;
    TRY(mesh_create(data, tensor, pipeline, out));
    TRY(mesh_use(out, side_ops(), choice, 0));
    if (!asked || out->size == 1 || strcmp(out->transport, asked) == 0) return 0;
    return gdn_fail(GDN_INTERNAL, "buffers travel by %s, not as GDN_TEST_TRANSPORT says", out->transport);
}

real *side_make(const real *host, long count) {
    real *x = side_ops()->device->reserve((size_t)count * sizeof *x);
    if (!x) exit(1);
    if (host) side_put(x, host, count);
    return x;
}

void side_drop(real *x) {
    side_ops()->device->release(x);
}

void side_put(real *x, const real *host, long count) {
    side_ops()->device->upload(x, host, (size_t)count * sizeof *x);
}

void side_get(real *host, const real *x, long count) {
    side_ops()->device->download(host, x, (size_t)count * sizeof *x);
}
