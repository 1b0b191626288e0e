/* CUDA backend: numbers to and from bf16, which are what ranks send in half the bytes. */
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

#include "kernels/cuda/number.h"

struct __align__(8) codes {
    uint16_t v[4];
};

/* Whether x lies on an 8-byte boundary, and all rows that are a multiple of `distance` codes behind it. */
static bool on_codes(const uint16_t *x, long distance) {
    return (uintptr_t)x % sizeof(struct codes) == 0 && distance % 4 == 0;
}

static __device__ quad load_codes(const uint16_t *x, long left, bool aligned) {
    struct codes c;
    quad q;
    if (aligned && left >= 4)
        c = *(const struct codes *)x;
    else
        for (int i = 0; i < 4; i++) c.v[i] = i < left ? x[i] : 0;
    for (int i = 0; i < 4; i++) q.v[i] = from_bf16(c.v[i]);
    return q;
}

static __global__ void to_kernel(long count, const real *x, uint16_t *out, bool aligned, bool codes_aligned) {
    EACH_QUAD(at, count) {
        long left = count - at;
        quad q = load_quad(x + at, left, aligned);
        struct codes c;
        for (int i = 0; i < 4; i++) c.v[i] = to_bf16(q.v[i]);
        if (codes_aligned && left >= 4)
            *(struct codes *)(out + at) = c;
        else
            for (int i = 0; i < 4 && i < left; i++) out[at + i] = c.v[i];
    }
}

static void to_codes(long count, const real *x, uint16_t *out) {
    LAUNCH(to_kernel, vector_grid(count), VECTOR_BLOCK, 0, count, x, out, on_quads(x, 0), on_codes(out, 0));
}

static __global__ void from_kernel(long rows, long width, const uint16_t *x, real *out, long ld, bool aligned,
                                   bool codes_aligned) {
    long at = tile_column(), left = width - at;
    if (at >= width) return;
    EACH_TILE_ROW(r, rows) {
        store_quad(out + r * ld + at, left, aligned, load_codes(x + r * width + at, left, codes_aligned));
    }
}

static void from_codes(long rows, long width, const uint16_t *x, real *out, long ld) {
    LAUNCH(from_kernel, tile_grid(rows, width), tile_block(width), 0, rows, width, x, out, ld,
           on_quads(out, ld), on_codes(x, width));
}

static __global__ void parts_kernel(long count, int parts, const uint16_t *pieces, real *sum,
                                    bool codes_aligned, bool aligned) {
    EACH_QUAD(at, count) {
        long left = count - at;
        quad total = load_codes(pieces + at, left, codes_aligned);
        for (int p = 1; p < parts; p++) {
            quad q = load_codes(pieces + p * count + at, left, codes_aligned);
            for (int i = 0; i < 4; i++) total.v[i] += q.v[i];
        }
        store_quad(sum + at, left, aligned, total);
    }
}

static void add_parts_bf16(long count, int parts, const uint16_t *pieces, real *sum) {
    LAUNCH(parts_kernel, vector_grid(count), VECTOR_BLOCK, 0, count, parts, pieces, sum,
           on_codes(pieces, count), on_quads(sum, 0));
}

extern "C" void cuda_bf16(struct ops *ops) {
    ops->to_bf16 = to_codes;
    ops->from_bf16 = from_codes;
    ops->add_parts_bf16 = add_parts_bf16;
}
