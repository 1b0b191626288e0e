/* The backends of this build, by name: each fills a table of operations (kernels/ops.h). */
#ifndef GDN_BACKENDS_H
#define GDN_BACKENDS_H

#include "kernels/ops.h"

/* Finds a backend by name ("reference", "cpu", "cuda", "emulated", or "count", which computes nothing: see
 * ops_counted); NULL where this build or machine has none: for "cuda" and "emulated" a failure is recorded
 * that says what is missing. The environment variable GDN_ISA (v2, v3, v4) forces the CPU backend to an
 * instruction set, for tests; one that is unknown or that the processor lacks leaves no CPU backend, and
 * asking for it then records a failure. */
const struct ops *ops_find(const char *name);

/* The same backend in another precision. NULL, with a failure that says what is missing, where this build or
 * device has none; backends on the host have fp32 and bf16, the latter in products alone. */
const struct ops *ops_in(const struct ops *ops, enum precision precision);

/* This backend with products of which each row has the bits that it has alone (gemm_rows): then all that it
 * computes of a token is the same whichever others are computed with it, as attention of few queries is
 * fp32's. In bf16 it can hold weights. NULL where there are none such: on other devices than the host, and of
 * the reference in bf16. */
const struct ops *ops_by_rows(const struct ops *ops);

/* Whether this table computes its precision in software, which takes longer than fp32. */
bool ops_in_software(const struct ops *ops);

/* Which of its host's processes this one is, from 0: each takes the next GPU. Before a device is opened. */
void ops_set_local(int local);

/* Whether this machine has an NVIDIA driver: without one ops_find("cuda") only finds that out after loading
 * 150 MB of libraries. */
bool ops_have_driver(void);

/* This backend in fp32 where its buffers lie on the host, else one whose do. */
const struct ops *ops_on_host(const struct ops *ops);

/* All backends of this build that run on this machine's processor, in order of preference; NULL-terminated.
 * Those with a device of their own are found by name. */
const struct ops *const *ops_all(void);

/* The arithmetic that calls of the backend "count" would have been so far, a multiply and an add being two:
 * matrix products, and attention's products of the causal half. The difference between two moments is what
 * lies in between. That backend reads and writes nothing, so buffers may be NULL; not in ops_all. */
double ops_counted(void);

/* One line on what the CPU backend's kernels are on this machine: vector width, GEMM library and its
 * dispatch. Owned by this module. */
const char *ops_describe(const struct ops *ops);

/* The processor's arithmetic peak in FLOP/s, measured with multiply-adds on registers on all threads; 0
 * without a CPU backend. Takes a moment. */
double ops_peak(void);

/* Threads the CPU backend uses now (OpenMP's maximum). */
int ops_threads(void);

#endif
