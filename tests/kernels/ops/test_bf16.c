/* Numbers to bf16 and back, on every backend: each upper half of a float with lower halves at and around
 * ties, against the definition: the nearer neighbour, of two as near the even one; NaN stays NaN. And all
 * three operations wherever their buffers may lie. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/bf16.h"
#include "tests/support/backend.h"
#include "tests/support/unit.h"

enum { CODES = 1 << 16 };
static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
enum { LOWER = sizeof lower / sizeof *lower, COUNT = CODES * LOWER };

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* |x| of a code; infinity's is what it would be with one more exponent. */
static double size_of(uint32_t code) {
    return code == 0x7f80 ? 0x1p128 : (double)float_of(code << 16);
}

static uint16_t nearest(double x) {
    if (isnan(x)) return 0x7fff;
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double size = fabs(x);
    if (isinf(x)) return sign | 0x7f80;
    uint32_t below = 0, above = 0x7f80; /* size_of grows with the code */
    while (above - below > 1) {
        uint32_t middle = (below + above) / 2;
        *(size_of(middle) <= size ? &below : &above) = middle;
    }
    double down = size - size_of(below), up = size_of(above) - size;
    return (uint16_t)(sign |
                      (down < up || (down == up && below % 2 == 0) ? below : above)); /* beyond: infinity */
}

/* What an operation makes of `in` on a backend's device. */
static void *there(const struct ops *ops, const void *in, size_t bytes) {
    void *x = ops->device->reserve(bytes);
    assert_non_null(x);
    if (in) ops->device->upload(x, in, bytes);
    return x;
}

static void check_rounding(const struct ops *ops, const real *in, long count) {
    static uint16_t out[COUNT + 1];
    size_t bytes = (size_t)(count + 1) * sizeof *out;
    memset(out, 0xab, sizeof out);
    real *x = there(ops, in, (size_t)count * sizeof *in);
    uint16_t *y = there(ops, out, bytes);
    ops->to_bf16(count, x, y);
    ops->device->download(out, y, bytes);
    ops->device->release(x);
    ops->device->release(y);
    for (long i = 0; i < count; i++)
        if (out[i] != nearest((double)in[i]))
            fail_msg("%s: %a becomes %04x instead of %04x", ops->name, (double)in[i], out[i],
                     nearest((double)in[i]));
    assert_int_equal(out[count], 0xabab); /* nothing behind the end */
}

static void rounding(void **state) {
    static real in[COUNT];
    (void)state;
    for (uint32_t code = 0; code < CODES; code++)
        for (int i = 0; i < LOWER; i++) in[code * LOWER + i] = (real)float_of(code << 16 | lower[i]);
    for (const struct ops *const *each = test_backends(); *each; each++) {
        check_rounding(*each, in, COUNT);
        for (long count = 0; count < 40; count++) /* every remainder of a vector, aligned and not */
            check_rounding(*each, in + 0x3f80 * LOWER + count % 3, count);
    }
}

/* In a build of doubles: next to ties of floats, where a rounding by way of float would go wrong, and beyond
 * what floats have. */
static void rounding_of_doubles(void **state) {
    static real in[CODES * 2 + 4];
    long count = 0;
    (void)state;
    if (sizeof(real) == sizeof(float)) return;
    for (uint32_t code = 0; code < CODES; code++) {
        double tie = (double)float_of(code << 16 | 0x8000);
        in[count++] = (real)nextafter(tie, INFINITY);
        in[count++] = (real)nextafter(tie, -INFINITY);
    }
    in[count++] = (real)1e300, in[count++] = (real)-1e300, in[count++] = (real)1e-300,
    in[count++] = (real)-1e-300;
    for (const struct ops *const *each = test_backends(); *each; each++) check_rounding(*each, in, count);
}

/* Every code, in rows with a gap, comes back as the number that it is, and the gap is left alone. */
static void widening(void **state) {
    enum { WIDTH = 4096, GAP = 3, LD = WIDTH + GAP, ROWS = CODES / WIDTH };
    static uint16_t codes[CODES];
    static real out[ROWS * LD];
    (void)state;
    for (long i = 0; i < CODES; i++) codes[i] = (uint16_t)i;
    for (const struct ops *const *each = test_backends(); *each; each++) {
        const struct ops *ops = *each;
        for (long i = 0; i < ROWS * LD; i++) out[i] = 7;
        uint16_t *x = there(ops, codes, sizeof codes);
        real *y = there(ops, out, sizeof out);
        ops->from_bf16(ROWS, WIDTH, x, y, LD);
        ops->device->download(out, y, sizeof out);
        ops->device->release(x);
        ops->device->release(y);
        for (long i = 0; i < ROWS * LD; i++) {
            long column = i % LD;
            float right = column < WIDTH ? float_of((uint32_t)(i / LD * WIDTH + column) << 16) : 7;
            if (isnan(right) ? !isnan(out[i]) : out[i] != (real)right || !signbit(out[i]) != !signbit(right))
                fail_msg("%s: %a instead of %a", ops->name, (double)out[i], (double)right);
        }
    }
}

