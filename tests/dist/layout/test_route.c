/* Routes: known cases by hand, and of many random ones that every stage gets what it reads and nothing
 * crosses a boundary in vain. */
#include <stdio.h>
#include <string.h>

#include "tests/dist/schedule/example.h"
#include "tests/support/unit.h"

/* A boundary's crossings as text: "n3 e7". */
static const char *crossings_text(const struct crossings *crossings) {
    static char text[400];
    text[0] = 0;
    for (int i = 0; i < crossings->count; i++)
        sprintf(text + strlen(text), "%s%c%d", i ? " " : "",
                crossings->crossing[i].kind == CROSSING_SOURCE ? 'n' : 'e', crossings->crossing[i].index);
    return text;
}

static void expect(const struct crossings *crossings, const char *const *text, int boundaries) {
    for (int b = 0; b < boundaries; b++) assert_string_equal(crossings_text(&crossings[b]), text[b]);
}

/* Four stages of one layer, connections of all distances: node n is read by every later layer. */
static void chain(void **state) {
    (void)state;
    struct shape shape = {.layers = 4, .pipeline = 4, .chunks = 1, .distances = {1, 2, 3}};
    struct example e;
    example_routes(&shape, &e);
    expect(e.routes.forward, (const char *[]){"", "n0", "n0 n1"}, 3);
    expect(e.routes.backward, (const char *[]){"", "n0", "n0 n1"}, 3);
    example_free(&e);

    /* Only distance 1 active: the stream has it all. */
    shape.active = 1;
    example_routes(&shape, &e);
    expect(e.routes.forward, (const char *[]){"", "", ""}, 3);
    expect(e.routes.backward, (const char *[]){"", "", ""}, 3);
    example_free(&e);
}

/* The embedding's output is not the stream above stage 0, even where that has a single layer. */
static void embedding(void **state) {
    (void)state;
    struct shape shape = {.layers = 3, .pipeline = 3, .chunks = 1, .distances = {3}, .embedding = true};
    struct example e;
    example_routes(&shape, &e);
    expect(e.routes.forward, (const char *[]){"n-1", "n-1"}, 2);
    expect(e.routes.backward, (const char *[]){"n-1", "n-1"}, 2);
    example_free(&e);
}

/* Two ranks with three chunks, a layer each: rank 0 has layers 0, 2, 4. Node 0 is read by 2 (own rank), 4
 * (own rank) and, as the stream, by 1; its source gradients pass all boundaries but its own. */
static void interleaved(void **state) {
    (void)state;
    struct shape shape = {.layers = 6, .pipeline = 2, .chunks = 3, .distances = {2, 4}};
    struct example e;
    example_routes(&shape, &e);
    expect(e.routes.forward, (const char *[]){"", "", "", "", ""}, 5);
    expect(e.routes.backward, (const char *[]){"", "n0", "n0 n1", "n0 n1 n2", "n1 n3"}, 5);
    example_free(&e);

    /* Distance 3: the other rank reads it, which has had it as the stream; so nothing more crosses
     * forward. */
    shape.distances[0] = 3, shape.distances[1] = 0;
    example_routes(&shape, &e);
    expect(e.routes.forward, (const char *[]){"", "", "", "", ""}, 5);
    expect(e.routes.backward, (const char *[]){"", "n0", "n0 n1", "n1 n2", "n2"}, 5);
    example_free(&e);
}

/* Three ranks, two chunks of two layers: node 0 (not the stream) is read by layer 10 on rank 2 alone: two
 * hops, once, and home over all five boundaries. */
static void first_passage(void **state) {
    (void)state;
    struct shape shape = {.layers = 12, .pipeline = 3, .chunks = 2, .distances = {10}};
    struct example e;
    example_routes(&shape, &e); /* edges 0 → 10 and 1 → 11; node 1 is stage 0's stream */
    expect(e.routes.forward, (const char *[]){"n0", "n0 n1", "", "", ""}, 5);
    expect(e.routes.backward, (const char *[]){"n0", "n0 n1", "n0 n1", "n0 n1", "n0 n1"}, 5);
    example_free(&e);
}

