#include "dist/schedule/private.h"
#include "kernels/base/status.h"

#include <stdlib.h>

/* By time where a V or bounds ask for it. */
static int make_order(const struct layout *layout, const struct schedule_options *options,
                      struct order *out) {
    int ranks = layout->stage ? layout->size[AXIS_PIPELINE] : 1, chunks = layout->stage ? layout->chunks : 1;
    if (!layout->v && (!options->activation_sets || options->forward_only))
        return order_create(ranks, chunks, options->micro_batches, options->forward_only,
                            options->weight_sets, out);
    int usual[ranks];
    for (int r = 0; r < ranks; r++) usual[r] = 2 * ranks;
    const struct order_limits limits = {options->times,
                                        options->activation_sets ? options->activation_sets : usual,
                                        options->weight_sets};
    return order_by_time(layout, options->micro_batches, options->forward_only, &limits, out);
}

int schedule_create(const struct edges *edges, const struct routes *routes, const struct layout *layout,
                    const struct schedule_options *options, struct schedule *out) {
    int ranks = layout->stage ? layout->size[AXIS_PIPELINE] : 1, chunks = layout->stage ? layout->chunks : 1;
    *out = (struct schedule){0};
    if (options->micro_batches < 1)
        return gdn_fail(GDN_INPUT, "a step needs at least 1 micro-batch, not %d", options->micro_batches);
    if (options->weight_sets && chunks > 1 && !layout->v)
        return gdn_fail(GDN_INTERNAL, "weight sets with %d chunks a rank: 1 is expected, or a V", chunks);
    struct order order = {0};
    struct stages stages = {0};
    struct builder builder = {.options = options, .out = out};
    *out = (struct schedule){.ranks = ranks,
                             .rank = calloc((size_t)ranks, sizeof *out->rank),
                             .activation_sets =
                                 calloc((size_t)ranks * (size_t)chunks, sizeof *out->activation_sets),
                             .weight_sets = calloc((size_t)ranks, sizeof *out->weight_sets),
                             .blocks = calloc((size_t)ranks, sizeof *out->blocks),
                             .narrow_blocks = calloc((size_t)ranks, sizeof *out->narrow_blocks)};
    builder.full =
        !out->rank || !out->activation_sets || !out->weight_sets || !out->blocks || !out->narrow_blocks;
    int status = 0;
    if (!builder.full)
        status = make_order(layout, options, &order);
    if (!builder.full && !status)
        status = stages_describe(edges, routes, layout, options->num_layers, options->forward_only, &stages);
    if (!builder.full && !status) status = emit_all(&order, &stages, &builder);
    if (!status && builder.full)
        status = gdn_fail(GDN_INTERNAL, "out of memory for a schedule of %d ranks", ranks);
    order_free(&order);
    stages_free(&stages);
    if (status) schedule_free(out);
    return status;
}

void schedule_free(struct schedule *schedule) {
    for (int r = 0; schedule->rank && r < schedule->ranks; r++) free(schedule->rank[r].action);
    free(schedule->rank);
    free(schedule->activation_sets);
    free(schedule->weight_sets);
    free(schedule->blocks);
    free(schedule->narrow_blocks);
    *schedule = (struct schedule){0};
}
