/* CUDA backend: numbers to and from bf16, which are what ranks send in half the bytes. A thread has eight
 * neighbouring ones, 16 bytes of codes and two quads. */
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

#include "kernels/cuda/number.h"

enum { EIGHT = 8 };

struct __align__(16) eight_codes {
    uint16_t v[EIGHT];
};
struct __align__(8) four_codes {
    uint16_t v[4];
};

/* How many codes one access may take from x on, and from every multiple of `distance` codes behind it. */
static int codes_at_once(const uint16_t *x, long distance) {
    uintptr_t both = (uintptr_t)x | (uintptr_t)distance * sizeof *x;
    return both % sizeof(struct eight_codes) == 0 ? EIGHT : both % sizeof(struct four_codes) == 0 ? 4 : 1;
}

/* The codes x[0 … 7], of which those from `left` on do not exist and are read as 0. */
static __device__ eight_codes load_codes(const uint16_t *x, long left, int at_once) {
    if (at_once == EIGHT && left >= EIGHT) return *(const struct eight_codes *)x;
    struct eight_codes c;
    for (int i = 0; i < EIGHT; i += 4)
        if (at_once >= 4 && left >= i + 4)
            *(struct four_codes *)(c.v + i) = *(const struct four_codes *)(x + i);
        else
            for (int j = i; j < i + 4; j++) c.v[j] = j < left ? x[j] : 0;
    return c;
}

static __device__ void store_codes(uint16_t *x, long left, int at_once, const eight_codes &c) {
    if (at_once == EIGHT && left >= EIGHT) {
        *(struct eight_codes *)x = c;
        return;
    }
    for (int i = 0; i < EIGHT; i += 4)
        if (at_once >= 4 && left >= i + 4)
            *(struct four_codes *)(x + i) = *(const struct four_codes *)(c.v + i);
        else
            for (int j = i; j < i + 4; j++)
                if (j < left) x[j] = c.v[j];
}

/* A thread's eights of a vector are those at 2·half. */
#define EACH_HALF(half, count) EACH_QUAD(half, ceil_div(count, 2))

static unsigned eights_grid(long count) {
    return vector_grid(ceil_div(count, 2));
}

static __global__ void to_kernel(long count, const real *x, uint16_t *out, bool aligned, int at_once) {
    EACH_HALF(half, count) {
        long at = 2 * half, left = count - at;
        struct eight_codes c;
        for (int i = 0; i < EIGHT; i += 4) {
            quad q = load_quad(x + at + i, left - i, aligned);
            for (int j = 0; j < 4; j++) c.v[i + j] = to_bf16(q.v[j]);
        }
        store_codes(out + at, left, at_once, c);
    }
}

static void to_codes(long count, const real *x, uint16_t *out) {
    LAUNCH(to_kernel, eights_grid(count), VECTOR_BLOCK, 0, count, x, out, on_quads(x, 0),
           codes_at_once(out, 0));
}

static __global__ void from_kernel(long rows, long width, const uint16_t *x, real *out, long ld, bool aligned,
                                   int at_once) {
    long at = 2 * tile_column(), left = width - at; /* of tiles half as wide */
    if (at >= width) return;
    EACH_TILE_ROW(r, rows) {
        struct eight_codes c = load_codes(x + r * width + at, left, at_once);
        for (int i = 0; i < EIGHT; i += 4) {
            quad q;
            for (int j = 0; j < 4; j++) q.v[j] = from_bf16(c.v[i + j]);
            store_quad(out + r * ld + at + i, left - i, aligned, q);
        }
    }
}

static void from_codes(long rows, long width, const uint16_t *x, real *out, long ld) {
    long half = ceil_div(width, 2);
    LAUNCH(from_kernel, tile_grid(rows, half), tile_block(half), 0, rows, width, x, out, ld,
           on_quads(out, ld), codes_at_once(x, width));
}

static __global__ void parts_kernel(long count, int parts, const uint16_t *pieces, real *sum, int at_once,
                                    bool aligned) {
    EACH_HALF(half, count) {
        long at = 2 * half, left = count - at;
        quad total[EIGHT / 4];
        for (int p = 0; p < parts; p++) {
            struct eight_codes c = load_codes(pieces + p * count + at, left, at_once);
            for (int i = 0; i < EIGHT; i++) {
                real x = from_bf16(c.v[i]), *to = &total[i / 4].v[i % 4];
                *to = p ? *to + x : x;
            }
        }
        for (int i = 0; i < EIGHT; i += 4) store_quad(sum + at + i, left - i, aligned, total[i / 4]);
    }
}

static void add_parts_bf16(long count, int parts, const uint16_t *pieces, real *sum) {
    LAUNCH(parts_kernel, eights_grid(count), VECTOR_BLOCK, 0, count, parts, pieces, sum,
           codes_at_once(pieces, count), on_quads(sum, 0));
}

extern "C" void cuda_bf16(struct ops *ops) {
    ops->to_bf16 = to_codes;
    ops->from_bf16 = from_codes;
    ops->add_parts_bf16 = add_parts_bf16;
}
