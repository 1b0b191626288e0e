/* The emulated device's NCCL. A group becomes two pieces of work on its stream: the first gives copies of
 * what is sent to MPI and posts the receives, the second completes when all has arrived. So a send waits
 * for nothing, and a receive blocks its own stream alone. Between two ranks of a communicator messages
 * keep their order, as in NCCL; they are not matched otherwise, and sizes must agree at both ends, else
 * the communicator is broken.
 *
 * Where a communicator is not blocking, a group is queued after its end has returned, when somebody asks, as
 * NCCL does it in a thread of its own. A communicator ends only when no graph has exchanges of it any more:
 * NCCL would wait there forever; here the process is aborted. */
#include <memory>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#define OMPI_SKIP_MPICXX 1 /* Open MPI's C++ interface, which is no more */
#include <mpi.h>

#include <nccl.h>

#include "emulated.h"

namespace {

enum { FIRST_TAG = 20000, /* of MPI_COMM_WORLD's */ COMMUNICATORS_EACH = 1000 };

struct message {
    char *x;
    size_t bytes;
    int peer;
};

struct flight {
    std::vector<std::vector<char>> in;
    std::vector<MPI_Request> request;
};

struct sent {
    std::vector<char> copy;
    MPI_Request request;
};

struct id {
    int root, number; /* rank in MPI_COMM_WORLD */
};

} // namespace

struct emulated_communicator {
    int rank, tag;
    std::vector<int> world; /* ranks in MPI_COMM_WORLD */
    std::vector<struct message> out, in;
    cudaStream_t stream;
    std::vector<std::unique_ptr<struct sent>> sent; /* that MPI still has */
    ncclResult_t error;
    bool blocking, aborted;
    bool ended; /* a group, whose exchanges are still to be queued */
    int kept;   /* pieces of work that graphs have */
};

static int depth;                                    /* of groups */
static std::vector<emulated_communicator *> grouped; /* with something in the group */
static std::vector<emulated_communicator *> aborted; /* in the group */

const char *ncclGetErrorString(ncclResult_t result) {
    switch (result) {
    case ncclSuccess:
        return "no error";
    case ncclSystemError:
        return "unhandled system error";
    case ncclInvalidArgument:
        return "invalid argument";
    case ncclInvalidUsage:
        return "invalid usage";
    case ncclRemoteError:
        return "remote process exited or there was a network error";
    case ncclInProgress:
        return "NCCL operation in progress";
    }
    return "unknown result code";
}

/* ------------------------------------------------------------------ communicators */

static int world_rank(void) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *out) {
    static int made;
    struct id id = {world_rank(), made++};
    if (made >= COMMUNICATORS_EACH) return ncclSystemError;
    memset(out, 0, sizeof *out);
    memcpy(out, &id, sizeof id);
    return ncclSuccess;
}

