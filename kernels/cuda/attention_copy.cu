/* Copies of attention's operands in 16 bits. Tiles of a head are read again and again, by each tile of
 * queries or keys: half the bytes, sixteen at a time, and rounded once. Heads are padded with zeros to the
 * width of the tiles that take them. The copies of a whole operation may be large, so it is done in units
 * whose copies fit into memory kept for them.
 *
 * The floor: 6 bytes for each number copied. */
#include "kernels/cuda/attention.h"

enum {
    THREADS = 256,
#ifdef GDN_EMULATED
    BYTES = 64 << 10, /* so little that tests have several units */
#else
    BYTES = 256 << 20,
#endif
};

static uint16_t *memory;
static size_t reserved; /* bytes */

/* Numbers of a sequence's copies for a key head. */
static long of_key_head(const struct heads *s, bool back) {
    return ((back ? 2 : 1) * s->S * (s->H / s->K) + 2 * s->N) * tiles_width(s->hd);
}

/* What was there stays, as a recording may know it; twice as much each time, so that it does not add up. Not
 * within a recording, whose step has been made without one before. */
static bool have(size_t bytes) {
    if (bytes <= reserved) return true;
    if (reserved > 0) bytes = max(bytes, 2 * reserved);
    void *more = cuda_reserve(bytes);
    if (!more) {
        cuda_fail("no memory for %zu bytes of attention's operands in 16 bits", bytes);
        return false;
    }
    memory = (uint16_t *)more;
    reserved = bytes;
    return true;
}

void copies_open(void) {
    have(BYTES);
}

struct unit largest_unit(long B, const struct heads *s, bool back) {
    size_t one = (size_t)of_key_head(s, back) * sizeof *memory, room = max((size_t)BYTES, one);
    struct unit most = {};
    if (one == 0 || !have(room)) return most;
    long heads = (long)(room / one);
    most.K = min(s->K, heads);
    most.B = most.K < s->K ? 1 : min(B, heads / s->K);
    return most;
}

/* from [rows, ld] with `heads` heads, in gridDim.y parts `apart` numbers from each other, becomes to [rows,
 * parts, heads, padded]: eight numbers a thread. */
template <enum precision P>
static __global__ void narrow_heads(long rows, long heads, int hd, int padded, const float *from, long ld,
                                    long apart, bool quads, uint16_t *to) {
    long eights = padded / 8, count = rows * heads * eights;
    from += blockIdx.y * apart;
    for (long i = (long)blockIdx.x * THREADS + threadIdx.x; i < count; i += (long)gridDim.x * THREADS) {
        long at = i % eights * 8, head = i / eights % heads, row = i / eights / heads;
        const float *x = from + row * ld + head * hd + at;
        float __align__(16) v[8];
        if (quads && at + 8 <= hd) {
            *(float4 *)v = ((const float4 *)x)[0];
            *(float4 *)(v + 4) = ((const float4 *)x)[1];
        } else
            for (int j = 0; j < 8; j++) v[j] = at + j < hd ? x[j] : 0;
        *(uint4 *)(to + ((row * gridDim.y + blockIdx.y) * heads + head) * padded + at) =
            make_uint4(pair<P>(v[0], v[1]), pair<P>(v[2], v[3]), pair<P>(v[4], v[5]), pair<P>(v[6], v[7]));
    }
}

/* One operand's; returns its copy's place, to which `to` goes on. */
static const uint16_t *copy(const struct heads *s, enum precision precision, long rows, long heads,
                            unsigned parts, const float *from, long ld, uint16_t **to) {
    uint16_t *copy = *to;
    bool quads = quads_at(from) && ld % 4 == 0 && s->hd % 4 == 0 && s->values % 4 == 0;
    long pad = tiles_width(s->hd), blocks = min(ceil_div(rows * heads * pad / 8, THREADS), 4096l);
    LAUNCH((precision == PRECISION_FP16 ? narrow_heads<PRECISION_FP16> : narrow_heads<PRECISION_BF16>),
           dim3((unsigned)blocks, parts), THREADS, 0, rows, heads, s->hd, (int)pad, from, ld, s->values,
           quads, copy);
    *to += rows * parts * heads * pad;
    return copy;
}

struct copies copy_unit(const struct unit *u, const struct heads *s, enum precision precision, const float *q,
                        const float *kv, const float *dout) {
    uint16_t *to = memory;
    long heads = u->K * (s->H / s->K);
    struct copies copies = {};
    copies.q = copy(s, precision, u->B * s->S, heads, 1, q + queries_at(s, u->b, u->h), s->ldq, &to);
    copies.kv = copy(s, precision, u->B * s->N, u->K, 2, kv + keys_at(s, u->b, u->k), s->ldkv, &to);
    if (dout)
        copies.dout =
            copy(s, precision, u->B * s->S, heads, 1, dout + outputs_at(s, u->b, u->h), s->ldo, &to);
    return copies;
}

struct heads heads_of_unit(const struct unit *u, const struct heads *s) {
    struct heads of = *s;
    long pad = tiles_width(s->hd);
    of.H = u->K * (s->H / s->K), of.K = u->K;
    if (s->start) of.start = s->start + u->b * s->S;
    of.from = {of.H * pad, 2 * of.K * pad, of.H * pad, of.K * pad, pad};
    return of;
}
