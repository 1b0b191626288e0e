/* Lists of buffers that lie on the host, as arguments of kernels: by value, for the caller's need not outlive
 * the call. */
#ifndef GDN_CUDA_HOST_LIST_H
#define GDN_CUDA_HOST_LIST_H

#include "kernels/cuda/quad.h"
#include "kernels/ops.h"

template <class number, int most = OPS_CONNECTIONS> struct host_list { number *of[most]; };

/* The first n of them; behind them NULL. */
template <int most = OPS_CONNECTIONS, class number>
static inline host_list<number, most> take_list(long n, number *const *buffers) {
    host_list<number, most> list = {};
    for (long i = 0; i < n; i++) list.of[i] = buffers[i];
    return list;
}

/* Are all n of them (on_quads)? */
template <class number, int most>
static inline bool list_on_quads(long n, const host_list<number, most> &list, long distance) {
    bool all = true;
    for (long i = 0; i < n; i++) all = all && on_quads(list.of[i], distance);
    return all;
}

#endif
