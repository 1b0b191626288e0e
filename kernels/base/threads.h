/* How many OpenMP threads of one process kernels reckon with. */
#ifndef GDN_THREADS_H
#define GDN_THREADS_H

enum { MOST_THREADS = 1024 };

#endif
