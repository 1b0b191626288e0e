/* What to say of a run that hangs: from every rank's activity, who holds the others up, and words for it.
 * Looks at what it is given only. */
#ifndef GDN_HANG_H
#define GDN_HANG_H

#include <stddef.h>

#include "dist/mpi/activity.h"

/* One thread of a rank. */
struct station_thread {
    enum run_phase phase;
    int64_t step;
    double phase_seconds;                            /* since the phase began */
    double seconds;                                  /* at this very place */
    char action[ACTIVITY_TEXT], wait[ACTIVITY_TEXT]; /* "": none */
};

/* A rank, as it has answered. It is sent as it stands. */
struct station {
    int answered;
    int late; /* 1 + the thread whose phase has lasted too long; 0: none */
    struct station_thread thread[ACTIVITIES];
};

/* What is known of all. */
struct hang {
    int ranks;
    const struct station *station; /* [ranks] */
    const char (*host)[64];        /* [ranks] */
    double limit[PHASES];          /* seconds; 0: none */
};

enum hang_kind {
    HANG_SILENT,   /* the culprits do not answer */
    HANG_BUSY,     /* the culprits wait for nobody, and others wait */
    HANG_APART,    /* all wait, the culprits for something else than most */
    HANG_TOGETHER, /* all wait in the same call */
    HANG_SLOW      /* nobody waits */
};

/* Finds the culprits: culprit[rank] becomes 1 or 0. In HANG_TOGETHER and HANG_SLOW there are none. */
enum hang_kind hang_judge(const struct hang *hang, char *culprit);

/* Writes it all, cut off at `size`: a line that names the culprits and what the others wait in, one with what
 * to do, and a table of all ranks. `culprit` [ranks] is scratch. Returns the length. */
size_t hang_report(const struct hang *hang, char *culprit, char *text, size_t size);

/* Room that hang_report needs for so many ranks. */
size_t hang_room(int ranks);

#endif
