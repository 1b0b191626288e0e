/* Numbers of 16 and 8 bits against plain definitions: every code, every midpoint between two codes, its
 * neighbours among floats, and what is not finite. The device's functions are compiled here for the host;
 * that the GPU's instructions agree is seen by test_gemm_device. */
#include <math.h>
#include <stdbool.h>

#define __device__ __attribute__((unused))
#include "kernels/cuda/number.h"
#include "tests/support/unit.h"

struct format {
    const char *name;
    int exponents, mantissa, bias;
    uint32_t last; /* the largest finite number's code */
    bool saturates, infinite;
    uint32_t (*to)(float);
    float (*from)(uint32_t);
};

#define WRAP(name, type)                                                                                     \
    static uint32_t wrapped_to_##name(float x) {                                                             \
        return to_##name(x);                                                                                 \
    }                                                                                                        \
    static float wrapped_from_##name(uint32_t code) {                                                        \
        return from_##name((type)code);                                                                      \
    }
WRAP(bf16, uint16_t)
WRAP(fp16, uint16_t)
WRAP(e4m3, uint8_t)
WRAP(e5m2, uint8_t)

static const struct format formats[] = {
    {"bf16", 8, 7, 127, 0x7f7f, false, true, wrapped_to_bf16, wrapped_from_bf16},
    {"fp16", 5, 10, 15, 0x7bff, false, true, wrapped_to_fp16, wrapped_from_fp16},
    {"e4m3", 4, 3, 7, 0x7e, true, false, wrapped_to_e4m3, wrapped_from_e4m3},
    {"e5m2", 5, 2, 15, 0x7b, true, true, wrapped_to_e5m2, wrapped_from_e5m2},
};
#define EACH_FORMAT(f) for (const struct format *f = formats; f < formats + 4; f++)

/* What a code without a sign means, as if the exponent had no end. */
static double meaning(const struct format *f, uint32_t code) {
    int exponent = (int)(code >> f->mantissa), fraction = (int)(code & ((1u << f->mantissa) - 1));
    return exponent == 0 ? ldexp(fraction, 1 - f->bias - f->mantissa)
                         : ldexp(fraction + (1 << f->mantissa), exponent - f->bias - f->mantissa);
}

static uint32_t sign_of(const struct format *f) {
    return 1u << (f->exponents + f->mantissa);
}

static void check(const struct format *f, float x, uint32_t expected) {
    if (f->to(x) != expected) fail_msg("%s of %a is %#x, not %#x", f->name, x, f->to(x), expected);
    uint32_t negative = expected | sign_of(f);
    if (f->to(-x) != negative) fail_msg("%s of %a is %#x, not %#x", f->name, -x, f->to(-x), negative);
}

static void codes(void **state) {
    (void)state;
    EACH_FORMAT(f) for (uint32_t code = 0; code <= f->last; code++) {
        float x = f->from(code);
        if (x != meaning(f, code)) fail_msg("%s %#x means %a, not %a", f->name, code, meaning(f, code), x);
        if (f->from(code | sign_of(f)) != -x || signbit(f->from(code | sign_of(f))) == 0)
            fail_msg("%s %#x has no sign", f->name, code);
        check(f, x, code);
    }
}

static void halfway(void **state) {
    (void)state;
    EACH_FORMAT(f) for (uint32_t code = 0; code < f->last; code++) {
        float middle = (float)((meaning(f, code) + meaning(f, code + 1)) / 2);
        check(f, middle, code + (code & 1)); /* to the even code */
        check(f, nextafterf(middle, 0), code);
        check(f, nextafterf(middle, INFINITY), code + 1);
    }
}

static void beyond(void **state) {
    (void)state;
    EACH_FORMAT(f) {
        uint32_t over = f->saturates ? f->last : f->last + 1; /* the code after the last is infinity */
        double last = meaning(f, f->last), step = last - meaning(f, f->last - 1);
        float middle = (float)(last + step / 2);
        check(f, nextafterf(middle, 0), f->last);
        check(f, middle, over);
        for (double x = last + step; x < 3.4028235e38; x *= 1.25) check(f, (float)x, over);
        check(f, 1e-45f, 0);
        if (f->infinite) {
            check(f, INFINITY, f->last + 1);
            assert_true(f->from(f->last + 1) == INFINITY && f->from((f->last + 1) | sign_of(f)) == -INFINITY);
        }
    }
}

static void not_numbers(void **state) {
    (void)state;
    EACH_FORMAT(f) {
        uint32_t nan = sign_of(f) - 1;
        assert_int_equal(f->to(NAN), nan);
        assert_int_equal(f->to(-NAN), nan);
        assert_int_equal(f->to(float_of(0x7f800001)), nan);
        if (!f->infinite) assert_true(f->to(INFINITY) == nan && f->to(-INFINITY) == nan);
        for (uint32_t code = f->last + (f->infinite ? 2 : 1); code < sign_of(f); code++)
            assert_true(isnan(f->from(code)) && isnan(f->from(code | sign_of(f))));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes),
        cmocka_unit_test(halfway),
        cmocka_unit_test(beyond),
        cmocka_unit_test(not_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
