/* Errors are values: a function that can fail returns 0 or one of the statuses below, which are also the
 * program's exit statuses. The first failure of a thread records its words here, and only the program's top
 * prints them and decides to end the job. Nothing below the top calls exit or abort. */
#ifndef GDN_STATUS_H
#define GDN_STATUS_H

#include <stdbool.h>

enum status {
    GDN_OK = 0,       /* finished */
    GDN_INTERNAL = 1, /* a fault of the program or of the machine under it */
    GDN_INPUT = 2,    /* bad usage, configuration or input */
    GDN_STOPPED = 3,  /* stopped early on request, a checkpoint is saved */
    GDN_UNSAVED = 4,  /* stopped early and no checkpoint could be saved */
    GDN_DIVERGED = 5, /* stopped because training diverged */
};

/* Records a failure in words a user understands and returns `status`. The first failure is kept until
 * gdn_failure_clear(); later ones, which are usually its consequences, are dropped. */
int gdn_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts what the caller was doing before the recorded words, "context: text", and returns `status`; does
 * nothing where `status` is 0. For a caller that knows what the user called the thing. */
int gdn_fail_in(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The words of the recorded failure, or "" where there is none. Owned by this module. */
const char *gdn_failure(void);

/* Forgets the recorded failure, for a caller that has dealt with it (e.g. tried an older checkpoint). */
void gdn_failure_clear(void);

/* Returns the status of `call` to the caller where it failed. */
#define TRY(call)                                                                                            \
    do {                                                                                                     \
        int try_status_ = (call);                                                                            \
        if (try_status_) return try_status_;                                                                 \
    } while (0)

#endif