static bool crosses(const struct crossings *crossings, int kind, int index) {
    for (int i = 0; i < crossings->count; i++)
        if ((int)crossings->crossing[i].kind == kind && crossings->crossing[i].index == index) return true;
    return false;
}

static const struct shape four_stages = {
    .layers = 8, .pipeline = 4, .chunks = 1, .distances = {2, 4, 6}, .narrow = true, .node = 12, .edge = 4};

static void narrow(void **state) {
    (void)state;
    /* Node 0 → layers 2, 4, 6 (stages 1, 2, 3), node 1 is the stream above stage 0. */
    struct example e;
    example_routes(&four_stages, &e);
    int e2 = example_edge(&e, 0, 2), e4 = example_edge(&e, 0, 4), e6 = example_edge(&e, 0, 6);
    /* Three edges are as wide as the node, which goes whole to stage 1; two are narrower from there on. */
    assert_int_equal(e.routes.projector[e2], -1);
    assert_int_equal(e.routes.projector[e4], 1);
    assert_int_equal(e.routes.projector[e6], 1);
    /* Node 1 crosses its own boundary as the stream; stage 1 projects it. */
    assert_int_equal(e.routes.projector[example_edge(&e, 1, 3)], -1);
    assert_int_equal(e.routes.projector[example_edge(&e, 1, 5)], 1);
    assert_int_equal(e.routes.projector[example_edge(&e, 1, 7)], 1);
    assert_string_equal(crossings_text(&e.routes.forward[0]), "n0");
    assert_string_equal(crossings_text(&e.routes.backward[0]), "n0");
    char text[100];
    /* Edges are in order of their target; node 2, read by layers 4 and 6, is projected at its own stage. */
    snprintf(text, sizeof text, "e%d e%d e%d e%d e%d e%d", example_edge(&e, 2, 4), e4, example_edge(&e, 1, 5),
             example_edge(&e, 2, 6), e6, example_edge(&e, 1, 7));
    assert_string_equal(crossings_text(&e.routes.forward[1]), text);
    assert_string_equal(crossings_text(&e.routes.backward[1]), text);
    example_free(&e);
}

static void narrow_or_whole(void **state) {
    (void)state;
    struct shape shape = four_stages;
    struct example e;
    shape.edge = 3; /* now three are narrower */
    example_routes(&shape, &e);
    assert_int_equal(e.routes.projector[example_edge(&e, 0, 2)], 0);
    assert_int_equal(e.routes.projector[example_edge(&e, 0, 6)], 0);
    example_free(&e);

    /* The choice is made with all distances active, whatever are: for node 0 there is one edge now. */
    shape.edge = 4, shape.active = 1;
    example_routes(&shape, &e);
    assert_int_equal(e.routes.projector[example_edge(&e, 0, 2)], -1);
    assert_int_equal(e.routes.projector[example_edge(&e, 0, 6)], 1);
    assert_string_equal(crossings_text(&e.routes.forward[0]), "n0");
    assert_string_equal(crossings_text(&e.routes.forward[1]),
                        "e2"); /* node 2 into layer 4; nothing of nodes 0 and 1 */
    assert_int_equal(example_edge(&e, 2, 4), 2);
    example_free(&e);

    shape.narrow = false, shape.active = 0;
    example_routes(&shape, &e);
    for (int i = 0; i < e.edges.count; i++) assert_int_equal(e.routes.projector[i], -1);
    example_free(&e);
}

