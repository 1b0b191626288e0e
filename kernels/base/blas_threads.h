/* A BLAS computes on the thread that calls it, and this program cuts large products itself (cpu/gemm.c). */
#ifndef GDN_BLAS_THREADS_H
#define GDN_BLAS_THREADS_H

/* Stops the threads that OpenBLAS has of its own; does nothing with any other BLAS. Runs by itself before
 * main wherever this file is linked: OpenBLAS starts its threads when it is loaded, so before
 * train/health/signals.h can hold signals back for them, and one that reaches such a thread ends the program.
 * To be named by whoever calls a BLAS or LAPACK, so that it is linked. */
void blas_one_thread(void);

#endif
