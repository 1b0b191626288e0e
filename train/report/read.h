/* A run as gdn report sees it: what its metrics.jsonl says, put together over all its starts, and its
 * config.yaml. What a run did again after it had gone back to an older step counts once, the last time. */
#ifndef GDN_REPORT_READ_H
#define GDN_REPORT_READ_H

#include <stdbool.h>

#include "dist/layout/axes.h"
#include "train/config/config.h"
#include "train/memory/memory.h"
#include "train/report/series.h"

/* Quantities over steps, each from one key of one event. */
enum report_curve {
    CURVE_LOSS,
    CURVE_GRAD_NORM,
    CURVE_LR,
    CURVE_THROUGHPUT, /* tokens a second */
    CURVE_STEP_SECONDS,
    CURVE_TOKENS, /* consumed so far */
    CURVE_VALIDATION,
    CURVE_GOODPUT, /* this and the following: of events `monitor` */
    CURVE_CONNECTION_SHARE,
    CURVE_RESIDENT, /* bytes */
    CURVE_DEVICE,   /* bytes */
    CURVE_ACTIVE,   /* connections */
    CURVE_EFFECTIVE,
    CURVE_VARIANCE, /* this and the next: of events `noise` */
    CURVE_GRADIENT,
    CURVES
};

struct report_checkpoint {
    double step, seconds;
    double stall;     /* seconds that training stood still; NAN: not told */
    double bytes;     /* NAN: not told */
    int asynchronous; /* -1: not told */
};

/* Something to know besides curves: a start, a signal, a spike, … */
struct report_event {
    char *kind;  /* "spike" */
    char *text;  /* all else that its line says */
    double step; /* NAN: none */
    double time; /* Unix seconds; NAN: not told */
    int status;  /* of an event "end": the exit status; −1: of any other */
};

/* A validation set, by the name it has in events `eval`. */
struct report_set {
    char *name;
    struct series loss; /* over steps done */
};

/* A connection at one step. */
struct report_gate {
    double step;
    int layer, distance;
    double gate, contribution; /* NAN: not told */
};

/* A connection that has gone before a step, or come back (events `prune` and `regrow`). */
struct report_change {
    double step;
    int layer, distance;
    bool back;
};

/* Of the newest line "memory". */
struct report_memory {
    bool there;
    struct memory planned, reserved;
    double peak_resident, available; /* bytes; NAN: not told */
};

struct report_run {
    char *path;      /* as given */
    char *name;      /* of its directory */
    char *text;      /* config.yaml; NULL where there is none */
    bool configured; /* `config` is what it says */
    char *problem;   /* why not */
    struct config config;

    struct series curve[CURVES]; /* over steps */
    struct series useful;        /* seconds of the steps that brought the run further, over steps */
    struct series clock; /* x: Unix seconds, y: steps done, of every step also of those done again; NAN at a
                            start */
    struct report_checkpoint *checkpoint;
    struct report_event *event;
    struct report_gate *gate; /* by step */
    struct report_change *change; /* by step */
    struct report_set *set;   /* in the order of their first loss */
    long checkpoints, events, gates, changes, sets;
    long checkpoint_room, event_room, gate_room, change_room, set_room;

    bool started;      /* whether there was such a line */
    double axis[AXES]; /* ranks of each */
    /* Of the newest start; NAN: not told. */
    double parameters, ranks, interleave, steps;
    char *device, *precision; /* NULL: not told */
    struct report_memory memory;
    double done;                  /* steps that count */
    double tokens;                /* NAN: not told */
    int restarts;                 /* resumes */
    double first_time, last_time; /* Unix seconds; NAN: not told */
};

/* Reads the run directory `path`. Not collective; changes nothing. `out` is owned by the caller in any case:
 * report_run_free. GDN_INPUT where it is no run directory, or naming the line that is not what it should be;
 * an unterminated last line, which a run may be writing just now, is left out. */
int report_run_read(const char *path, struct report_run *out);
void report_run_free(struct report_run *run);

/* Seconds of the steps that count, without those whose update was left out, over those from the first start
 * to the last event; NAN: not known. */
double report_goodput(const struct report_run *run);

#endif
