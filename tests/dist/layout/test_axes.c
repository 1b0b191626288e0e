/* Axes as one, against places counted by hand: with a row more over which gradients are summed, and that
 * divides the batch ("replica") or does not ("context"). */
#include <stdio.h>
#include <string.h>

#include "dist/layout/axes.h"
#include "tests/support/unit.h"

enum { DATA = 2, TENSOR = 3, PIPELINE = 2, MORE = 2, COPIES = DATA * MORE };

static struct axis_row row = {.key = "mesh.more", .divides = "what data ranks have", .gradients = true};
static int more;

static struct axis_sizes sizes(void) {
    struct axis_sizes s = axes_of(DATA, TENSOR, PIPELINE);
    s.size[more] = MORE;
    return s;
}

static void registered(void **state) {
    (void)state;
    assert_true(axes_count() == AXES_OF_GDN + 1 && more == AXES_OF_GDN);
    const struct axis_sizes s = sizes();
    char text[AXES_TEXT], want[AXES_TEXT];
    snprintf(want, sizeof want, "data 2 x tensor 3 x pipeline 2 x %s 2", row.name);
    assert_string_equal(axes_text(s.size, text), want);
    assert_int_equal(axes_ranks(s.size), DATA * TENSOR * PIPELINE * MORE);
    assert_int_equal(axes_each(s.size), TENSOR * PIPELINE * MORE);
}

static void copies_are_one_axis(void **state) {
    (void)state;
    const struct axis_sizes s = sizes(), joined = axes_joined(s.size);
    assert_true(joined.size[AXIS_COPIES] == COPIES && joined.size[AXIS_TENSOR] == TENSOR &&
                joined.size[AXIS_PIPELINE] == PIPELINE && joined.size[more] == 1);
    int rank = 0; /* counts up as MPI's numbers do: tensor first, the row that was added last */
    for (int m = 0; m < MORE; m++)
        for (int p = 0; p < PIPELINE; p++)
            for (int d = 0; d < DATA; d++)
                for (int t = 0; t < TENSOR; t++, rank++) {
                    int place[AXES];
                    axes_place_joined(s.size, rank, place);
                    assert_int_equal(place[AXIS_COPIES], d + DATA * m);
                    assert_true(place[AXIS_TENSOR] == t && place[AXIS_PIPELINE] == p && place[more] == 0);
                    assert_int_equal(axes_rank_joined(s.size, place), rank);
                }
}

static void batches_are_divided_where_the_table_says(void **state) {
    (void)state;
    struct axis_sizes s = sizes();
    for (int rank = 0; rank < (int)axes_ranks(s.size); rank++) {
        int index[AXES], first = 0;
        axes_place(s.size, rank, index);
        const struct batch_part part = axes_batch(s.size, rank);
        assert_int_equal(part.parts, row.batch ? COPIES : DATA);
        assert_int_equal(part.index, index[AXIS_DATA] + (row.batch ? DATA * index[more] : 0));
        while (axes_batch(s.size, first).index != part.index) first++;
        assert_int_equal(axes_batch_first(s.size, rank), first);
    }
    s.size[AXIS_DATA] = 0; /* not known yet */
    assert_int_equal(axes_batch(s.size, 0).parts, row.batch ? MORE : 1);
}

int main(int argc, char **argv) {
    row.name = argc > 1 ? argv[1] : "replica";
    row.batch = strcmp(row.name, "context") != 0;
    more = axes_register(&row);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registered),
        cmocka_unit_test(copies_are_one_axis),
        cmocka_unit_test(batches_are_divided_where_the_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