/* ------------------------------------------------------------------ wherever buffers begin and rows end */

enum { ROOM = 256, LONGEST = 40, ROWS = 3, CANARY = 0xab };

/* Small multiples of 1/8: bf16 has them, and floats their sums. */
static real number(long i) {
    return (real)((double)(i * 37 % 255 - 127) / 8);
}

static void narrow_at(const struct ops *ops, real *x, uint16_t *codes, long x_at, long codes_at, long count) {
    uint16_t right[ROOM], out[ROOM];
    real in[ROOM];
    for (long i = 0; i < ROOM; i++) in[i] = number(i);
    memset(right, CANARY, sizeof right);
    ops->device->upload(x, in, sizeof in);
    ops->device->upload(codes, right, sizeof right);
    ops->to_bf16(count, x + x_at, codes + codes_at);
    ops->device->download(out, codes, sizeof out);
    for (long i = 0; i < count; i++) right[codes_at + i] = nearest((double)in[x_at + i]);
    if (memcmp(out, right, sizeof out) != 0)
        fail_msg("%s: to_bf16 of %ld from %ld to %ld", ops->name, count, x_at, codes_at);
}

/* Codes of all numbers, and canaries where they are to go. */
static void fill(const struct ops *ops, real *x, uint16_t *codes, real right[ROOM]) {
    uint16_t in[ROOM];
    for (long i = 0; i < ROOM; i++) in[i] = nearest((double)number(i)), right[i] = CANARY;
    ops->device->upload(codes, in, sizeof in);
    ops->device->upload(x, right, ROOM * sizeof *right);
}

static bool holds(const struct ops *ops, const real *x, const real right[ROOM]) {
    real out[ROOM];
    ops->device->download(out, x, sizeof out);
    return memcmp(out, right, sizeof out) == 0;
}

static void widen_at(const struct ops *ops, real *x, uint16_t *codes, long x_at, long codes_at, long width,
                     long gap) {
    real right[ROOM];
    long ld = width + gap;
    fill(ops, x, codes, right);
    ops->from_bf16(ROWS, width, codes + codes_at, x + x_at, ld);
    for (long i = 0; i < ROWS * width; i++) right[x_at + i / width * ld + i % width] = number(codes_at + i);
    if (!holds(ops, x, right))
        fail_msg("%s: from_bf16 of width %ld from %ld to %ld, rows %ld apart", ops->name, width, codes_at,
                 x_at, ld);
}

static void add_at(const struct ops *ops, real *x, uint16_t *codes, long x_at, long codes_at, long count,
                   int parts) {
    real right[ROOM];
    fill(ops, x, codes, right);
    ops->add_parts_bf16(count, parts, codes + codes_at, x + x_at);
    for (long i = 0; i < count; i++) {
        right[x_at + i] = 0;
        for (int p = 0; p < parts; p++) right[x_at + i] += number(codes_at + p * count + i);
    }
    if (!holds(ops, x, right))
        fail_msg("%s: add_parts_bf16 of %d of %ld from %ld to %ld", ops->name, parts, count, codes_at, x_at);
}

/* Buffers on boundaries of 16 bytes, of 8 and on none, every remainder, rows at such distances: all that is
 * there is done, and nothing else touched. */
static void places(void **state) {
    (void)state;
    for (const struct ops *const *each = test_backends(); *each; each++) {
        const struct ops *ops = *each;
        real *x = there(ops, NULL, ROOM * sizeof *x);
        uint16_t *codes = there(ops, NULL, ROOM * sizeof *codes);
        for (long x_at = 0; x_at < 2; x_at++)
            for (long codes_at = 0; codes_at < 5; codes_at++)
                for (long count = 0; count <= LONGEST; count++) {
                    narrow_at(ops, x, codes, x_at, codes_at, count);
                    for (long gap = 0; gap <= 4; gap++) widen_at(ops, x, codes, x_at, codes_at, count, gap);
                    for (int parts = 1; parts <= ROWS; parts++)
                        add_at(ops, x, codes, x_at, codes_at, count, parts);
                }
        ops->device->release(x);
        ops->device->release(codes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rounding), cmocka_unit_test(rounding_of_doubles),
                                       cmocka_unit_test(widening), cmocka_unit_test(places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
