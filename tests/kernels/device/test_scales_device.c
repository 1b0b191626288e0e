/* The scales that fp8 products take from the calls before them: how they follow numbers that grow and
 * shrink, for each weight id and operand by itself. */
#include "tests/kernels/device/device_product.h"

#include <stdio.h>

#include "kernels/base/random.h"

/* One product of x = value and W = 1 in one element each: what became of value. */
static float through(const struct ops *ops, int weight_id, char tb, float value) {
    static struct matrix x, one, c;
    if (!x.host)
        x = make_matrix(1, 1, 0, 0, 0), one = make_matrix(1, 1, 0, 0, 1), c = make_matrix(1, 1, 0, 0, 0);
    x.host[0] = value;
    upload(&x);
    upload(&one);
    ops->linear(weight_id, 'N', tb, 1, 1, 1, 1, on_device(&x), 1, on_device(&one), 1, 0, on_device(&c), 1);
    download(&c);
    assert_int_equal(device->wait(), 0);
    return c.host[0];
}

static void delays(void **state) {
    const struct ops *ops = ops_of(PRECISION_FP8);
    (void)state;
    if (!ops) return;
    int weight_id = new_weight_id(), other = new_weight_id();
    assert_true(through(ops, weight_id, 'T', 1) == 1);
    /* Growing numbers saturate once: at 448 over the power of two that took 1 to 256. */
    assert_true(through(ops, weight_id, 'T', 4096) == 1.75f);
    assert_true(through(ops, weight_id, 'T', 4096) == 4096);
    /* The largest counts for 16 calls, in which numbers that have become small are lost. */
    for (int i = 0; i < HISTORY; i++) assert_true(through(ops, weight_id, 'T', 0x1p-7f) == 0);
    assert_true(through(ops, weight_id, 'T', 0x1p-7f) == 0x1p-7f);
    /* Other weight ids, and gradients, have scales of their own. */
    assert_true(through(ops, weight_id, 'T', 4096) < 1);
    assert_true(through(ops, other, 'T', 0x1p-7f) == 0x1p-7f);
    assert_true(through(ops, weight_id, 'N', 0x1p-20f) == 0x1p-20f);
    assert_true(through(ops, weight_id, 'N', 1) == 0x1.cp-20f);
    /* The least and the largest floats have scales that are floats; zeros need none. */
    assert_true(through(ops, new_weight_id(), 'T', 0x1p-125f) == 0x1p-125f);
    assert_true(through(ops, new_weight_id(), 'T', 0x1p127f) == 0x1p127f);
    int zeros = new_weight_id();
    assert_true(through(ops, zeros, 'T', 0) == 0 && through(ops, zeros, 'T', 448) == 448);
}

/* A process that goes on from a checkpoint has the scales of its calls before, as one that was not stopped.
 */
static void resumes(void **state) {
    const struct ops *ops = ops_of(PRECISION_FP8);
    (void)state;
    if (!ops) return;
    int weight_id = new_weight_id();
    assert_true(through(ops, weight_id, 'T', 1) == 1);
    int resumed = resumed_weight_id(weight_id);
    assert_true(through(ops, weight_id, 'T', 4096) == 1.75f && through(ops, resumed, 'T', 4096) == 1.75f);
    assert_true(through(ops, weight_id, 'T', 4096) == 4096 && through(ops, resumed, 'T', 4096) == 4096);
    forget_scales(weight_id); /* is as one that was never used */
    assert_true(through(ops, weight_id, 'T', 0x1p-7f) == 0x1p-7f);
    assert_true(through(ops, weight_id, 'T', 4096) < 1);
}

/* Calls of all three kinds, with operands that grow and shrink, for a few weight ids. */
static void many_calls(void **state) {
    static const double sizes[] = {1, 8, 0x1p-6, 300, 1, 0, 0x1p-30, 1e32, 1e-38};
    const struct ops *ops = ops_of(PRECISION_FP8);
    (void)state;
    if (!ops) return;
    int first = new_weight_id(), second = new_weight_id();
    for (int i = 0; i < 200; i++) {
        uint64_t bits = random_bits(3, 5, (uint64_t)i);
        int kind = (int)(bits % 3);
        double size_a = sizes[bits / 3 % COUNT(sizes)], size_b = sizes[bits / 64 % 7];
        struct product x = make_product(kind == 2 ? 'T' : 'N', kind == 0 ? 'T' : 'N', 9 + i % 40, 16,
                                        7 + i % 90, i % 2, 0, size_a, size_b);
        row(&x.a, 0)[0] *= 16; /* the largest lies in one piece of many */
        row(&x.b, 0)[0] *= 16;
        upload(&x.a);
        upload(&x.b);
        snprintf(text, sizeof text, "fp8 call %d, kind %d, sizes %g and %g", i, kind, size_a, size_b);
        call_checked(ops, bits >> 20 & 1 ? first : second, &x, 1, 0, false);
        discard_product(&x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays),
        cmocka_unit_test(resumes),
        cmocka_unit_test(many_calls),
    };
    return cmocka_run_group_tests(tests, device_begin, NULL);
}
