#include "kernels/operations.h"

#include <math.h>

static void *take(struct caller *caller, struct argument argument) {
    return caller->take(caller, &argument);
}

static bool varied(struct caller *caller, unsigned bit) {
    if (caller->variants < 2u << bit) caller->variants = 2u << bit;
    return caller->variant >> bit & 1;
}

/* The rest begins with the count; then come low and high. */
#define ARGUMENT(x, access_, kind_, ...)                                                                     \
    take(caller, (struct argument){.name = #x, .access = access_, .kind = kind_, .count = __VA_ARGS__})
#define IN(x, ...) ARGUMENT(x, READ, REALS, __VA_ARGS__)
#define OUT(x, ...) ARGUMENT(x, WRITTEN, REALS, __VA_ARGS__)
#define INOUT(x, ...) ARGUMENT(x, READ_AND_WRITTEN, REALS, __VA_ARGS__)
#define SCRATCH(x, count) ARGUMENT(x, LEFT, REALS, count)
#define PART(x, count, part) ARGUMENT(x, PARTLY, REALS, count, .touched = part)
#define TOKENS(x, count, below) ARGUMENT(x, READ, INTEGERS, count, 0, below)
#define TARGETS(x, count, below) ARGUMENT(x, READ, INTEGERS, count, -1, below)
#define CODES(x, count) ARGUMENT(x, READ, BF16S, count)
#define BITS(x, bytes) ARGUMENT(x, READ_AND_WRITTEN, SAME_BITS, bytes)
#define SUMS_OF_REALS(x, count) ARGUMENT(x, READ_AND_WRITTEN, REALS_SUMS, count)
#define SUMS_OF_DOUBLES(x, count) ARGUMENT(x, READ_AND_WRITTEN, DOUBLES_SUMS, count)
#define HOST_LIST(x, count) ARGUMENT(x, READ, LIST_ON_HOST, count, 0.5, 1)
#define HOST_ROWS(x, rows, count) ARGUMENT(x, READ, ROWS_ON_HOST, count, 0.5, 2, rows)
#define HOST_ROWS_OUT(x, rows, count) ARGUMENT(x, WRITTEN, ROWS_ON_HOST, count, 0.5, 2, rows)
#define HOST_ROWS_INOUT(x, rows, count) ARGUMENT(x, READ_AND_WRITTEN, ROWS_ON_HOST, count, 0.5, 2, rows)
#define EITHER(bit, a, b) (varied(caller, bit) ? (b) : (a))

/* Of weighted sums: all that there may be, or each fewer. */
#define SUMS (OPS_SUMS - EITHER(1, 0, 1) - EITHER(2, 0, 2))

/* A call and a look into the table for each operation; few calls need all sizes. */
#pragma GCC diagnostic ignored "-Wunused-variable"
#define OPERATION(name, parameters, arithmetic, arguments, terms, ...)                                       \
    static long call_##name(const struct ops *ops, struct caller *caller) {                                  \
        const struct sizes *z = &caller->sizes;                                                              \
        long B = z->B, S = z->S, T = B * S, D = z->D, F = z->F, V = z->V, H = z->H, K = z->K, hd = z->hd;    \
        long G = z->G, n = z->n, Hd = z->Hd, a = z->a, heads = z->heads;                                     \
        ops->name arguments;                                                                                 \
        return terms;                                                                                        \
    }                                                                                                        \
    static bool has_##name(const struct ops *ops) {                                                          \
        return ops->name;                                                                                    \
    }
#include "kernels/trunk_operations.h"
#include "kernels/delta_operations.h"
#undef OPERATION

#define OPERATION(op, parameters, arithmetic, arguments, terms, promised, ...)                               \
    {.name = #op, .delta = DELTA, .call = call_##op, .has = has_##op, .promise = promised, __VA_ARGS__},
const struct operation operations[] = {
#define DELTA false
#include "kernels/trunk_operations.h"
#undef DELTA
#define DELTA true
#include "kernels/delta_operations.h"
#undef DELTA
};
const int operations_count = sizeof operations / sizeof *operations;

const char *ops_missing(const struct ops *ops) {
    for (int i = 0; i < operations_count; i++)
        if (!operations[i].has(ops) && (ops->device->host || !operations[i].host)) return operations[i].name;
    return NULL;
}
