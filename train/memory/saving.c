#include "train/memory/saving.h"

#include "dist/checkpoint/snapshot.h"

const char saver_no_memory[] =
    "a copy of the state, to save while training goes on, does not fit into memory";

bool saver_has_intervals(const struct config *config) {
    return config->checkpoint.interval > 0 || config->checkpoint.interval_minutes > 0;
}

int64_t saver_planned(const struct config *config, const struct table *table, const struct shards *shards) {
    bool copy = config->checkpoint.asynchronous != SAVE_FOREGROUND && saver_has_intervals(config);
    return copy && config_on_host(config) ? snapshot_planned(table, shards) : 0;
}
