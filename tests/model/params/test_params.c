/* Tables of ranks: whatever the mesh, the ranks together hold every element of the model where the rules of
 * layout.h say, count each once, and draw the same weights as one rank alone. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/layout/shard.h"
#include "kernels/base/status.h"
#include "tests/model/params/param_rules.h"
#include "tests/support/unit.h"

enum { L = 6, SEED = 7 };

static struct model_config base_model(void) {
    return (struct model_config){.vocab_size = 37,
                                 .hidden_size = 24,
                                 .num_layers = L,
                                 .num_heads = 4,
                                 .num_kv_heads = 4,
                                 .intermediate_size = 20,
                                 .delta = {.distances = {1, 2, 4},
                                           .num_distances = 3,
                                           .hidden = 4,
                                           .gate_hidden = 3,
                                           .attention_dim = 2,
                                           .attention_heads = 4,
                                           .temperature = 1}};
}

enum { MODELS = 8 };
static struct model_config model_number(int i) {
    struct model_config m = base_model();
    struct delta_config *d = &m.delta;
    switch (i) {
    case 0:
        d->embedding_source = true;
        break;
    case 1:
        m.tie_embeddings = true, d->kind = KIND_FULL, d->aggregate = AGGREGATE_MULTIHEAD;
        break;
    case 2:
        d->kind = KIND_ADAPTIVE, d->aggregate = AGGREGATE_ATTENTION, d->normalize = true;
        break;
    case 3:
        d->normalize = true, d->aggregate = AGGREGATE_ATTENTION;
        break;
    case 4:
        d->num_distances = 0, m.tie_embeddings = true;
        break;
    case 5:
        d->aggregate = AGGREGATE_ATTENTION, d->embedding_source = true, m.tie_embeddings = true;
        break;
    case 7:
        d->num_distances = 0, m.head_dim = 10, m.attention_bias = BIAS_ALL, m.qk_norm = QK_NORM_HEAD;
        break;
    default:
        d->aggregate = AGGREGATE_MEAN, d->distances[0] = 2, d->distances[1] = 5, d->num_distances = 2;
        break;
    }
    return m;
}

/* Stages of uneven length: the first ones have the layers that are left over. */
static void cut(int stages, struct span *out) {
    for (int s = 0, first = 0; s < stages; s++) {
        int n = L / stages + (s < L % stages);
        out[s] = (struct span){first, first + n};
        first += n;
    }
}

/* ----------------------------------------------------------------------------------------------- checking */

static long memory_index(const struct row *row, long i, long j) {
    return row->transposed ? j * row->local[0] + i : i * row->local[1] + j;
}

/* Flat places: zone by zone, aligned, without overlaps, stacks in one piece. */
static void check_places(const struct bench *b, const struct table *t) {
    long grain = (long)b->layout.size[AXIS_DATA] * SHARD_GRAIN;
    assert_int_equal(t->zone[0], 0);
    assert_int_equal(t->zone[ZONES], t->total);
    for (int z = 0; z <= ZONES; z++) assert_int_equal(t->zone[z] % grain, 0);
    for (int i = 0; i < t->rows; i++) {
        const struct row *row = &t->row[i], *before = i ? row - 1 : NULL;
        assert_true(t->zone[row->zone] <= row->offset && row->offset + row->count <= t->zone[row->zone + 1]);
        assert_int_equal(row->count, row->local[0] * row->local[1]);
        assert_true(row->count > 0);
        if (!before || before->zone != row->zone) continue;
        assert_true(row->offset >= before->offset + before->count);
        assert_true(row->layer >= before->layer);
        struct named n = parse(row->name), last = parse(before->name);
        bool stack =
            n.layer == last.layer && n.distance > 0 && last.distance > 0 && !strcmp(n.leaf, last.leaf);
        bool next = !strcmp(n.leaf, "self_attn.k_proj.weight") ||
                    !strcmp(n.leaf, "self_attn.v_proj.weight") || !strcmp(n.leaf, "mlp.up_proj.weight") ||
                    !strcmp(n.leaf, "self_attn.k_proj.bias") || !strcmp(n.leaf, "self_attn.v_proj.bias") ||
                    !strcmp(n.leaf, "delta.key.weight");
        if (stack || next)
            assert_int_equal(row->offset, before->offset + before->count);
        else
            assert_int_equal(row->offset % 16, 0);
    }
}

/* The zone of a row by its own size, its stack's and its group's, which are of equal sizes but for k and
 * v. */
