/* Requests to stop a run: a signal (train/health/signals.h), a file `stop` in the run directory, or the
 * end of the run's time limit. A signal counts on any rank. Rank 0 alone looks at the file and the clock,
 * since clocks and file caches differ between ranks. The ranks agree between two steps on the reason with
 * the greatest number (MPI_MAX). A request is never withdrawn. Nothing here is collective, and nothing
 * allocates. */
#ifndef GDN_STOP_H
#define GDN_STOP_H

enum stop_reason {
    STOP_NONE,
    STOP_TIME, /* the end is near */
    STOP_FILE, /* somebody has made the file */
    STOP_INT,  /* signals */
    STOP_TERM,
    STOP_USR1,
    STOP_USR2,
    STOP_REASONS
};

/* Kinds of work, between which the run can stop, each of which takes its own time. */
enum stop_work {
    STOP_STEP,
    STOP_EVALUATION, /* a whole one */
    STOP_ROUND,      /* of an evaluation */
    STOP_WORKS
};

enum { STOP_RECENT = 32 }; /* times of each kind that count as recent */

struct stop {
    char file[4200]; /* RUN/stop; "" on other ranks than 0 */
    double end;      /* Unix seconds at which the run is ended from outside; 0: not known, or not rank 0 */
    double margin;   /* seconds before it that are left free */
    double looked;   /* Unix seconds at which the file was last looked for */
    struct {
        double seconds[STOP_RECENT]; /* a ring; 0: not known yet */
        int next;
    } took[STOP_WORKS];
    enum stop_reason reason; /* asked for so far */
    double (*clock)(void);   /* Unix seconds */
};

/* Begins to watch for run directory `directory`, on this rank. The end is `limit_minutes` from now, or where
 * that is 0 what the environment says in Unix seconds: SLURM_JOB_END_TIME (Slurm 23.02 and newer), else
 * GDN_END_TIME (the scripts in slurm/). The margin is 60 s, or 5 % of what is left now, whichever is less.
 * GDN_INPUT where such a variable is set and is not a time. */
int stop_open(struct stop *stop, const char *directory, double limit_minutes, int rank);

/* The same with a clock that gives Unix seconds, for tests. */
int stop_open_with(struct stop *stop, const char *directory, double limit_minutes, int rank,
                   double (*clock)(void));

/* Work of this kind has taken so long. Not collective. */
void stop_took(struct stop *stop, enum stop_work work, double seconds);

/* From now on work of this kind is `factor` times as much, as where train.batch_ramp has a larger batch: the
 * times that are known grow likewise. Less work leaves them as they are. Not collective. */
void stop_grows(struct stop *stop, enum stop_work work, double factor);

/* Whether this process knows of a request to stop. Called before work of the kind `next`, with the seconds
 * that a checkpoint takes, measured or estimated. Looks for the file at most once a second.
 * The time left must be enough for two more of the longest recent step or round, or for one evaluation as
 * long as the longest recent one (within which rounds are asked about), for two checkpoints, and the margin.
 * Work that was never measured counts as nothing. Not collective. */
enum stop_reason stop_asked(struct stop *stop, enum stop_work next, double checkpoint_seconds);

/* The request is honoured (a checkpoint is saved, or all steps are done): removes the file, on rank 0, so
 * that the same command goes on. Not collective. GDN_INTERNAL where it is there and cannot be removed. */
int stop_honoured(const struct stop *stop);

/* For people, behind "stopped ": "by signal TERM", "by the file stop", "before the time limit". */
const char *stop_text(enum stop_reason reason);

/* For metrics.jsonl: "INT", "TERM", "USR1", "USR2", "stop file", "time limit". */
const char *stop_name(enum stop_reason reason);

#endif
