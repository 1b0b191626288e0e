/* Part of builds with the address sanitizer alone: what Open MPI allocates and never frees is none of gdn's
 * leaks. Told at the calls that do so, by MPI's profiling interface; PMIx has a thread of its own, for
 * which tests/lsan.supp has its library's name, known at the end only where that is still loaded.
 * Suppressions for all of Open MPI would need whole stacks: its slow unwinding of every allocation made a
 * process take four times as long. */
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <sanitizer/lsan_interface.h>
#include <string.h>

/* Keeps PMIx's library until the process ends. */
static int keep(struct dl_phdr_info *library, size_t size, void *name) {
    (void)size;
    if (!strstr(library->dlpi_name, "libpmix")) return 0;
    *(const char **)name = library->dlpi_name;
    return 1;
}

static void keep_pmix(void) {
    const char *name = NULL;
    if (dl_iterate_phdr(keep, &name)) (void)dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

#define EXCUSED(call) \
    __lsan_disable(); \
    int status = P##call; \
    __lsan_enable(); \
    return status

int MPI_Init(int *argc, char ***argv) {
    __lsan_disable();
    int status = PMPI_Init(argc, argv);
    keep_pmix();
    __lsan_enable();
    return status;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    __lsan_disable();
    int status = PMPI_Init_thread(argc, argv, required, provided);
    keep_pmix();
    __lsan_enable();
    return status;
}

int MPI_Finalize(void) {
    EXCUSED(MPI_Finalize());
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy) {
    EXCUSED(MPI_Comm_dup(comm, copy));
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *part) {
    EXCUSED(MPI_Comm_split(comm, color, key, part));
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part) {
    EXCUSED(MPI_Comm_split_type(comm, type, key, info, part));
}

int MPI_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file) {
    EXCUSED(MPI_File_open(comm, name, mode, info, file));
}