static void check_zone(const struct bench *b, const struct table *t, const struct row *row) {
    struct named n = parse(row->name);
    long size = row->count;
    if (strstr(row->name, "self_attn.k_proj") || strstr(row->name, "self_attn.v_proj")) { /* q decides */
        char name[64];
        snprintf(name, sizeof name, "layers.%d.self_attn.q_proj.%s", n.layer, strrchr(row->name, '.') + 1);
        size = params_find(t, name)->count;
    }
    bool small = row->zone == ZONE_SMALL || row->zone == ZONE_SHARED_SMALL;
    assert_int_equal(small, size < b->layout.small);

    /* Shared where any tensor of the stack on this rank is. */
    bool shared = false;
    for (int i = 0; i < t->rows; i++) {
        if (t->row[i].layer != row->layer) continue;
        struct named other = parse(t->row[i].name);
        if (strcmp(other.leaf, n.leaf)) continue;
        uint64_t bits = owners(b, other);
        if (bits & (bits - 1)) shared = true;
    }
    assert_int_equal(row->zone == ZONE_SHARED_LARGE || row->zone == ZONE_SHARED_SMALL, shared);
    uint64_t bits = 0;
    for (int i = 0; i < row->owners; i++) {
        assert_true(!i || row->owner[i] > row->owner[i - 1]);
        bits |= UINT64_C(1) << row->owner[i];
    }
    assert_true(bits == (shared ? owners(b, n) : 0));
}

static void check_row(const struct bench *b, const struct table *t, const struct row *row) {
    const struct row *global = params_find(b->global, row->name);
    if (!global) fail_msg("%s is not in the whole model", row->name);
    assert_true(row->shape[0] == global->shape[0] && row->shape[1] == global->shape[1]);
    assert_true(row->ndim == global->ndim && row->decay == global->decay && row->select == global->select);
    assert_true(row->layer == global->layer && row->distance == global->distance);
    assert_true(row->transposed == global->transposed);
    if (row->partial != expected_partial(b, row)) fail_msg("%s: partial is %d", row->name, row->partial);
    check_zone(b, t, row);
}

static void check_weights(const struct bench *b, const struct row *row) {
    const struct row *global = params_find(b->global, row->name);
    real *mine = malloc((size_t)row->count * sizeof *mine);
    params_init(row, SEED, mine);
    for (long i = 0; i < row->local[0]; i++)
        for (long j = 0; j < row->local[1]; j++) {
            long at = global->offset + memory_index(global, row->start[0] + i, row->start[1] + j);
            if (mine[memory_index(row, i, j)] != b->weights[at])
                fail_msg("%s: element (%ld, %ld) of the part", row->name, i, j);
        }
    free(mine);
}

/* The rank holds what it should, no less and no more; adds to `counted` [whole.total]. */
static void check_parts(struct bench *b, const struct table *t, char *counted) {
    int tensor = b->layout.index[AXIS_TENSOR], pipeline = b->layout.index[AXIS_PIPELINE], found = 0;
    for (int r = 0; r < b->global->rows; r++) {
        const struct row *global = &b->global->row[r], *row = params_find(t, global->name);
        struct box box = expected(b, global, tensor, pipeline);
        if ((row != NULL) != (box.end[0] > 0))
            fail_msg("%s on tensor rank %d, pipeline rank %d: %s", global->name, tensor, pipeline,
                     row ? "found" : "missing");
        if (!row) continue;
        found++;
        for (int side = 0; side < 2; side++)
            if (row->start[side] != box.first[side] || row->start[side] + row->local[side] != box.end[side])
                fail_msg("%s on tensor rank %d, pipeline rank %d: side %d is %ld + %ld", global->name, tensor,
                         pipeline, side, row->start[side], row->local[side]);
        if (row->distance && row->owners > 1) b->projected++;
        for (long i = box.first[0]; row->counted && i < box.end[0]; i++)
            for (long j = box.first[1]; j < box.end[1]; j++)
                counted[global->offset + i * global->shape[1] + j]++;
    }
    assert_int_equal(found, t->rows);
}

/* All ranks of one mesh. `layout` has everything but stages and indices. Returns how many rows two ranks hold
 * because one projects for the other. */
