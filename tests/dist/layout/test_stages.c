/* Stages against all cuts there are. Costs are small integers, so that sums and squares are exact. */
#include <stdlib.h>
#include <string.h>

#include "dist/layout/stages.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"
#include "tests/support/unit.h"

enum { MAX = 10 };

struct value {
    double max, squares;
};

static struct value value_of(const double *cost, double first, double last, int stages,
                             const struct span *cut) {
    struct value v = {0, 0};
    for (int s = 0; s < stages; s++) {
        double sum = (s == 0 ? first : 0) + (s == stages - 1 ? last : 0);
        for (int l = cut[s].first; l < cut[s].end; l++) sum += cost[l];
        if (sum > v.max) v.max = sum;
        v.squares += sum * sum;
    }
    return v;
}

/* All cuts of layers from `layer` on into stages from s on, short early stages first; keeps the best. */
static void search(int layers, const double *cost, double first, double last, int stages, int s,
                   struct span *cut, struct span *best, struct value *min) {
    int layer = s ? cut[s - 1].end : 0;
    if (s < stages) {
        for (int end = layer + 1; end <= layers - (stages - s - 1); end++) {
            if (s == stages - 1 && end < layers) continue;
            cut[s] = (struct span){layer, end};
            search(layers, cost, first, last, stages, s + 1, cut, best, min);
        }
        return;
    }
    struct value v = value_of(cost, first, last, stages, cut);
    if (v.max > min->max || (v.max == min->max && v.squares >= min->squares)) return;
    *min = v;
    memcpy(best, cut, (size_t)stages * sizeof *cut);
}

static void brute_force(void **state) {
    (void)state;
    for (uint64_t draw = 0; draw < 400; draw++) {
        double cost[MAX];
        int layers = 1 + (int)(random_bits(1, 1, draw) % MAX);
        int stages = 1 + (int)(random_bits(1, 2, draw) % (uint64_t)layers);
        uint64_t spread = draw % 3 == 0 ? 1 : 4; /* all alike: many equal cuts */
        for (int l = 0; l < layers; l++) cost[l] = 1 + (double)(random_bits(2, draw, (uint64_t)l) % spread);
        double first = (double)(random_bits(1, 3, draw) % 3), last = (double)(random_bits(1, 4, draw) % 9);
        struct span cut[MAX], best[MAX], got[MAX];
        struct value min = {1e9, 1e9};
        search(layers, cost, first, last, stages, 0, cut, best, &min);
        assert_int_equal(stages_cut(layers, cost, first, last, stages, got), 0);
        for (int s = 0; s < stages; s++)
            if (got[s].first != best[s].first || got[s].end != best[s].end)
                fail_msg("draw %d, %d layers, stage %d of %d: [%d, %d), [%d, %d) is expected", (int)draw,
                         layers, s, stages, got[s].first, got[s].end, best[s].first, best[s].end);
    }
}

static void known(void **state) {
    (void)state;
    double even[12];
    for (int l = 0; l < 12; l++) even[l] = 0.1; /* sums that round */
    struct span cut[12];
    assert_int_equal(stages_cut(12, even, 0, 0, 4, cut), 0);
    for (int s = 0; s < 4; s++) assert_true(cut[s].first == 3 * s && cut[s].end == 3 * s + 3);
    assert_int_equal(stages_cut(7, even, 0, 0, 4, cut), 0); /* 1, 2, 2, 2 */
    assert_true(cut[0].end == 1 && cut[1].end == 3 && cut[2].end == 5 && cut[3].end == 7);
    assert_int_equal(stages_cut(12, even, 0, 10, 4, cut),
                     0); /* a heavy head: the others are even nonetheless */
    assert_true(cut[0].end == 3 && cut[1].end == 7 && cut[2].end == 11 && cut[3].end == 12);
    assert_int_equal(stages_cut(12, even, 0, 0, 12, cut), 0);
    for (int s = 0; s < 12; s++) assert_true(cut[s].first == s && cut[s].end == s + 1);
    assert_int_equal(stages_cut(3, even, 0, 0, 4, cut), GDN_INPUT);
    assert_non_null(strstr(gdn_failure(), "model.num_layers is 3"));
    assert_non_null(strstr(gdn_failure(), "mesh.interleave"));
    gdn_failure_clear();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(brute_force), cmocka_unit_test(known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
