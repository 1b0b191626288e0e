/* Whether a rank's planned memory fits, and what would make it fit. */
#ifndef GDN_FIT_H
#define GDN_FIT_H

#include "train/memory/memory.h"

/* What is asked. */
struct fit {
    const struct config *config;
    long ranks; /* that the configuration is for */
    const struct available *available;
};

/* GDN_INPUT where `planned` of the rank called `who` is more than is available, in at most five lines: how
 * much both are, the parts, and the least change that would make all ranks fit, found by planning changes one
 * after the other (checkpoints in the foreground, recomputation, smaller micro-batches, other meshes of as
 * many ranks, the fewest times as many ranks with as much memory each), within a bound on their number. 0
 * where nothing is known of the memory available. Not collective. GDN_INTERNAL. */
int fit_verify(const struct fit *fit, const char *who, const struct memory *planned);

#endif