static long check_mesh(const struct model_config *model, const struct table *global, const real *weights,
                       struct layout layout) {
    struct bench b = {.model = model, .layout = layout, .global = global, .weights = weights};
    b.layout.stage = b.stage;
    cut(layout.size[AXIS_PIPELINE] * layout.chunks, b.stage);
    assert_int_equal(edges_create(model, &b.edges), 0);
    struct route_widths widths = model_route_widths(model, &b.layout);
    assert_int_equal(routes_create(&b.edges, NULL, &b.layout, &widths, &b.routes),
                     0);
    char *counted = calloc((size_t)global->total, 1);
    long sum = 0, model_sum = 0;
    for (int rank = 0; rank < layout.size[AXIS_PIPELINE] * layout.size[AXIS_TENSOR]; rank++) {
        b.layout.index[AXIS_PIPELINE] = rank / layout.size[AXIS_TENSOR],
        b.layout.index[AXIS_TENSOR] = rank % layout.size[AXIS_TENSOR];
        struct table table;
        if (params_create(model, &b.layout, &table)) fail_msg("%s", gdn_failure());
        check_places(&b, &table);
        check_parts(&b, &table, counted);
        for (int i = 0; i < table.rows; i++) {
            check_row(&b, &table, &table.row[i]);
            if (weights) check_weights(&b, &table.row[i]);
            if (table.row[i].counted) sum += table.row[i].count;
        }
        params_free(&table);
    }
    for (int i = 0; i < global->rows; i++) {
        const struct row *row = &global->row[i];
        model_sum += row->count;
        for (long e = 0; e < row->count; e++)
            if (counted[row->offset + e] != 1)
                fail_msg("%s: element %ld is counted %d times", row->name, e, counted[row->offset + e]);
    }
    assert_int_equal(sum, model_sum);
    free(counted);
    routes_free(&b.routes);
    edges_free(&b.edges);
    return b.projected;
}

