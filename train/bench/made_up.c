#include "train/bench/made_up.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "train/bench/bench.h"

/* Scattered tokens. */
static int32_t *take_tokens(struct arena *arena, const struct argument *a) {
    int32_t *tokens = arena_take(arena, (size_t)a->count * sizeof *tokens), part[4096];
    enum { PART = sizeof part / sizeof *part };
    for (long first = 0; tokens && first < a->count; first += PART) {
        long count = a->count - first < PART ? a->count - first : PART;
        for (long i = 0; i < count; i++) part[i] = (int32_t)((first + i) * 7 % (long)a->high);
        arena->device->upload(tokens + first, part, (size_t)count * sizeof *part);
    }
    return tokens;
}

static void *take_list(const struct argument *a) {
    static real list[OPS_CONNECTIONS];
    for (long i = 0; i < a->count; i++) list[i] = (real)a->low;
    return list;
}

/* Lists of buffers that the operation has been given. */
enum { MAX_LISTS = 5 };
static const real *lists[MAX_LISTS][OPS_CONNECTIONS];
static int lists_taken;

static void *take_rows(struct arena *arena, const struct argument *a) {
    if (lists_taken == MAX_LISTS) abort();
    const real **rows = lists[lists_taken++];
    for (long i = 0; i < a->touched; i++) rows[i] = bench_take(arena, a->count);
    return rows;
}

static void *new_argument(struct arena *arena, const struct argument *a) {
    switch (a->kind) {
    case REALS:
        return bench_take(arena, a->count);
    case INTEGERS:
        return take_tokens(arena, a);
    case BF16S:
        return arena_take(arena, (size_t)a->count * sizeof(uint16_t));
    case SAME_BITS:
        return arena_take(arena, (size_t)a->count);
    case REALS_SUMS:
    case DOUBLES_SUMS:
        return arena_take(arena, (size_t)a->count * sizeof(double));
    case LIST_ON_HOST:
        return take_list(a);
    case ROWS_ON_HOST:
        return take_rows(arena, a);
    }
    return NULL;
}

static double touched(const struct argument *a) {
    if (a->access == PARTLY) return (double)a->touched;
    double times = a->access == READ || a->access == WRITTEN ? 1 : 2;
    return times * (a->kind == ROWS_ON_HOST ? (double)a->touched : 1) * (double)a->count;
}

static void *take(struct caller *caller, const struct argument *a) {
    struct made_up *m = (struct made_up *)caller;
    for (int i = 0; i < m->count; i++)
        if (m->argument[i].name == a->name) return m->argument[i].memory;
    void *memory = new_argument(&m->arena, a);
    if (m->count < MADE_UP_ARGUMENTS) {
        m->argument[m->count].name = a->name;
        m->argument[m->count].touched = touched(a);
        m->argument[m->count++].memory = memory;
    }
    return memory;
}

/* Without what is small beside the rest: a number a token, a column or an angle. */
static double elements(const struct made_up *m) {
    double most = 0, sum = 0;
    for (int i = 0; i < m->count; i++) most = fmax(most, m->argument[i].touched);
    for (int i = 0; i < m->count; i++)
        if (m->argument[i].touched > most / 4) sum += m->argument[i].touched;
    return sum;
}

/* A call that computes nothing, in which all arguments are asked for. */
static void lay_out(struct made_up *m) {
    double before = ops_counted();
    m->count = lists_taken = 0;
    m->operation->call(ops_find("count"), &m->caller);
    m->flops = ops_counted() - before;
    m->elements = elements(m);
}

int made_up_prepare(struct made_up *m, const struct ops *ops, const struct operation *operation,
                    const struct sizes *sizes) {
    *m = (struct made_up){.caller = {.sizes = *sizes, .take = take},
                          .ops = ops,
                          .operation = operation,
                          .arena = {.name = "the benchmark's buffers", .device = ops->device}};
    lay_out(m);
    TRY(arena_reserve(&m->arena));
    lay_out(m);
    return GDN_OK;
}

/* bench_time promises to change nothing of a context; a call changes buffers alone, once all are laid out. */
void made_up_call(const void *made_up) {
    const struct made_up *m = made_up;
    m->operation->call(m->ops, (struct caller *)&m->caller);
}

void made_up_free(struct made_up *m) {
    arena_free(&m->arena);
}
