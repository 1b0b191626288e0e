/* Counts what the program's own code allocates: malloc and its kin, linked from here, take the C library's
 * place. Calls from libraries are not counted: MPI may allocate whenever it likes, and so may a BLAS, whose
 * kernels for some processors do so even in small products (OpenBLAS's for AVX-512), which no caller can
 * avoid. Not in builds with sanitizers, which have a malloc of their own. */
#ifndef GDN_TESTS_ALLOCATIONS_H
#define GDN_TESTS_ALLOCATIONS_H

/* Begins to count, from 0, in all threads. */
void allocations_count(void);
/* Ends it: the calls since then. */
long allocations_counted(void);
/* Where the last of them came from, for messages. */
const char *allocations_last(void);

#endif