static void meshes(void **state) {
    (void)state;
    static const int axes[][3] = {/* tensor, pipeline, chunks */
                                  {1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {1, 2, 1}, {1, 3, 1}, {1, 6, 1},
                                  {2, 2, 1}, {1, 2, 2}, {1, 2, 3}, {2, 3, 2}, {4, 2, 2}, {4, 6, 1}};
    static const long smalls[] = {0, 60, 1000000};
    for (int m = 0; m < MODELS; m++) {
        struct model_config model = model_number(m);
        struct table global;
        assert_int_equal(params_create(&model, NULL, &global), 0);
        real *weights = calloc((size_t)global.total, sizeof *weights);
        params_init_all(&global, SEED, weights);
        long projected = 0;
        for (size_t a = 0; a < sizeof axes / sizeof *axes; a++)
            for (int choice = 0; choice < 8; choice++)
                projected +=
                    check_mesh(&model, &global, weights,
                               (struct layout){.size[AXIS_DATA] = choice % 4 == 3 ? 3 : 1,
                                               .size[AXIS_TENSOR] = axes[a][0],
                                               .size[AXIS_PIPELINE] = axes[a][1],
                                               .chunks = axes[a][2],
                                               .delta = choice & 1 ? DELTA_CONNECTION : DELTA_CHANNEL,
                                               .sequence_parallel = choice & 2,
                                               .narrow = choice & 4,
                                               .small = smalls[choice % 3]});
        bool narrow = m == 0 || m == 5 || m == 6; /* bottlenecks without `normalize` */
        assert_int_equal(projected > 0, narrow);
        params_free(&global);
        free(weights);
    }
}

/* One rank's table in a few words, so that the rules above are not only compared with themselves. */
static void known_parts(void **state) {
    (void)state;
    struct model_config model = model_number(0);
    struct span stage[2] = {{0, 3}, {3, 6}};
    struct layout layout = {.size[AXIS_DATA] = 2,
                            .size[AXIS_TENSOR] = 4,
                            .index[AXIS_TENSOR] = 3,
                            .size[AXIS_PIPELINE] = 2,
                            .index[AXIS_PIPELINE] = 1,
                            .chunks = 1,
                            .stage = stage,
                            .small = 50};
    struct table table;
    assert_int_equal(params_create(&model, &layout, &table), 0);
    assert_null(params_find(&table, "embed_tokens.weight"));
    assert_null(params_find(&table, "layers.2.mlp.up_proj.weight"));
    const struct row *head = params_find(&table, "lm_head.weight");
    assert_int_equal(head->start[0], 27); /* 37·3/4 */
    assert_int_equal(head->local[0], 10);
    assert_int_equal(head->layer, L);
    assert_int_equal(head->zone, ZONE_LARGE);
    assert_true(head->counted);
    const struct row *out = params_find(&table, "layers.4.delta.4.output_proj.weight");
    assert_true(out->transposed && out->split == SPLIT_COLUMNS);
    assert_true(out->local[0] == 24 && out->local[1] == 1 && out->start[1] == 3);
    assert_int_equal(out->zone, ZONE_SMALL); /* 24 elements */
    const struct row *gate = params_find(&table, "layers.4.delta.4.gate_in.weight");
    assert_true(gate->partial && !gate->counted && gate->split == SPLIT_NONE && gate->count == 72);
    const struct row *norm = params_find(&table, "norm.weight");
    assert_true(!norm->partial && !norm->counted && norm->layer == L);
    params_free(&table);

    layout.delta = DELTA_CONNECTION; /* connections 0, 1, 2: the last rank of four has none */
    assert_int_equal(params_create(&model, &layout, &table), 0);
    for (int i = 0; i < table.rows; i++) assert_int_equal(table.row[i].distance, 0);
    params_free(&table);
    layout.index[AXIS_TENSOR] = 2;
    assert_int_equal(params_create(&model, &layout, &table), 0);
    out = params_find(&table, "layers.4.delta.4.output_proj.weight");
    assert_true(out->split == SPLIT_NONE && out->count == 24 * 4 && !out->partial && out->counted);
    assert_null(params_find(&table, "layers.4.delta.2.output_proj.weight"));
    params_free(&table);
}

/* A tied embedding lies on the first and the last rank, which both name both; the first counts it. */
static void tied(void **state) {
    (void)state;
    struct model_config model = model_number(4);
    struct span stage[3] = {{0, 1}, {1, 2}, {2, 6}};
    struct layout layout = {
        .size[AXIS_DATA] = 1, .size[AXIS_TENSOR] = 1, .size[AXIS_PIPELINE] = 3, .chunks = 1, .stage = stage};
    for (int p = 0; p < 3; p++) {
        struct table table;
        layout.index[AXIS_PIPELINE] = p;
        assert_int_equal(params_create(&model, &layout, &table), 0);
        const struct row *embedding = params_find(&table, "embed_tokens.weight");
        if (p == 1) {
            assert_null(embedding);
        } else {
            assert_int_equal(embedding->zone, ZONE_SHARED_LARGE);
            assert_int_equal(embedding->owners, 2);
            assert_true(embedding->owner[0] == 0 && embedding->owner[1] == 2);
            assert_true(embedding->counted == (p == 0) && embedding->layer == -1);
        }
        assert_null(params_find(&table, "lm_head.weight"));
        params_free(&table);
    }
}

/* More stages than a word has bits: every tensor that several ranks hold names exactly these, and is counted
 * once. */
enum { MANY = 130 };

static void many_stages(void **state) {
    (void)state;
    struct model_config model = model_number(5);
    struct span stage[MANY];
    struct layout layout = {.size[AXIS_DATA] = 1,
                            .size[AXIS_TENSOR] = 1,
                            .size[AXIS_PIPELINE] = MANY,
                            .chunks = 1,
                            .stage = stage,
                            .narrow = true};
    struct table table[MANY], global;
    model.num_layers = MANY;
    model.delta.distances[2] = 100;
    int shared = 0, far = 0;
    for (int p = 0; p < MANY; p++) stage[p] = (struct span){p, p + 1};
    assert_int_equal(params_create(&model, NULL, &global), 0);
    for (int p = 0; p < MANY; p++) {
        layout.index[AXIS_PIPELINE] = p;
        assert_int_equal(params_create(&model, &layout, &table[p]), 0);
    }
    for (int i = 0; i < global.rows; i++) {
        int owner[MANY], owners = 0, counted = 0;
        for (int p = 0; p < MANY; p++) {
            const struct row *row = params_find(&table[p], global.row[i].name);
            if (row) owner[owners++] = p, counted += row->counted;
        }
        assert_int_equal(counted, 1);
        for (int o = 0; o < owners; o++) {
            const struct row *row = params_find(&table[owner[o]], global.row[i].name);
            assert_int_equal(row->counted, o == 0);
            if (owners == 1 && row->owners == 0) continue;
            assert_int_equal(row->owners, owners);
            assert_memory_equal(row->owner, owner, (size_t)owners * sizeof *owner);
            shared += owners > 1, far += owner[0] >= 64 && owners > 1;
        }
    }
    assert_true(shared > MANY && far > 0);
    for (int p = 0; p < MANY; p++) params_free(&table[p]);
    params_free(&global);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meshes),
        cmocka_unit_test(known_parts),
        cmocka_unit_test(tied),
        cmocka_unit_test(many_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
