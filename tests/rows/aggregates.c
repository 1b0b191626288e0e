/* The aggregates of delta connections that tests ask for. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

static int scored, mapped; /* 0 is one of gdn's */

void rows_of_aggregates(void) {
    if (!scored) scored = register_aggregate_scored(), mapped = register_aggregate_mapped();
}

void choose_aggregate(struct model_config *model) {
    const char *word = getenv("GDN_TEST_AGGREGATE");
    if (word) model->delta.aggregate = strcmp(word, "scored") ? mapped : scored;
}
