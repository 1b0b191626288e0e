/* What every device promises (kernels/base/device.h), on the host's or on that of GDN_TEST_BACKEND: a GPU's
 * is skipped where there is none. No test here touches the device's memory itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/operations.h"
#include "kernels/base/status.h"
#include "tests/support/backend.h"
#include "tests/support/unit.h"

static const struct ops *ops;
static const struct device *d;

enum { BYTES = 3000001 }; /* many pieces of whatever an upload is cut into, and an odd end */

/* Different bytes for each seed. */
static unsigned char *bytes_of(unsigned seed) {
    unsigned char *x = malloc(BYTES);
    assert_non_null(x);
    for (unsigned i = 0; i < BYTES; i++) x[i] = (unsigned char)((i * 2654435761u ^ seed * 40503u) >> 13);
    return x;
}

static void *reserve(void) {
    void *memory = d->reserve(BYTES);
    if (!memory) fail_msg("%s", gdn_failure());
    assert_int_equal((uintptr_t)memory % 256, 0);
    return memory;
}

/* Checks what lies on the device. */
static void expect(const void *device, const unsigned char *x) {
    unsigned char *got = malloc(BYTES);
    assert_non_null(got);
    d->download(got, device, BYTES);
    assert_int_equal(d->status(), 0);
    assert_memory_equal(got, x, BYTES);
    free(got);
}

static void memory_is_zeroed(void **state) {
    (void)state;
    unsigned char *dirt = bytes_of(1), *zeros = calloc(1, BYTES);
    for (int again = 0; again < 3; again++) {
        void *memory = reserve();
        unsigned char *host = d->reserve_host(BYTES);
        expect(memory, zeros);
        assert_memory_equal(host, zeros, BYTES);
        d->upload(memory, dirt, BYTES);
        memcpy(host, dirt, BYTES);
        d->wait();
        d->release(memory);
        d->release_host(host);
    }
    free(dirt);
    free(zeros);
}

static void a_clear_has_its_bounds(void **state) {
    (void)state;
    unsigned char *x = bytes_of(1);
    unsigned char *memory = reserve();
    d->upload(memory, x, BYTES);
    d->clear(memory + 5, BYTES - 12);
    memset(x + 5, 0, BYTES - 12);
    expect(memory, x);
    d->release(memory);
    free(x);
}

static void memory_ends(void **state) {
    (void)state;
    if (d->host) skip();
    size_t before = d->available();
    assert_null(d->reserve(before + ((size_t)1 << 30)));
    assert_int_equal(d->status(), 0);
    void *memory = d->reserve(before / 64);
    assert_non_null(memory);
    assert_true(d->available() <= before - before / 64);
    d->release(memory);
}

static void copies_keep_their_order(void **state) {
    (void)state;
    unsigned char *one = bytes_of(1), *two = bytes_of(2), *zeros = calloc(1, BYTES);
    unsigned char *x = reserve(), *y = reserve(), *z = reserve();
    d->upload(x, one, BYTES);
    d->move(y, x, BYTES);
    d->upload(x, two, BYTES);
    d->move(z, x, BYTES);
    d->clear(z, BYTES);
    memset(two, 9, BYTES); /* an upload has read it */
    expect(y, one);
    expect(z, zeros);
    free(two);
    two = bytes_of(2);
    expect(x, two);
    d->upload(x + 7, one, 11); /* part of it */
    memcpy(two + 7, one, 11);
    expect(x, two);
    d->release(x), d->release(y), d->release(z);
    free(one), free(two), free(zeros);
}

static void many_uploads(void **state) {
    (void)state;
    enum { COUNT = 500 };
    int32_t *x = reserve(), got[COUNT];
    for (int32_t i = 0; i < COUNT; i++) d->upload(&x[i], &i, sizeof i);
    d->download(got, x, sizeof got);
    for (int i = 0; i < COUNT; i++) assert_int_equal(got[i], i);
    d->release(x);
}

/* A fetch takes what the operations before it computed. */
static void fetches(void **state) {
    (void)state;
    unsigned char *one = bytes_of(1), *x = reserve(), *y = reserve(), *host = d->reserve_host(BYTES);
    d->upload(x, one, BYTES);
    d->move(y, x, BYTES);
    int ticket = d->fetch(host, y, BYTES);
    assert_true(ticket >= 0);
    while (!d->arrived(ticket)) continue;
    d->await(ticket);
    assert_memory_equal(host, one, BYTES);
    d->release(x), d->release(y), d->release_host(host);
    free(one);
}

/* A delivery does not overtake operations that still read what it overwrites, and is there after a join. */
static void deliveries(void **state) {
    (void)state;
    unsigned char *one = bytes_of(1), *two = bytes_of(2), *x = reserve(), *y = reserve(), *z = reserve(),
                  *host = d->reserve_host(BYTES);
    memcpy(host, two, BYTES);
    d->upload(x, one, BYTES);
    d->move(y, x, BYTES);
    int ticket = d->deliver(x, host, BYTES);
    d->join();
    d->move(z, x, BYTES);
    expect(y, one);
    expect(z, two);
    d->await(ticket);
    d->release(x), d->release(y), d->release(z), d->release_host(host);
    free(one), free(two);
}

static void many_tickets(void **state) {
    (void)state;
    enum { COUNT = 256 };
    int32_t values[COUNT], *x = reserve(), *host = d->reserve_host(sizeof values);
    int tickets[COUNT];
    for (int32_t i = 0; i < COUNT; i++) values[i] = i * i;
    for (int round = 0; round < 5; round++) { /* tickets are given back */
        d->upload(x, values, sizeof values);
        for (int i = 0; i < COUNT; i++) tickets[i] = d->fetch(&host[i], &x[i], sizeof *x);
        for (int i = COUNT; i-- > 0;) d->await(tickets[i]);
        assert_memory_equal(host, values, sizeof values);
        for (int i = 0; i < COUNT; i++) values[i]++;
    }
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < i && !d->host; j++) assert_int_not_equal(tickets[i], tickets[j]);
    assert_int_equal(d->wait(), 0);
    d->release(x), d->release_host(host);
}

/* Nothing of the table but what is the host's alone is left empty, in any precision that the device has. */
static void tables_are_full(void **state) {
    (void)state;
    for (enum precision p = 0; p < PRECISIONS; p++) {
        const struct ops *table = ops_in(ops, p);
        if (!table) { /* the failure names what is missing */
            assert_true(p != PRECISION_FP32 && gdn_failure()[0]);
            gdn_failure_clear();
            continue;
        }
        assert_int_equal(table->precision, p);
        assert_ptr_equal(table->device, d);
        assert_string_equal(table->name, ops->name);
        const char *missing = ops_missing(table);
        if (missing) fail_msg("the operation %s is empty", missing);
    }
}

int main(void) {
    ops = test_backend("reference");
    d = ops->device;
    printf("%s\n", d->describe());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed), cmocka_unit_test(a_clear_has_its_bounds),
        cmocka_unit_test(memory_ends),      cmocka_unit_test(copies_keep_their_order),
        cmocka_unit_test(many_uploads),     cmocka_unit_test(fetches),
        cmocka_unit_test(deliveries),       cmocka_unit_test(many_tickets),
        cmocka_unit_test(tables_are_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
