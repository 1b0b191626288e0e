/* The key whose value is a list of connections: model.delta.edges. */
#include "train/config/private.h"

#include <limits.h>
#include <stdlib.h>

#include "kernels/base/status.h"
#include "model/params/edges.h"

/* One connection, which none of those before it is. */
static int read_edge(void *entry, int index, const struct key *key, const char *label, struct fy_node *node,
                     const struct place *list) {
    static const struct key number[2] = {{.type = KEY_INT, .min = 0, .max = INT_MAX},
                                         {.type = KEY_INT, .min = -1, .max = INT_MAX}};
    struct delta_edge *edge = entry;
    struct place place = place_of(node, list);
    char text[SHOWN], name[64];
    struct fy_node *pair;
    (void)key;
    TRY(yaml_resolve(node, &place, label, &pair));
    if (!pair || !fy_node_is_sequence(pair) || fy_node_sequence_item_count(pair) != 2)
        return fail_at(&place, "%s is %s: [TARGET, SOURCE] is expected", label, yaml_shown(pair, text));
    void *iterator = NULL;
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s[%d]", label, i);
        TRY(entry_read(i ? &edge->source : &edge->target, &number[i], name,
                       fy_node_sequence_iterate(pair, &iterator), &place));
    }
    if (edge->source >= edge->target)
        return fail_at(&place, "%s is [%d, %d]: a source below its target is expected, -1 to %d", label,
                       edge->target, edge->source, edge->target - 1);
    for (int i = 1; i <= index; i++)
        if (edge[-i].target == edge->target && edge[-i].source == edge->source)
            return fail_at(&place, "%s is [%d, %d], as entry %d is: each connection is expected once", label,
                           edge->target, edge->source, index - i);
    return GDN_OK;
}

static void write_edge(const void *entry, FILE *out) {
    const struct delta_edge *edge = entry;
    fprintf(out, "[%d, %d]", edge->target, edge->source);
}

const struct entries edge_entries = {MAX_EDGES, sizeof(struct delta_edge), read_edge, write_edge};

int edges_validate(struct model_config *model, const struct place *place) {
    struct delta_config *delta = &model->delta;
    for (int e = 0; e < delta->num_edges; e++)
        if (delta->edges[e].target >= model->num_layers)
            return fail_at(place,
                           "model.delta.edges[%d] is [%d, %d]: with model.num_layers %d, a target from 0 to "
                           "%d is expected",
                           e, delta->edges[e].target, delta->edges[e].source, model->num_layers,
                           model->num_layers - 1);
    delta_edges_sort(delta);
    for (int e = 0, into = 0; e < delta->num_edges; e++) {
        const struct delta_edge *edge = &delta->edges[e];
        into = e && edge[-1].target == edge->target ? into + 1 : 1;
        if (into > MAX_DISTANCES)
            return fail_at(place,
                           "model.delta.edges has more than %d connections into layer %d: at most %d into a "
                           "layer are allowed",
                           MAX_DISTANCES, edge->target, MAX_DISTANCES);
    }
    return GDN_OK;
}
