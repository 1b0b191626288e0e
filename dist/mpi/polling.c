#include "dist/mpi/polling.h"

#include "dist/mpi/activity.h"

#include <time.h>

/* The other ranks come when their threads get a core; the longest sleep is what a call may take longer. */
enum { SHORTEST = 50 * 1000, LONGEST = 2 * 1000 * 1000 }; /* nanoseconds */

static int wait_for(MPI_Request *request) {
    int done = 0, code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    for (long pause = SHORTEST; code == MPI_SUCCESS && !done;) {
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        pause = 2 * pause < LONGEST ? 2 * pause : LONGEST;
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
    return code;
}

/* Waits for the call that has begun with `code`. */
static int end(int code, MPI_Request *request) {
    return code == MPI_SUCCESS ? wait_for(request) : code;
}

int polling_allreduce(bool polling, const void *send, void *receive, int count, MPI_Datatype type,
                      MPI_Op operation, MPI_Comm comm) {
    MPI_Request request;
    activity_enter("mesh", "reduction", -1, -1);
    int code = !polling
                   ? MPI_Allreduce(send, receive, count, type, operation, comm)
                   : end(MPI_Iallreduce(send, receive, count, type, operation, comm, &request), &request);
    activity_leave();
    return code;
}

int polling_broadcast(bool polling, void *bytes, int count, int root, MPI_Comm comm) {
    MPI_Request request;
    activity_enter("mesh", "broadcast", -1, -1);
    int code = !polling ? MPI_Bcast(bytes, count, MPI_BYTE, root, comm)
                        : end(MPI_Ibcast(bytes, count, MPI_BYTE, root, comm, &request), &request);
    activity_leave();
    return code;
}

int polling_allgather(bool polling, const void *send, int count, void *receive, MPI_Comm comm) {
    MPI_Request request;
    activity_enter("mesh", "gathering", -1, -1);
    int code = !polling ? MPI_Allgather(send, count, MPI_BYTE, receive, count, MPI_BYTE, comm)
                        : end(MPI_Iallgather(send, count, MPI_BYTE, receive, count, MPI_BYTE, comm, &request),
                              &request);
    activity_leave();
    return code;
}

int polling_gather(bool polling, const void *send, int count, void *receive, const int *counts,
                   const int *places, MPI_Comm comm) {
    MPI_Request request;
    activity_enter("mesh", "gathering", -1, -1);
    int code =
        !polling
            ? MPI_Gatherv(send, count, MPI_BYTE, receive, counts, places, MPI_BYTE, 0, comm)
            : end(MPI_Igatherv(send, count, MPI_BYTE, receive, counts, places, MPI_BYTE, 0, comm, &request),
                  &request);
    activity_leave();
    return code;
}
