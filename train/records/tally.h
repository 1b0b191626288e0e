/* How often things have happened in a run, over all of its starts, and when last: counted from the lines of
 * metrics.jsonl, those of earlier starts as those written now, so that whoever records an event need not
 * count it besides. */
#ifndef GDN_TALLY_H
#define GDN_TALLY_H

#include <stddef.h>
#include <stdint.h>

enum tally_event {
    TALLY_START,
    TALLY_RESUME,
    TALLY_STEP,
    TALLY_CHECKPOINT,
    TALLY_CHECKPOINT_FAILED,
    TALLY_SKIP, /* and `loss_scale` of a step that was skipped */
    TALLY_SPIKE,
    TALLY_ALERT,
    TALLY_EVENTS
};

struct tally {
    int64_t count;
    int64_t step; /* of the last line, but of TALLY_STEP the greatest; −1: none */
    double time;  /* Unix seconds of the last line; 0: none, or it does not say */
};

struct tallies {
    struct tally of[TALLY_EVENTS];
};

/* Nothing has happened. */
void tallies_clear(struct tallies *tallies);

/* Counts one line of `length` bytes; others than those above are passed over. */
void tallies_line(struct tallies *tallies, const char *line, size_t length);

/* Counts the lines of the open file's first `size` bytes, reading through `buffer` (lines that do not fit it
 * are passed over). Not collective. Returns −1 on a read error, with errno. */
int tallies_file(struct tallies *tallies, int file, int64_t size, char *buffer, size_t buffer_size);

#endif
