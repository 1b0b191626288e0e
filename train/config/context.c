/* What does not go together with sequences that are cut over ranks. */
#include "kernels/base/status.h"
#include "model/mixer/exchange.h"
#include "train/config/private.h"

/* With several context ranks: `why`, and that of the other keys. */
#define refused(why, ...) impossible(reading, why, axis_rows[AXIS_CONTEXT].key, __VA_ARGS__)

int validate_context(const struct reading *reading) {
    const struct config *config = reading->config;
    const int context = config->mesh.size[AXIS_CONTEXT];
    if (context == 1) return GDN_OK;
    TRY(possible(reading, exchange_conflict(config->mesh.context_exchange, &config->model,
                                            config->mesh.size[AXIS_TENSOR], context)));
    if (config->train.sequence_length % (2L * context))
        return refused("each context rank has two pieces of a sequence, all of one length: sequence_length "
                       "must be a multiple of "
                       "2 x context",
                       KEY_PATH(train.sequence_length));
    return GDN_OK;
}
