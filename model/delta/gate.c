/* The table of gates, and what it says of a configuration. */
#include "model/delta/gate.h"
#include "kernels/base/append.h"
#include "model/model.h"
#include "model/params/stream.h"

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

bool gate_has_mix(const struct model_config *config) {
    return config->delta.aggregate == AGGREGATE_LEARNED || gate_of(config)->mixed;
}

long model_gates(const struct model_config *config) {
    return gate_of(config)->gates(config);
}

struct route_widths delta_widths(const struct model_config *model, const struct rule_config *settings,
                                 const struct layout *layout) {
    (void)settings;
    const struct gate *gate = gate_of(model);
    const struct delta_config *delta = &model->delta;
    struct leaf leaf[MAX_GATE_LEAVES];
    struct route_widths widths = {
        .narrow = layout->narrow && !layout_by_connection(layout) && gate->linear && !delta->normalize,
        .node = stream_width(model),
        .edge = delta->aggregate == AGGREGATE_ATTENTION ? delta->attention_dim + 1 : 0};
    gate->leaves(model, leaf);
    for (int i = 0; i < gate->maps; i++) {
        const struct leaf *w = &leaf[gate->map[i].leaf];
        widths.edge += w->out / (w->split == SPLIT_NONE ? 1 : layout->size[AXIS_TENSOR]);
    }
    return widths;
}
