/* What saving while training goes on (checkpoint.asynchronous, train/loop/saver.h) needs of memory, before
 * there is a run. */
#ifndef GDN_SAVING_H
#define GDN_SAVING_H

#include <stdbool.h>
#include <stdint.h>

#include "dist/layout/shard.h"
#include "train/config/config.h"

/* Whether any checkpoints are due before the end. */
bool saver_has_intervals(const struct config *config);

/* Why a run with checkpoint.asynchronous auto saves in the foreground. */
extern const char saver_no_memory[];

/* Bytes that a rank will reserve for the copy beside its state, or would where that is still open
 * (SAVE_AUTO): none where the state lies on a device, whose memory the host has a copy of in any case. Not
 * collective. */
int64_t saver_planned(const struct config *config, const struct table *table, const struct shards *shards);

#endif
