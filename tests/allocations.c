#include "tests/allocations.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* The C library's, under the names that it keeps for this purpose. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

extern char __executable_start, etext; /* of the program's code, from the linker */

static atomic_bool counting;
static atomic_long calls;
static _Atomic(const char *) caller; /* of the last one */

static void note(const void *from) {
    const char *at = from;
    if (!atomic_load(&counting) || at < &__executable_start || at >= &etext) return;
    atomic_fetch_add(&calls, 1);
    atomic_store(&caller, at);
}

void allocations_count(void) {
    atomic_store(&calls, 0);
    atomic_store(&counting, true);
}

long allocations_counted(void) {
    atomic_store(&counting, false);
    return atomic_load(&calls);
}

const char *allocations_last(void) {
    static char text[200];
    Dl_info info = {0};
    const char *at = atomic_load(&caller);
    dladdr(at, &info);
    snprintf(text, sizeof text, "%s + 0x%lx", info.dli_sname ? info.dli_sname : "the program",
             (unsigned long)(at - &__executable_start));
    return text;
}

/* Not inlined: the return address is to be the caller's. */
#define APART __attribute__((noinline))

APART void *malloc(size_t size) {
    note(__builtin_return_address(0));
    return __libc_malloc(size);
}
APART void *calloc(size_t count, size_t size) {
    note(__builtin_return_address(0));
    return __libc_calloc(count, size);
}
APART void *realloc(void *at, size_t size) {
    note(__builtin_return_address(0));
    return __libc_realloc(at, size);
}
APART void *aligned_alloc(size_t alignment, size_t size) {
    note(__builtin_return_address(0));
    return __libc_memalign(alignment, size);
}
APART int posix_memalign(void **out, size_t alignment, size_t size) {
    note(__builtin_return_address(0));
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}
