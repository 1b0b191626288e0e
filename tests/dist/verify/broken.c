#include "tests/dist/verify/broken.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/unit.h"

const struct shape shape = {.layers = 6,
                            .pipeline = 3,
                            .chunks = 1,
                            .micro_batches = 4,
                            .distances = {1, 4},
                            .buckets = 3,
                            .overlap = true,
                            .seed = 1};
const struct shape with_projections = {.layers = 6,
                                       .pipeline = 3,
                                       .chunks = 1,
                                       .micro_batches = 2,
                                       .distances = {1, 4},
                                       .narrow = true,
                                       .node = 8,
                                       .edge = 2};

struct actions *list(struct example *e, int rank) {
    return &e->schedule.rank[rank];
}

int find(struct example *e, int rank, enum act act, int payload, int index, int micro_batch) {
    for (int i = 0; i < list(e, rank)->count; i++) {
        const struct action *a = &list(e, rank)->action[i];
        if (a->act == act && (payload < 0 || (int)a->payload == payload) &&
            (index < 0 || a->index == index) && (micro_batch < 0 || a->micro_batch == micro_batch))
            return i;
    }
    fail_msg("no such action");
    return -1;
}

struct action *at(struct example *e, int rank, int i) {
    return &list(e, rank)->action[i];
}

void delete (struct example *e, int rank, int i) {
    memmove(at(e, rank, i), at(e, rank, i + 1), (size_t)(--list(e, rank)->count - i) * sizeof(struct action));
}

void move(struct example *e, int rank, int i, int to) {
    struct action a = *at(e, rank, i);
    if (i < to) {
        memmove(at(e, rank, i), at(e, rank, i + 1), (size_t)(to - 1 - i) * sizeof a);
        *at(e, rank, to - 1) = a;
    } else {
        memmove(at(e, rank, to + 1), at(e, rank, to), (size_t)(i - to) * sizeof a);
        *at(e, rank, to) = a;
    }
}

void expect(struct example *e, const char *first, const char *second) {
    assert_int_equal(example_check(e), GDN_INTERNAL);
    char text[600];
    snprintf(text, sizeof text, "%s", gdn_failure());
    gdn_failure_clear();
    if (!strstr(text, first) || !strstr(text, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", text, first, second);
    example_free(e);
}
