#include "train/records/printing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/base/status.h"

static enum { UNKNOWN, PRINTS, SILENT } here = UNKNOWN;

void commands_set_printing(bool prints) {
    here = prints ? PRINTS : SILENT;
}

int commands_launched_rank(void) {
    /* Innermost launcher first: mpirun inside a Slurm job sets its own rank and leaves Slurm's as it was. */
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        const char *rank = getenv(ranks[i]);
        if (rank) return atoi(rank);
    }
    return -1;
}

bool gdn_print_failure_here(void) {
    if (here != UNKNOWN) return here == PRINTS;
    return commands_launched_rank() <= 0;
}

void commands_report(int status) {
    static bool reported = false;
    if (status == GDN_OK || reported) return;
    reported = true;
    if (gdn_print_failure_here())
        fprintf(stderr, "gdn: %s\n",
                gdn_failure()[0] ? gdn_failure() : "failed without saying why: a fault of the program");
}

int commands_finish_printing(void) {
    if (!fflush(stdout) && !ferror(stdout)) return GDN_OK;
    return gdn_fail(GDN_INTERNAL, "standard output cannot be written");
}

/* What the stream still holds goes to /dev/null with all that follows. */
static void to_nowhere(FILE *out) {
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) dup2(nowhere, fileno(out));
    if (nowhere >= 0) close(nowhere);
    clearerr(out);
}

void commands_flush_unneeded(FILE *out) {
    errno = 0;
    if (!fflush(out) && !ferror(out)) return;
    fprintf(stderr,
            "gdn: note: progress cannot be written to standard output any more%s%s; training goes on\n",
            errno ? ": " : "", errno ? strerror(errno) : "");
    to_nowhere(out);
}
