#include "train/run/ranks.h"

#include "dist/mesh/machine.h"
#include "dist/mpi/process.h"
#include "kernels/base/threads.h"
#include "train/records/printing.h"
#include "train/health/guard.h"

#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static int begin(struct mesh *mesh) {
    int rank = 0;
    TRY(mpi_begin(&rank));
    commands_set_printing(rank == 0);
    return mesh_create(axes_of(0, 1, 1).size, mesh);
}

int ranks_begin(struct mesh *mesh) {
    *mesh = mesh_alone();
    guard_begin(GUARD_INIT, commands_launched_rank());
    int status = begin(mesh);
    guard_end();
    return status;
}

int ranks_end(struct mesh *mesh, int status) {
    if (!mpi_begun()) return status;
    fflush(stdout);
    /* Now, not from main: after MPI_Finalize the first rank to leave with this status makes mpirun kill the
     * rest. */
    commands_report(status);
    guard_begin(GUARD_FINALIZE, mesh->size > 1 ? mesh->rank : commands_launched_rank());
    if (mesh->world != MPI_COMM_NULL) mesh_free(mesh);
    mpi_end();
    guard_end();
    return status;
}

void ranks_abort(const struct mesh *mesh, int status) {
    fflush(stdout);
    commands_set_printing(true);
    commands_report(gdn_fail_in(status, "rank %d on %s", mesh->rank, mesh->host));
    mpi_abort(status);
}

int ranks_arrange(struct mesh *mesh, const int size[AXES]) {
    struct mesh arranged;
    int resolved[AXES];
    memcpy(resolved, size, sizeof resolved);
    TRY(mesh_agree(mesh, mesh_validate(resolved, mesh->size)));
    TRY(mesh_create(resolved, &arranged));
    mesh_free(mesh);
    *mesh = arranged;
    return 0;
}

static int check_threads(int threads) {
    if (threads <= MOST_THREADS) return 0;
    return gdn_fail(GDN_INPUT, "OMP_NUM_THREADS is %d: at most %d threads are expected", threads,
                    MOST_THREADS);
}

int ranks_share_cores(const struct mesh *mesh, FILE *log) {
    int ranks;
    TRY(mesh_agree(mesh, check_threads(getenv("OMP_NUM_THREADS") ? omp_get_max_threads() : 1)));
    /* A launcher may have bound each rank to cores of its own: what the machine's ranks may use is the union.
     */
    cpu_set_t mine, all;
    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof mine, &mine)) CPU_SET(0, &mine);
    TRY(machine_union(mesh, &mine, (int)sizeof mine, &all, &ranks));

    int cores = CPU_COUNT(&all), share = cores / ranks, threads = omp_get_max_threads();
    if (share < 1) share = 1;
    if (share > CPU_COUNT(&mine)) share = CPU_COUNT(&mine);
    if (getenv("OMP_NUM_THREADS")) {
        if (log && threads * ranks > cores)
            fprintf(log,
                    "gdn: note: OMP_NUM_THREADS=%d for %d ranks on %s is more threads than its %d cores\n",
                    threads, ranks, mesh->host, cores);
        return 0;
    }
    omp_set_num_threads(share);
    if (log && threads > share)
        fprintf(log, "gdn: note: %d ranks share the %d cores of %s: %d thread%s each instead of %d\n", ranks,
                cores, mesh->host, share, share > 1 ? "s" : "", threads);
    return 0;
}

/* ------------------------------------------------------------------------------------------ placement */

/* Does a list of processors as "0-3,8-11" name one that is allowed? */
static bool meets(const char *list, const cpu_set_t *allowed) {
    while (*list) {
        char *end;
        long first = strtol(list, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        if (end == list) return false;
        for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET((size_t)cpu, allowed)) return true;
        list = *end == ',' ? end + 1 : end + strlen(end);
    }
    return false;
}

/* The one NUMA domain whose processors this process may use, or −1. */
static int own_domain(void) {
    enum { MAX_DOMAINS = 1024 };
    cpu_set_t allowed;
    int domain = -1, domains = 0;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return -1;
    for (int i = 0; i < MAX_DOMAINS; i++) {
        char path[64], list[4096] = "";
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", i);
        FILE *file = fopen(path, "r");
        if (!file) continue; /* their numbers may have gaps */
        if (fgets(list, sizeof list, file) && meets(list, &allowed)) domain = i, domains++;
        fclose(file);
    }
    return domains == 1 ? domain : -1;
}

enum reach { WITHIN_DOMAIN, WITHIN_NODE, ACROSS_NODES };

/* How far the ranks of one axis lie apart, at most. `stride`: from one rank to the next on it. */
static enum reach reach_of(const struct rank_place *place, int ranks, int size, int stride) {
    enum reach reach = WITHIN_DOMAIN;
    for (int r = 0; r < ranks; r++) {
        const struct rank_place *first = &place[r - r / stride % size * stride];
        if (strcmp(first->host, place[r].host)) return ACROSS_NODES;
        if (first->domain != place[r].domain || place[r].domain < 0) reach = WITHIN_NODE;
    }
    return reach;
}

static int count_hosts(const struct rank_place *place, int ranks) {
    int hosts = 0;
    for (int r = 0; r < ranks; r++) {
        int same = 0;
        while (strcmp(place[same].host, place[r].host)) same++;
        hosts += same == r;
    }
    return hosts;
}

void ranks_describe_places(const struct rank_place *place, const int size[AXES], FILE *out) {
    static const char *const text[] = {"within a NUMA domain", "within a node", "across nodes"};
    int ranks = (int)axes_ranks(size), hosts = count_hosts(place, ranks), said = 0;
    fprintf(out, "placement %d rank%s on %d node%s", ranks, ranks > 1 ? "s" : "", hosts,
            hosts > 1 ? "s" : "");
    for (int i = 0; i < axes_count(); i++) {
        enum mesh_axis a = axis_order[i];
        if (size[a] > 1)
            fprintf(out, "%s%s %s", said++ ? ", " : ": ", axis_rows[a].name,
                    text[reach_of(place, ranks, size[a], (int)axes_stride(size, a))]);
    }
    fputc('\n', out);
    int tensor = size[AXIS_TENSOR];
    if (reach_of(place, ranks, tensor, (int)axes_stride(size, AXIS_TENSOR)) == ACROSS_NODES)
        fprintf(out,
                "          sums in every layer go from node to node: fill one node after the other (mpirun "
                "--map-by slot), with a multiple of mesh.tensor: %d ranks on each\n",
                tensor);
}

void ranks_describe(const struct mesh *mesh, FILE *out) {
    struct rank_place mine = {.domain = own_domain()}, *all = calloc((size_t)mesh->size, sizeof *all);
    snprintf(mine.host, sizeof mine.host, "%s", mesh->host);
    int have = all != NULL;
    if (mesh_reduce(mesh, &have, 1, MPI_INT, MPI_MIN)) have = 0;
    if (have && !mesh_gather(mesh, &mine, sizeof mine, all) && out)
        ranks_describe_places(all, mesh->sizes.size, out);
    free(all);
}