/* Two ranks, two chunks: a target on the node's own rank reads the node itself. */
static void narrow_in_chunks(void **state) {
    (void)state;
    struct example e;
    struct shape two = {.layers = 8,
                        .pipeline = 2,
                        .chunks = 2,
                        .distances = {2, 4, 6},
                        .narrow = true,
                        .node = 12,
                        .edge = 4};
    example_routes(&two, &e);
    assert_int_equal(e.routes.projector[example_edge(&e, 0, 2)], 0);
    assert_int_equal(e.routes.projector[example_edge(&e, 0, 4)], -1);
    assert_int_equal(e.routes.projector[example_edge(&e, 0, 6)], 0);
    /* Its projected source goes one hop and stays for the second chunk; the projected source's gradient comes
     * back over three. */
    int far = example_edge(&e, 0, 6);
    for (int b = 0; b < 3; b++) {
        assert_int_equal(crosses(&e.routes.forward[b], CROSSING_PROJECTED, far), b == 0);
        assert_true(crosses(&e.routes.backward[b], CROSSING_PROJECTED, far));
    }
    example_free(&e);
}

/* Whether a stage's rank comes to have something that begins at stage `own`: from the last stage of that rank
 * before the first one of the stage's. */
static bool reaches(const struct example *e, int kind, int index, int own, int stage) {
    int end = own, s;
    while (layout_rank_of(&e->layout, end) != layout_rank_of(&e->layout, stage)) end++;
    for (s = end; layout_rank_of(&e->layout, s) != layout_rank_of(&e->layout, own);) s--;
    for (; s < end; s++) {
        bool stream = kind == CROSSING_SOURCE && s == own && e->stage[own].end == index + 1;
        if (!stream && !crosses(&e->routes.forward[s], kind, index)) return false;
    }
    return true;
}

/* Every edge's target gets its source, or its projected source; and without any one crossing some would
 * not. */
static int unreached(const struct example *e) {
    int n = 0;
    for (int i = 0; i < e->edges.count; i++) {
        const struct edge *edge = &e->edges.edge[i];
        if (!edge_set_has(&e->active, i) || e->shape.pipeline * e->shape.chunks == 1) continue;
        int own = layout_stage_of(&e->layout, edge->source),
            target = layout_stage_of(&e->layout, edge->target);
        int by = e->routes.projector[i];
        if (by < 0)
            n += !reaches(e, CROSSING_SOURCE, edge->source, own, target);
        else
            n += !reaches(e, CROSSING_SOURCE, edge->source, own, by) ||
                 !reaches(e, CROSSING_PROJECTED, i, by, target);
        for (int b = by < 0 ? own : by; b < target; b++) { /* and its gradient comes back */
            bool stream = by < 0 && b == own && e->stage[own].end == edge->source + 1;
            if (!stream)
                n += !crosses(&e->routes.backward[b], by < 0 ? CROSSING_SOURCE : CROSSING_PROJECTED,
                              by < 0 ? edge->source : i);
        }
        for (int b = own; by >= 0 && b < by; b++)
            if (b != own || e->stage[own].end != edge->source + 1)
                n += !crosses(&e->routes.backward[b], CROSSING_SOURCE, edge->source);
    }
    return n;
}

static void nothing_missing_nothing_in_vain(void **state) {
    (void)state;
    long crossings = 0;
    for (unsigned n = 0; n < 1000; n++) {
        struct shape shape = example_random(3, n);
        struct example e;
        example_routes(&shape, &e);
        assert_int_equal(unreached(&e), 0);
        for (int b = 0; b < 2 * e.routes.boundaries; b++) {
            struct crossings *list = b % 2 ? &e.routes.backward[b / 2] : &e.routes.forward[b / 2];
            for (int i = 0; i < list->count; i++) { /* taken out, it is missed; nor is it there twice */
                struct crossing kept = list->crossing[i];
                list->crossing[i].index = -2;
                if (!unreached(&e)) {
                    example_print(&shape);
                    fail_msg("boundary %d, crossing %d", b / 2, i);
                }
                list->crossing[i] = kept;
                crossings++;
            }
        }
        example_free(&e);
    }
    assert_true(crossings > 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain),
        cmocka_unit_test(embedding),
        cmocka_unit_test(interleaved),
        cmocka_unit_test(first_passage),
        cmocka_unit_test(narrow),
        cmocka_unit_test(narrow_or_whole),
        cmocka_unit_test(narrow_in_chunks),
        cmocka_unit_test(nothing_missing_nothing_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
