/* What backward passes compute again (enum recompute_policy of model/model.h), layer by layer: fixed by the
 * configuration, or the least that fits into a rank's memory. */
#ifndef GDN_RECOMPUTE_H
#define GDN_RECOMPUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "train/config/config.h"
#include "train/partition/policies.h"

/* "layers 0-5 full, connections of layers 0-11 full", or "nothing"; cut short where `size` bytes do not hold
 * it. */
void recompute_text(const struct recompute *policy, int layers, char *text, int size);

/* The policy of a layer or its connections in one word. */
const char *recompute_name(int policy);

/* The rule of thumb for auto, by memory without recomputation over memory available: every n-th layer,
 * returned as n: below 0.8 every fourth, below 1.2 every second, else all. */
int recompute_rule(double ratio);

/* That ratio and what the rule would have done, in a line. */
void recompute_rule_text(double ratio, char *text, int size);

/* One choice for a layer. */
struct recompute_option {
    int64_t bytes; /* that it adds to the rank's memory */
    double cost;   /* of computing again */
};

/* Of `layers` times `options` options the one for each layer, chosen [layers], so that the sum of bytes is at
 * most `budget` and the sum of costs least. Exact up to RECOMPUTE_FRONT different sums that no other beats in
 * both; of more, as many are looked at, evenly spread over the bytes, and the bound on bytes holds in any
 * case. *cost (where `fits`) is the sum. Where nothing fits, *fits is false and `chosen` has the least bytes.
 * GDN_INTERNAL without memory. */
enum { RECOMPUTE_FRONT = 4096 };
int recompute_solve(const struct recompute_option *option, int layers, int options, int64_t budget,
                    unsigned char *chosen, double *cost, bool *fits);

#endif
