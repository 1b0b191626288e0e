/* The machine that a plan is made for, and how a mesh lies on its nodes. */
#ifndef GDN_PLAN_MACHINE_H
#define GDN_PLAN_MACHINE_H

#include "dist/layout/axes.h"

#include <stdbool.h>

/* What one rank is assumed to do in a second. */
struct plan_machine {
    double flops;           /* arithmetic, a multiply and an add being two */
    double bandwidth[AXES]; /* bytes handed over */
    double latency;         /* seconds of any message, sum or gather besides those of its bytes */
    double memory;          /* bytes read and written by the optimiser's update */
    bool synchronous; /* nothing moves beside arithmetic but messages between stages, which these look after:
                       * buckets travel while they are waited for, and no pass's costs are hidden
                       * (plan/create.c) */

    /* Ranks of a node, and the bandwidth inside it and to others, for axes whose own is 0; node 0: none has.
     */
    int node;
    double inside, outside;
    int stages; /* neighbours of the pipeline axis that share a node, though it leaves nodes; 1: none do */
    bool leaves[AXES]; /* the axis sends to other nodes: all such axes of a rank share its ways out and in */
    double within;     /* bandwidth between copies of a group; 0: as between all */
    int others;        /* groups of copies that one exchanges with */
    double stays; /* part of what copies send to those of other groups, or without groups, that stays in the
                     node */
};

/* Fills in what nodes decide, ranks filling them in order. Axes without a bandwidth get that of where they
 * lie on a mesh of this size: inside where no two ranks that differ in that axis alone are of different
 * nodes, else outside. Likewise groups of so many copies. */
void plan_machine_place(struct plan_machine *machine, const int size[AXES], int sum_group);

/* As many messages as an exchange across groups of copies is at once, of those that take the way out of the
 * node. */
double plan_machine_parts(const struct plan_machine *machine);

/* With the same bandwidth on every axis, and no latency. */
struct plan_machine plan_machine_of(double flops, double bandwidth, double memory);

#endif
