/* Attention's operations, each file's; and their launches. */
#ifndef GDN_CUDA_ATTENTION_H
#define GDN_CUDA_ATTENTION_H

#include "kernels/cuda/attention_drop.h"
#include "kernels/cuda/attention_exact.h"
#include "kernels/cuda/attention_mma.h"

void cuda_attention_forward(struct ops *ops, enum precision precision);
void cuda_attention_back(struct ops *ops, enum precision precision);
void cuda_attention_join(struct ops *ops);
void cuda_attention_decode(struct ops *ops, enum precision precision);

/* The tiles of a precision. */
template <enum precision P, int WIDTH, int ROWS, int COLUMNS> struct tiles_in {
    typedef mma_tiles<P, WIDTH, ROWS, COLUMNS> of;
};
template <int WIDTH, int ROWS, int COLUMNS> struct tiles_in<PRECISION_FP32, WIDTH, ROWS, COLUMNS> {
    typedef exact_tiles<WIDTH, ROWS, COLUMNS> of;
};

/* WIDTH of the tiles that take heads so wide, which is how wide their copies are. */
static inline int tiles_width(long hd) {
    return hd <= 64 ? 64 : hd <= 128 ? 128 : ATTENTION_WIDEST;
}

static inline bool quads_at(const void *memory) {
    return (uintptr_t)memory % sizeof(float4) == 0;
}

/* Whether tiles are too narrow for these heads, which the device then fails with. */
static inline bool too_wide(long hd) {
    if (hd > ATTENTION_WIDEST)
        cuda_fail("attention has heads of width %ld; this backend's are up to %d wide", hd,
                  (int)ATTENTION_WIDEST);
    return hd > ATTENTION_WIDEST;
}

/* Of whole sequences. `quads`: the buffers are aligned. */
static inline struct heads heads_of(long S, long H, long K, long hd, const int32_t *start, bool quads) {
    double scale = 1 / sqrt((double)hd);
    struct heads s;
    s.S = s.N = S, s.H = H, s.K = K, s.start = start;
    s.key = s.ahead = 0;
    s.ldq = s.ldkv = (H + 2 * K) * hd, s.ldo = H * hd, s.values = K * hd, s.hd = (int)hd;
    s.from = {s.ldq, s.ldkv, s.ldo, s.values, hd};
    s.quads = quads && hd % 4 == 0;
    s.adds = false;
    s.scale = (float)scale, s.exponent = (float)(scale * M_LOG2E);
    return s;
}

/* What attention_piece has besides. */
struct piece {
    long N, position, key, ldq, ldkv;
};

/* Of the queries and keys of pieces of one sequence. */
static inline struct heads heads_of_pieces(long S, struct piece p, long H, long K, long hd,
                                           const int32_t *start, bool quads) {
    struct heads s = heads_of(S, H, K, hd, start, quads && p.ldq % 4 == 0 && p.ldkv % 4 == 0);
    s.N = p.N, s.key = p.key, s.ahead = p.position - p.key;
    s.ldq = s.from.q = p.ldq, s.ldkv = s.from.kv = p.ldkv;
    s.adds = true;
    return s;
}

/* ------------------------------------------------------------------ copies: attention_copy.cu */

/* Reserves memory for copies, once, before the first of these. */
void copies_open(void);

/* A part of the work whose copies fit into the memory that is kept for them: B sequences from b on, and of
 * each K key heads from k on with their query heads, from h on. */
struct unit {
    long b, B, k, K, h;
};

/* Operands in 16 bits, heads padded with zeros: q and dout [B·S, H, padded], kv [B·N, 2, K, padded]. */
struct copies {
    const uint16_t *q, *kv, *dout;
};

/* How many sequences and key heads a unit has at most; B 0: no memory even for one, which is a failure. */
struct unit largest_unit(long B, const struct heads *s, bool back);

/* Queues the copies of a unit's operands, which are good until the next unit's, of whichever operation;
 * dout may be NULL. */
struct copies copy_unit(const struct unit *unit, const struct heads *s, enum precision precision,
                        const float *q, const float *kv, const float *dout);

/* The heads of a unit, that tiles load from its copies. */
struct heads heads_of_unit(const struct unit *unit, const struct heads *s);

/* run(unit, its heads, its part of the mask, its copies) for all units, one after the other. */
template <enum precision P, class Run>
static inline void each_unit(long B, const struct heads *s, const struct mask *mask, const float *q,
                             const float *kv, const float *dout, Run run) {
    struct unit most = largest_unit(B, s, dout != NULL);
    for (long b = 0; b < B && most.B > 0; b += most.B)
        for (long k = 0; k < s->K; k += most.K) {
            struct unit u = {b, min(most.B, B - b), k, min(most.K, s->K - k), k * (s->H / s->K)};
            struct copies copies = copy_unit(&u, s, P, q, kv, dout);
            struct mask part = {};
            if (mask) part = mask_at(mask, u.h, b * s->S);
            run(&u, heads_of_unit(&u, s), mask ? &part : NULL, copies);
        }
}

/* What tiles of a precision are loaded from. */
template <enum precision P> struct source_in { typedef uint16_t of; };
template <> struct source_in<PRECISION_FP32> { typedef float of; };

/* A block's shared memory, scratch included. */
template <class tiles, class memory>
constexpr size_t shared_bytes = sizeof(memory) + tiles::SCRATCH * sizeof(typename tiles::element);

/* A block for each of `blocks` tiles. What is more than 48 KiB of shared memory has to be asked for, and all
 * of it must be there on every GPU. Not inlined, so that the symbol of each launch tells kernel and bytes,
 * which tests/kernels/cuda/resources.sh reads. */
template <size_t SHARED, auto kernel, class... Arguments>
static __attribute__((noinline)) void launch_tiles(const char *name, long blocks, Arguments... arguments) {
    static_assert(SHARED <= (99 << 10), "sm_86 and sm_120 have 99 KiB");
    if (SHARED > (48 << 10))
        cuda_failed(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SHARED),
                    name);
    cuda_launch(name, kernel, (unsigned)blocks, ATTENTION_THREADS, SHARED, arguments...);
}

/* An operation that is a template of the precision. FP8 is for other products. */
#define IN_PRECISION(precision, operation)                                                                   \
    ((precision) == PRECISION_FP32   ? operation<PRECISION_FP32>                                             \
     : (precision) == PRECISION_FP16 ? operation<PRECISION_FP16>                                             \
                                     : operation<PRECISION_BF16>)

#endif
