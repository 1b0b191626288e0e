/* Arenas: what is counted is what is handed out, aligned and zeroed; past the end there is nothing, and with
 * the address sanitizer nothing between buffers either. */
#include "kernels/base/arena.h"
#include "tests/support/unit.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

enum { BUFFERS = 4 };
static const size_t sizes[BUFFERS] = {1, 64, 0, 1001};

static void take_all(struct arena *arena, char *buffer[BUFFERS]) {
    for (int i = 0; i < BUFFERS; i++) buffer[i] = arena_take(arena, sizes[i]);
}

static void hands_out_what_it_counted(void **state) {
    (void)state;
    struct arena arena = {.name = "a test"};
    char *buffer[BUFFERS];
    take_all(&arena, buffer);
    for (int i = 0; i < BUFFERS; i++) assert_null(buffer[i]);
    size_t counted = arena.used;
    assert_int_equal(arena_reserve(&arena), 0);
    take_all(&arena, buffer);
    assert_int_equal(arena.used, counted);
    assert_int_equal(arena.size, counted);
    for (int i = 0; i < BUFFERS; i++) {
        assert_int_equal((uintptr_t)buffer[i] % 64, 0);
        for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(buffer[i][k], 0);
        if (i) assert_true(buffer[i] >= buffer[i - 1] + sizes[i - 1]);
    }
    assert_null(arena_take(&arena, 1));
    arena_free(&arena);
}

static void guards_buffers(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    struct arena arena = {.name = "a test"};
    char *buffer[BUFFERS];
    take_all(&arena, buffer);
    assert_int_equal(arena_reserve(&arena), 0);
    take_all(&arena, buffer);
    for (int i = 0; i < BUFFERS; i++) {
        assert_null(__asan_region_is_poisoned(buffer[i], sizes[i]));
        assert_true(__asan_address_is_poisoned(buffer[i] + sizes[i]));
        if (i) assert_true(__asan_address_is_poisoned(buffer[i] - 1));
    }
    arena_free(&arena);
#else
    skip(); /* nobody would look */
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hands_out_what_it_counted),
        cmocka_unit_test(guards_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
