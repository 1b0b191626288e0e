/* The table of gates, and what it says of a configuration. */
#include "model/delta/gate.h"
#include "kernels/base/append.h"
#include "model/model.h"

#include <stdlib.h>

enum { MAX_ROWS = 16, NAME = 32 };

static const struct gate *row[MAX_ROWS] = {
    [KIND_BOTTLENECK] = &gate_bottleneck, [KIND_FULL] = &gate_full, [KIND_ADAPTIVE] = &gate_adaptive};

static int rows(void) {
    int count = 0;
    while (count < MAX_ROWS && row[count]) count++;
    return count;
}

int gate_register(const struct gate *another) {
    int number = rows();
    if (number == MAX_ROWS) abort();
    row[number] = another;
    return number;
}

const struct gate *gate_of(const struct model_config *config) {
    return row[config->delta.kind];
}

const char *gate_words(void) {
    static char words[MAX_ROWS * NAME];
    size_t used = 0;
    for (int i = 0; i < MAX_ROWS && row[i]; i++)
        used = text_append(words, sizeof words, used, "%s%s", i ? "|" : "", row[i]->name);
    return words;
}

long model_gates(const struct model_config *config) {
    return gate_of(config)->gates(config);
}
