/* Edges that are not a layer's first: introduced in an order of their own, and some of them never. */
#include "rows.h"

#include "model/rules/rules.h"

#include <stdlib.h>
#include <string.h>

static bool only_ever; /* no others are in the table */

/* Is the i-th edge into a layer ever active? Of four layers one has all but its second, one all but its
 * first from layer 5 on and none below, one all but its first. */
static bool ever(int layer, int i) {
    switch (layer % 4) {
    case 1:
        return layer > 4 && i > 0;
    case 2:
        return i > 0;
    default:
        return i != 1;
    }
}

/* Layers with an even number get their edges from far to near, others from near to far. */
static int irregular(const struct model_config *config, struct edge *list, int count) {
    const int never = config->delta.num_distances + 1;
    int kept = 0;
    for (int first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && list[end].target == list[first].target && list[end].rule == list[first].rule)
            end++;
        for (int e = first; e < end; e++) {
            struct edge edge = list[e];
            if (edge.measured) { /* a gated delta connection */
                if (edge.target % 2 == 0) edge.introduced = end - e;
                if (!ever(edge.target, e - first)) edge.introduced = never;
                if (edge.introduced == never && only_ever) continue;
            }
            list[kept++] = edge;
        }
    }
    return kept;
}

void choose_edges(const char *how) {
    only_ever = !strcmp(how, "only");
    edges_register(*how ? irregular : NULL);
}

void rows_of_edges(void) {
    if (getenv("GDN_TEST_EDGES")) choose_edges(getenv("GDN_TEST_EDGES"));
}
