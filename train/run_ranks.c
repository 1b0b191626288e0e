#include "train/run_ranks.h"

#include "train/commands.h"

#include <omp.h>
#include <sched.h>
#include <stdlib.h>

int ranks_begin(struct mesh *mesh) {
    *mesh = (struct mesh){.world = MPI_COMM_NULL, .data_axis = MPI_COMM_NULL};
    int provided = 0, rank = 0;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
        provided < MPI_THREAD_FUNNELED)
        return gdn_fail(GDN_INTERNAL, "MPI cannot be started with thread support (MPI_THREAD_FUNNELED)");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    commands_set_speaker(rank == 0);
    return mesh_create(0, 1, 1, mesh);
}

int ranks_end(struct mesh *mesh, int status) {
    int started = 0;
    MPI_Initialized(&started);
    if (!started) return status;
    fflush(stdout);
    /* Now, not from main: after MPI_Finalize the first rank to leave with this status makes mpirun kill the
     * rest. */
    commands_report(status);
    if (mesh->world != MPI_COMM_NULL) mesh_free(mesh);
    MPI_Finalize();
    return status;
}

int ranks_arrange(struct mesh *mesh, int data, int tensor, int pipeline) {
    struct mesh arranged;
    TRY(mesh_create(data, tensor, pipeline, &arranged));
    mesh_free(mesh);
    *mesh = arranged;
    return 0;
}

int ranks_share_cores(const struct mesh *mesh, FILE *log) {
    MPI_Comm host;
    int ranks = 1;
    if (MPI_Comm_split_type(mesh->world, MPI_COMM_TYPE_SHARED, mesh->rank, MPI_INFO_NULL, &host) !=
        MPI_SUCCESS)
        return gdn_fail(GDN_INTERNAL, "MPI_Comm_split_type failed");
    MPI_Comm_size(host, &ranks);

    /* A launcher may have bound each rank to cores of its own: what the host's ranks may use is the union. */
    cpu_set_t mine, all;
    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof mine, &mine)) CPU_SET(0, &mine);
    MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, host);
    MPI_Comm_free(&host);

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
