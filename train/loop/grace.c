/* Whether mpirun would leave a run the time to stop in (train/health/launcher.h). */
#include "train/loop/loop.h"

#include "train/health/launcher.h"

#include <math.h>

void loop_grace_step(struct loop *loop, double seconds) {
    const double grace = launcher_grace();
    const double steady = fmin(seconds, loop->step_seconds); /* one step alone may be a hiccup */
    const double needed = steady + loop->saved_seconds;
    char saving[64] = "";
    loop->step_seconds = seconds;
    if (loop->grace_told || loop->run->mesh.rank || needed <= grace) return;
    loop->grace_told = true;
    if (loop->saved_seconds > 0)
        snprintf(saving, sizeof saving, " and a checkpoint %.2g s", loop->saved_seconds);
    fprintf(stderr,
            "%sgdn: note: a step takes %.2g s%s, but to end a job mpirun sends its ranks KILL %g s after "
            "TERM: what "
            "they did since the last checkpoint is lost then. To raise that: mpirun --mca "
            "odls_base_sigkill_timeout %.0f …\n",
            loop->progress.standing ? "\n" : "", steady, saving, grace, fmax(60, ceil(2 * needed)));
    loop->progress.standing = false;
}
