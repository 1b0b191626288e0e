/* Models without some layers (train/prune/layers.h): which connections are left and what their tensors were; and a layer
 * that adds nothing may go without another loss, however far the sources of others then are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/fixture.h"
#include "tests/support/backend.h"
#include "train/prune/layers.h"

enum { B = FIXTURE_BATCH, S = FIXTURE_LENGTH, LAYERS = 5 };

static struct config config_of(int kind, int aggregate, const struct delta_edge *edges, int count) {
    struct config config;
    memset(&config, 0, sizeof config);
    config.model = small_model();
    config.model.num_layers = LAYERS;
    struct delta_config *delta = &config.model.delta;
    delta->kind = kind, delta->aggregate = aggregate;
    delta->distance_scale = SCALE_RECIPROCAL, delta->decay = 0.5;
    delta->num_distances = delta->stage_steps = 0, delta->embedding_source = false;
    memcpy(delta->edges, edges, (size_t)count * sizeof *edges);
    delta->num_edges = count;
    return config;
}

static bool listed(const struct cut *cut, int target, int source, int before, int distance) {
    for (int i = 0; i < cut->edges; i++)
        if (cut->edge[i].now.target == target && cut->edge[i].now.source == source)
            return cut->edge[i].target == before && cut->edge[i].distance == distance;
    return false;
}

static void names(void **state) {
    (void)state;
    /* Layers 1 and 2 go. 3 reads 2, 1 and 0: the last of these as before; 4 reads 2 and 1, which become 0, by the nearer;
     * 4 reads 3 and the embedding. */
    static const struct delta_edge edges[] = {{1, 0}, {2, 1}, {3, 2}, {3, 1}, {3, 0}, {4, 3}, {4, 2}, {4, 1}, {4, -1}};
    struct config config = config_of(KIND_BOTTLENECK, AGGREGATE_MEAN, edges, 9), out;
    const bool gone[LAYERS] = {false, true, true, false, false};
    struct edges table;
    struct cut cut;
    char before[128];
    double factor;
    assert_int_equal(edges_create(&config.model, &table), 0);
    assert_int_equal(cut_create(&config, &table, NULL, gone, &cut, &out), 0);
    assert_true(cut.num_layers == 3 && cut.layer[0] == 0 && cut.layer[1] == 3 && cut.layer[2] == 4);
    assert_int_equal(out.model.num_layers, 3);
    assert_int_equal(cut.edges, 4);
    assert_int_equal(out.model.delta.num_edges, 4);
    assert_true(listed(&cut, 1, 0, 3, 3) && listed(&cut, 2, 1, 4, 1) && listed(&cut, 2, 0, 4, 2) && listed(&cut, 2, -1, 4, 5));
    cut_name(&cut, &out.model, "layers.1.delta.1.output_proj.weight", before, sizeof before, &factor);
    assert_string_equal(before, "layers.3.delta.3.output_proj.weight");
    assert_true(fabs(factor - (1 / 2.5) / (1 / 1.5)) < 1e-15);
    cut_name(&cut, &out.model, "layers.2.delta.2.gate_in.bias", before, sizeof before, &factor);
    assert_string_equal(before, "layers.4.delta.2.gate_in.bias");
    assert_true(factor == 1);
    cut_name(&cut, &out.model, "layers.2.delta.select.weight", before, sizeof before, &factor);
    assert_string_equal(before, "layers.4.delta.select.weight");
    cut_name(&cut, &out.model, "layers.2.mlp.up_proj.weight", before, sizeof before, &factor);
    assert_string_equal(before, "layers.4.mlp.up_proj.weight");
    cut_name(&cut, &out.model, "embed_tokens.weight", before, sizeof before, &factor);
    assert_string_equal(before, "embed_tokens.weight");
    cut_free(&cut);
    edges_free(&table);
}

static void copy(const struct cut *cut, const struct fixture *from, struct fixture *to) {
    for (int i = 0; i < to->table.rows; i++) {
        const struct row *row = &to->table.row[i];
        char name[128];
        double factor;
        cut_name(cut, &to->config, row->name, name, sizeof name, &factor);
        const struct row *was = params_find(&from->table, name);
        if (!was || was->count != row->count) fail_msg("%s: %s", row->name, name);
        for (long k = 0; k < row->count; k++)
            to->state.weight[row->offset + k] = (real)(factor * (double)from->state.weight[was->offset + k]);
    }
}

/* Layer 2 has no connections and adds nothing. */
static void nothing(void **state) {
    (void)state;
    static const struct delta_edge edges[] = {{0, -1}, {1, 0}, {1, -1}, {3, 2}, {3, 0}, {3, -1}, {4, 2}, {4, 3}};
    const bool gone[LAYERS] = {[2] = true};
    static int32_t tokens[B * (S + 1)];
    for (int kind = 0; kind < 3; kind++)
        for (int aggregate = 0; aggregate < 4; aggregate++) {
            struct config config = config_of(kind, aggregate, edges, 8), out;
            struct fixture all, less;
            struct edges table;
            struct cut cut;
            struct loss_sums sums;
            assert_int_equal(edges_create(&config.model, &table), 0);
            assert_int_equal(cut_create(&config, &table, NULL, gone, &cut, &out), 0);
            assert_int_equal(cut.edges, 8);
            fixture_rows(tokens, config.model.vocab_size);
            fixture_create(&all, &config.model, test_backends()[0], B, S, 3, 0.2);
            fixture_create(&less, &out.model, test_backends()[0], B, S, 4, 0.2);
            for (int i = 0; i < all.table.rows; i++) {
                const struct row *row = &all.table.row[i];
                if (!strcmp(row->name, "layers.2.self_attn.o_proj.weight") ||
                    !strcmp(row->name, "layers.2.mlp.down_proj.weight"))
                    memset(all.state.weight + row->offset, 0, (size_t)row->count * sizeof(real));
            }
            copy(&cut, &all, &less);
            struct loss_options o = {.active = NULL, .target_weight = 1.0 / (B * S), .token_weight = 1.0 / (B * S)};
            const double with = fixture_loss(&all, tokens, B, S, &o, false, &sums),
                         without = fixture_loss(&less, tokens, B, S, &o, false, &sums);
            if (!(fabs(with - without) <= (sizeof(real) == 8 ? 1e-13 : 3e-6) * with)) /* rounding of scaled weights */
                fail_msg("kind %d, aggregate %d: %.17g, without a layer that adds nothing %.17g", kind, aggregate, with,
                         without);
            cut_free(&cut);
            edges_free(&table);
            fixture_free(&all), fixture_free(&less);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
