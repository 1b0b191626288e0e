#include "kernels/count/count.h"

/* The operations have no room for a context of their own. */
static double flops;

double count_flops(void) {
    return flops;
}

/* Everything but products costs nothing here: a few passes over memory beside them. An operation's stub sees
 * its parameters, of which few count. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define OPERATION(name, parameters, arithmetic, ...)                                                         \
    static void count_##name parameters {                                                                    \
        flops += arithmetic;                                                                                 \
    }
#include "kernels/trunk_operations.h"
#include "kernels/delta_operations.h"
#undef OPERATION

/* What addresses without memory behind them lie on. */
static void copy_nothing(void *to, const void *from, size_t bytes) {
    (void)to, (void)from, (void)bytes;
}
static void clear_nothing(void *memory, size_t bytes) {
    (void)memory, (void)bytes;
}
static int no_failure(void) {
    return 0;
}
static const struct device nowhere = {
    .name = "nowhere",
    .host = true,
    .upload = copy_nothing,
    .download = copy_nothing,
    .move = copy_nothing,
    .clear = clear_nothing,
    .wait = no_failure,
    .status = no_failure,
};

const struct ops count_ops = {
    .name = "count",
    .device = &nowhere,
#define OPERATION(name, ...) .name = count_##name,
#include "kernels/trunk_operations.h"
#include "kernels/delta_operations.h"
#undef OPERATION
};
