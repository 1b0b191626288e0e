/* The activity: what this process is doing just now, told so that another thread can ask
 * (train/health/watchdog.h), however the process hangs: the phase of the run and its step, the action of the
 * schedule, and the call in which it waits for other ranks. It also adds up the time spent in such calls.
 *
 * There are two activities, of the main thread and of the thread that writes checkpoints: what a thread tells
 * goes to its own. Each is written by one thread, with relaxed atomic stores and no locks, and may be read by
 * any; what is read in the middle of a change may be partly the one and partly the other. Telling costs a few
 * stores, and a wait two looks at the clock besides. Words that are handed in are not copied: they outlive
 * the call, or were told to be over. */
#ifndef GDN_ACTIVITY_H
#define GDN_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

enum run_phase { PHASE_NONE, PHASE_START, PHASE_STEP, PHASE_EVALUATION, PHASE_CHECKPOINT, PHASE_END, PHASES };

enum activity_thread { ACTIVITY_MAIN, ACTIVITY_WRITER, ACTIVITIES };

enum { ACTIVITY_TEXT = 160 };

/* Puts what an action is into words; see dist/schedule/schedule.h, action_text. */
typedef void activity_describe(const void *action, char text[ACTIVITY_TEXT]);

/* A new phase begins, or the same one anew, whose time-out then begins again; `step`: steps done. The time
 * waited begins at 0. */
void activity_phase(enum run_phase phase, int64_t step);
/* The same phase goes on and has come so far that its time-out may begin again. */
void activity_renew(void);

/* What is being done in the phase; NULL: nothing in particular (any more). `action` must stay until then. */
void activity_action(const void *action, activity_describe *describe);

/* From here to activity_leave the thread waits for other ranks: in `call` ("sum") of `where` ("data", an
 * axis; "mesh", all ranks; "device", the GPU), of `count` elements, with `peer`, a rank of the axis (−1
 * each: none). In pairs; inside a pair other pairs count for nothing. */
void activity_enter(const char *where, const char *call, int64_t count, int peer);
void activity_leave(void);

/* Seconds that this thread has waited since its phase began. */
double activity_waited(void);

/* The calling thread is the one that writes checkpoints, from now on. Its phase is PHASE_NONE while there is
 * nothing to write. */
void activity_of_writer(void);

/* One activity, as read. */
struct activity {
    enum run_phase phase;
    int64_t step;
    uint64_t begun; /* changes where a phase begins */
    uint64_t moves; /* changes with every change */
    const void *action;
    activity_describe *describe;
    const char *where, *call; /* where: NULL: it does not wait */
    int64_t count;
    int peer;
};

/* Reads an activity; from any thread. */
void activity_read(enum activity_thread thread, struct activity *out);

/* "step", "checkpoint", …; PHASE_NONE: "idle". */
const char *activity_phase_name(enum run_phase phase);
/* "the data axis's sum of 4096 elements", "the agreement of all ranks"; "" where it does not wait. */
void activity_wait_text(const struct activity *activity, char text[ACTIVITY_TEXT]);
/* "backward chunk 0 of micro-batch 1, …"; "" where there is no action. */
void activity_action_text(const struct activity *activity, char text[ACTIVITY_TEXT]);

#endif
