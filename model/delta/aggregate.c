/* The table of aggregates. */
#include "model/delta/aggregate.h"
#include "kernels/base/append.h"

#include <stdlib.h>

enum { MAX_ROWS = 16, NAME = 32 };

static const struct aggregate *row[MAX_ROWS] = {[AGGREGATE_LEARNED] = &aggregate_learned,
                                                [AGGREGATE_MEAN] = &aggregate_mean,
                                                [AGGREGATE_ATTENTION] = &aggregate_attention,
                                                [AGGREGATE_MULTIHEAD] = &aggregate_multihead};

int aggregates(void) {
    int count = 0;
    while (count < MAX_ROWS && row[count]) count++;
    return count;
}

int aggregate_register(const struct aggregate *another) {
    int number = aggregates();
    if (number == MAX_ROWS) abort();
    row[number] = another;
    return number;
}

const struct aggregate *aggregate_of(const struct model_config *config) {
    return row[config->delta.aggregate];
}

int aggregate_leaves(const struct model_config *config, struct leaf *out) {
    const struct aggregate *aggregate = aggregate_of(config);
    return aggregate->leaves ? aggregate->leaves(config, out) : 0;
}

const char *aggregate_words(void) {
    static char words[MAX_ROWS * NAME];
    size_t used = 0;
    for (int i = 0; i < aggregates(); i++)
        used = text_append(words, sizeof words, used, "%s%s", i ? "|" : "", row[i]->name);
    return words;
}