/* Whoever made the id collects all ranks and tells them to each. */
static void meet(emulated_communicator *c, int root) {
    int mine[2] = {c->rank, world_rank()}, ranks = (int)c->world.size();
    c->world[(size_t)c->rank] = mine[1];
    if (mine[1] != root) {
        MPI_Send(mine, 2, MPI_INT, root, c->tag, MPI_COMM_WORLD);
        MPI_Recv(c->world.data(), ranks, MPI_INT, root, c->tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    for (int i = 1; i < ranks; i++) {
        int other[2];
        MPI_Recv(other, 2, MPI_INT, MPI_ANY_SOURCE, c->tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        c->world[(size_t)other[0]] = other[1];
    }
    for (int r = 0; r < ranks; r++)
        if (r != c->rank)
            MPI_Send(c->world.data(), ranks, MPI_INT, c->world[(size_t)r], c->tag, MPI_COMM_WORLD);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId unique, int rank,
                                    ncclConfig_t *config) {
    struct id id;
    memcpy(&id, &unique, sizeof id);
    emulated_communicator *c = *comm = new emulated_communicator();
    c->rank = rank;
    c->blocking = config->blocking;
    c->world.resize((size_t)ranks);
    c->tag = FIRST_TAG + id.root * COMMUNICATORS_EACH + id.number;
    meet(c, id.root);
    return ncclSuccess;
}

/* Forgets what MPI is done with. */
static void forget(emulated_communicator *c, bool all) {
    for (size_t i = c->sent.size(); i-- > 0;) {
        int done = 0;
        if (all)
            MPI_Wait(&c->sent[i]->request, MPI_STATUS_IGNORE);
        else
            MPI_Test(&c->sent[i]->request, &done, MPI_STATUS_IGNORE);
        if (all || done) c->sent.erase(c->sent.begin() + (long)i);
    }
}

/* Whether nothing that was captured can ask for it any more. */
static void check_kept(const emulated_communicator *c, const char *call) {
    if (c->kept == 0) return;
    fprintf(
        stderr,
        "emulated NCCL: %s never returns, since a graph that has exchanges of its communicator is there\n",
        call);
    abort();
}

ncclResult_t ncclCommFinalize(ncclComm_t c) {
    check_kept(c, "ncclCommFinalize");
    forget(c, true);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t c) {
    delete c;
    return ncclSuccess;
}

/* Work that is queued still looks at it, so it stays. */
ncclResult_t ncclCommAbort(ncclComm_t c) {
    ncclGroupStart();
    c->aborted = true;
    aborted.push_back(c);
    return ncclGroupEnd();
}

/* What waits for peers of these communicators ends. */
static void end_aborted(void) {
    if (aborted.empty()) return;
    emulated_rest();
    for (const emulated_communicator *c : aborted) check_kept(c, "ncclCommAbort");
    aborted.clear();
}

/* ------------------------------------------------------------------ exchanges */

static void begin_flight(emulated_communicator *c, const std::vector<struct message> &out,
                         const std::vector<struct message> &in, struct flight *flight) {
    forget(c, false);
    *flight = {}; /* what was captured is done more than once */
    for (const struct message &m : in) {
        flight->in.emplace_back(m.bytes + 1); /* one more shows a message that is too long */
        flight->request.push_back(MPI_REQUEST_NULL);
        MPI_Irecv(flight->in.back().data(), (int)m.bytes + 1, MPI_BYTE, c->world[(size_t)m.peer], c->tag,
                  MPI_COMM_WORLD, &flight->request.back());
    }
    for (const struct message &m : out) {
        c->sent.emplace_back(new sent{std::vector<char>(m.x, m.x + m.bytes), MPI_REQUEST_NULL});
        MPI_Isend(c->sent.back()->copy.data(), (int)m.bytes, MPI_BYTE, c->world[(size_t)m.peer], c->tag,
                  MPI_COMM_WORLD, &c->sent.back()->request);
    }
}

static bool is_there(emulated_communicator *c, const std::vector<struct message> &in, struct flight *flight) {
    if (c->aborted) return true;
    for (size_t i = 0; i < in.size(); i++) {
        if (flight->request[i] == MPI_REQUEST_NULL) continue;
        int done = 0, bytes = 0;
        MPI_Status status;
        MPI_Test(&flight->request[i], &done, &status);
        if (!done) return false;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        if ((size_t)bytes != in[i].bytes) c->error = ncclInvalidUsage;
    }
    return true;
}

static void end_flight(const emulated_communicator *c, const std::vector<struct message> &in,
                       const struct flight *flight) {
    for (size_t i = 0; i < in.size() && !c->aborted; i++) memcpy(in[i].x, flight->in[i].data(), in[i].bytes);
}

/* Counted for as long as it is there; NULL where nothing is captured. */
static std::shared_ptr<void> hold(emulated_communicator *c) {
    if (!graph_captures(c->stream)) return nullptr;
    c->kept++;
    return std::shared_ptr<void>(c, [](emulated_communicator *held) { held->kept--; });
}

static void enqueue(emulated_communicator *c) {
    std::vector<struct message> out = std::move(c->out), in = std::move(c->in);
    std::shared_ptr<struct flight> flight(new struct flight());
    std::shared_ptr<void> held = hold(c);
    c->out.clear();
    c->in.clear();
    emulated_enqueue(c->stream, "ncclGroupEnd", [=] {
        (void)held;
        if (!c->aborted) begin_flight(c, out, in, flight.get());
    });
    emulated_enqueue_when(
        c->stream, "ncclGroupEnd", [=] { return is_there(c, in, flight.get()); },
        [=] { end_flight(c, in, flight.get()); });
}

ncclResult_t ncclGroupStart(void) {
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    if (depth == 0) return ncclInvalidUsage;
    if (--depth) return ncclSuccess;
    ncclResult_t result = ncclSuccess;
    for (emulated_communicator *c : grouped) {
        if (c->blocking)
            enqueue(c);
        else
            c->ended = true, result = ncclInProgress;
    }
    grouped.clear();
    end_aborted();
    return result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *error) {
    *error = c->ended ? ncclInProgress : c->error;
    if (c->ended) enqueue(c);
    c->ended = false;
    return ncclSuccess;
}

static ncclResult_t add(emulated_communicator *c, std::vector<struct message> *list, const void *x,
                        size_t bytes, int peer, cudaStream_t stream) {
    if (peer < 0 || (size_t)peer >= c->world.size() || c->ended) return ncclInvalidArgument;
    if (c->out.empty() && c->in.empty()) grouped.push_back(c);
    list->push_back({(char *)x, bytes, peer});
    c->stream = stream;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *x, size_t count, ncclDataType_t, int peer, ncclComm_t c,
                      cudaStream_t stream) {
    ncclGroupStart();
    ncclResult_t result = add(c, &c->out, x, count, peer, stream);
    ncclGroupEnd();
    return result;
}

ncclResult_t ncclRecv(void *x, size_t count, ncclDataType_t, int peer, ncclComm_t c, cudaStream_t stream) {
    ncclGroupStart();
    ncclResult_t result = add(c, &c->in, x, count, peer, stream);
    ncclGroupEnd();
    return result;
}

ncclResult_t ncclAllGather(const void *mine, void *all, size_t count, ncclDataType_t, ncclComm_t c,
                           cudaStream_t stream) {
    ncclGroupStart();
    for (int r = 0; r < (int)c->world.size(); r++) {
        char *place = (char *)all + (size_t)r * count;
        if (r == c->rank && place != mine)
            cudaMemcpyAsync(place, mine, count, cudaMemcpyDeviceToDevice, stream);
        if (r == c->rank) continue;
        add(c, &c->out, mine, count, r, stream);
        add(c, &c->in, place, count, r, stream);
    }
    return ncclGroupEnd();
}
