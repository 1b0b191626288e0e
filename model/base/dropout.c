#include "model/base/dropout.h"

struct mask dropout_mask(const struct model *m, enum dropout_site site, int layer, int distance, double rate,
                         long row) {
    static const char *const names[] = {[DROP_MIXER] = "dropout.mixer",
                                        [DROP_MLP] = "dropout.mlp",
                                        [DROP_ATTENTION] = "dropout.attention",
                                        [DROP_GATE] = "dropout.gate"};
    const struct pass *pass = m->pass;
    uint64_t place = (uint64_t)layer << 32 | (uint64_t)distance;
    return (struct mask){.site = random_bits(pass->options->masks, random_name(names[site]), place),
                         .row = (uint64_t)(pass->sequence * m->S + row),
                         .p = rate};
}
