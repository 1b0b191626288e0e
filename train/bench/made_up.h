/* An operation's call on made-up numbers, at a model's sizes: kernels/operations.h has the calls. */
#ifndef GDN_BENCH_MADE_UP_H
#define GDN_BENCH_MADE_UP_H

#include "kernels/base/arena.h"
#include "kernels/operations.h"

enum { MADE_UP_ARGUMENTS = 32 };

struct made_up {
    struct caller caller; /* the first member: what its take() is given is this */
    const struct ops *ops;
    const struct operation *operation;
    struct arena arena;
    int count;
    struct {
        const char *name; /* a call of one operation names an argument always by the same pointer */
        void *memory;
        double touched; /* elements read plus written */
    } argument[MADE_UP_ARGUMENTS];
    double flops;    /* of a call */
    double elements; /* that it reads plus those that it writes, but for what is small beside the rest */
};

/* Makes the arguments of variant 0. Fails (GDN_INTERNAL) without memory. Free it in any case. */
int made_up_prepare(struct made_up *m, const struct ops *ops, const struct operation *operation,
                    const struct sizes *sizes);

/* The call; for bench_time. */
void made_up_call(const void *made_up);

void made_up_free(struct made_up *m);

#endif
