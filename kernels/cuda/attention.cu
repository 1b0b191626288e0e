/* Causal attention, forward, of whole sequences and of pieces of them. A block has a tile of queries of one
 * head and walks over the keys with the online softmax of Dao et al., "FlashAttention" (2022), algorithm 1; a
 * thread keeps its part of the sums in registers.
 *
 * The floor: 4·hd FLOP for each of the S·(S + 1)/2 pairs of a query and a key a head, about B·H·S²·hd·2, and
 * 4 bytes for each of B·S·(2H + 2K)·hd numbers and B·H·S log-sum-exps. A block reads keys and values for ROWS
 * queries at a time: B·H·S²·hd·4/ROWS bytes, of copies in 16 bits half of that, mostly from the second-level
 * cache, which is why ROWS is as large as registers allow. */
#include <float.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/parts.h"

/* The running state of a thread's rows. The largest score is in units of log 2. */
template <class tiles> struct softmax {
    float largest[tiles::ROWS_EACH];
    float sum[tiles::ROWS_EACH]; /* of 2^(score − largest), over this thread's columns */
};

/* Scores of queries from `query` on and keys from `key` on become weights relative to the new largest score.
 * What was summed before shrinks. */
template <class tiles>
static __device__ inline void weigh(float w[tiles::ROWS_EACH][tiles::COLUMNS_EACH], const struct heads *s,
                                    long b, long query, long key, softmax<tiles> *state,
                                    float out[tiles::ROWS_EACH][tiles::WIDTH_EACH]) {
    int ahead = (int)min(s->ahead + query - key, (long)tiles::COLUMNS); /* all keys are seen, however far ahead */
    int last = (int)min(s->N - 1 - key, (long)tiles::COLUMNS);          /* of the keys that there are */
    bool all =
        !s->start && min(tiles::first_row() + ahead, last) >= tiles::COLUMNS - 1; /* are seen by the warp */
#pragma unroll
    for (int i = 0; i < tiles::ROWS_EACH; i++) {
        if (!all) {
            int first =
                (int)max(start_of(s, b, query + tiles::row(i)) - key, 0l); /* of the keys that it sees */
#pragma unroll
            for (int j = 0; j < tiles::COLUMNS_EACH; j++)
                if (tiles::column(j) > min(tiles::row(i) + ahead, last) || tiles::column(j) < first)
                    w[i][j] = -INFINITY;
        }
        float largest = -INFINITY;
#pragma unroll
        for (int j = 0; j < tiles::COLUMNS_EACH; j++) largest = fmaxf(largest, w[i][j]);
        largest = fmaxf(state->largest[i], row_max<tiles>(largest) * s->exponent);
        float shrink = exp2f(state->largest[i] - largest);
        state->largest[i] = largest;
        state->sum[i] *= shrink;
#pragma unroll
        for (int j = 0; j < tiles::COLUMNS_EACH; j++) {
            w[i][j] = exp2f(fmaf(w[i][j], s->exponent, -largest));
            state->sum[i] += w[i][j];
        }
#pragma unroll
        for (int j = 0; j < tiles::WIDTH_EACH; j++) out[i][j] *= shrink;
    }
}

/* Weights of queries that their masks drop, for keys from `key` on, become 0. */
template <class tiles>
static __device__ inline void drop(float w[tiles::ROWS_EACH][tiles::COLUMNS_EACH],
                                   const row_keys<struct drop_some, tiles::ROWS> *rows,
                                   const struct drop_some *drops, long key) {
#pragma unroll
    for (int i = 0; i < tiles::ROWS_EACH; i++) {
        uint64_t row_key = rows->key[tiles::row(i)];
#pragma unroll
        for (int j = 0; j < tiles::COLUMNS_EACH; j++)
            w[i][j] = is_kept(drops, row_key, key + tiles::column(j)) ? w[i][j] : 0;
    }
}

/* A block's shared memory. */
template <class tiles, class dropping> struct forward_memory : row_keys<dropping, tiles::ROWS> {
    typename tiles::element queries[tiles::ROWS * tiles::STRIDE];
    struct {
        typename tiles::element keys[tiles::COLUMNS * tiles::STRIDE], values[tiles::COLUMNS * tiles::STRIDE];
    } stage[tiles::STAGES];
};

/* Keys and values from number `key` on, of which there are `count`. */
template <class tiles, class stage>
static __device__ inline void load_stage(stage *to, const struct heads *s, const typename tiles::source *keys,
                                         long key, long count) {
    const typename tiles::source *at = keys + key * s->from.kv;
    tiles::template load<tiles::COLUMNS>(to->keys, s, at, s->from.kv, count - key);
    tiles::template load<tiles::COLUMNS>(to->values, s, at + s->from.values, s->from.kv, count - key);
}

/* A block for each tile of queries and each head of each sequence; the last tile, with the most keys, comes
 * first. */
template <class tiles, class dropping>
static __global__ void __launch_bounds__(ATTENTION_THREADS, tiles::BLOCKS)
    attend(struct heads s, const typename tiles::source *q, const typename tiles::source *kv, float *o,
           float *lse, dropping drops) {
    typedef forward_memory<tiles, dropping> shared_memory;
    DYNAMIC_SHARED(shared_memory, m);
    long count = tiles_of<tiles>(s.S), head = blockIdx.x / count, b = head / s.H, h = head % s.H;
    long query = (count - 1 - blockIdx.x % count) * tiles::ROWS;
    long end = min(s.ahead + query + tiles::ROWS, s.N);
    int width = tiles::padded(s.hd);
    float out[tiles::ROWS_EACH][tiles::WIDTH_EACH];
    softmax<tiles> state;
#pragma unroll
    for (int i = 0; i < tiles::ROWS_EACH; i++) {
        state.largest[i] = -FLT_MAX, state.sum[i] = 0; /* finite: less itself it is 0 */
#pragma unroll
        for (int j = 0; j < tiles::WIDTH_EACH; j++) out[i][j] = 0;
    }
    const typename tiles::source *keys = kv + b * s.N * s.from.kv + h / (s.H / s.K) * s.from.head;
    tiles::template load<tiles::ROWS>(m->queries, &s, q + (b * s.S + query) * s.from.q + h * s.from.head,
                                      s.from.q, s.S - query);
    load_keys<dropping, tiles::ROWS>(m, &drops, &s, b, h, query);
    long first = start_of(&s, b, query) / tiles::COLUMNS * tiles::COLUMNS;
    if (tiles::STAGES > 1 && first < end) load_stage<tiles>(&m->stage[0], &s, keys, first, s.N);
    int stage = 0;
    for (long key = first; key < end; key += tiles::COLUMNS, stage ^= tiles::STAGES - 1) {
        if (tiles::STAGES == 1) {
            __syncthreads(); /* everybody is done with the tiles before */
            load_stage<tiles>(&m->stage[0], &s, keys, key, s.N);
        }
        tiles::loaded();
        __syncthreads(); /* and with the other stage */
        if (tiles::STAGES > 1 && key + tiles::COLUMNS < end)
            load_stage<tiles>(&m->stage[stage ^ 1], &s, keys, key + tiles::COLUMNS, s.N);
        if (key > s.ahead + query + tiles::last_row()) continue; /* the warp's queries see none of these keys */
        float w[tiles::ROWS_EACH][tiles::COLUMNS_EACH];
#pragma unroll
        for (int i = 0; i < tiles::ROWS_EACH; i++)
#pragma unroll
            for (int j = 0; j < tiles::COLUMNS_EACH; j++) w[i][j] = 0;
        tiles::scores(w, m->queries, m->stage[stage].keys, width);
        weigh<tiles>(w, &s, b, query, key, &state, out);
        if constexpr (dropping::SOME) drop<tiles>(w, m, &drops, key);
        tiles::collect(out, w, scratch_behind<tiles>(m), m->stage[stage].values, width);
    }
    tiles::loaded(); /* where there was no key to see */
#pragma unroll
    for (int i = 0; i < tiles::ROWS_EACH; i++) {
        float sum = row_sum<tiles>(state.sum[i]), inverse = sum > 0 ? 1 / sum : 0; /* it may see nothing */
        if constexpr (dropping::SOME) inverse *= drops.over;
        long at = query + tiles::row(i);
        if (at < s.S && tiles::column(0) == 0)
            lse[head * s.S + at] = (state.largest[i] + log2f(sum)) * (float)M_LN2;
#pragma unroll
        for (int j = 0; j < tiles::WIDTH_EACH; j++) out[i][j] *= inverse;
    }
    store_tile<tiles>(out, &s, o + outputs_at(&s, b, h) + query * s.ldo, s.ldo, s.S - query, false);
}

/* q: the first query of the first sequence, kv: its first key; o and lse as of the operations. */
template <class source> struct buffers {
    const source *q, *kv;
    float *o, *lse;
};

template <class tiles, class dropping>
static void run(long B, struct heads s, dropping drops, struct buffers<typename tiles::source> at) {
    launch_tiles<shared_bytes<tiles, forward_memory<tiles, dropping>>, attend<tiles, dropping>>(
        "attention", B * s.H * tiles_of<tiles>(s.S), s, at.q, at.kv, at.o, at.lse, drops);
}

/* ROWS and COLUMNS are such that sums and scores fit into registers, and tiles into shared memory. */
template <enum precision P, class dropping>
static void run_in_width(long B, struct heads s, dropping drops,
                         struct buffers<typename source_in<P>::of> at) {
    constexpr bool exact = P == PRECISION_FP32;
    int width = tiles_width(s.hd);
    if (width == 64)
        run<typename tiles_in<P, 64, exact ? 64 : 128, 64>::of>(B, s, drops, at);
    else if (width == 128)
        run<typename tiles_in<P, 128, exact ? 64 : 128, 32>::of>(B, s, drops, at);
    else
        run<typename tiles_in<P, 256, exact ? 32 : 64, exact ? 16 : 32>::of>(B, s, drops, at);
}

template <enum precision P>
static void run_whole(long B, struct heads s, const struct mask *mask, struct buffers<float> at) {
    if constexpr (P == PRECISION_FP32)
        with_drops(mask, &s, [&](auto drops) { run_in_width<P>(B, s, drops, at); });
    else
        each_unit<P>(
            B, &s, mask, at.q, at.kv, NULL,
            [&](const struct unit *u, struct heads of, const struct mask *part, struct copies copies) {
                struct buffers<uint16_t> its = {
                    copies.q, copies.kv, at.o + outputs_at(&s, u->b, u->h), at.lse + sums_at(&s, u->b, u->h)
                };
                with_drops(part, &of, [&](auto drops) { run_in_width<P>(u->B, of, drops, its); });
            });
}

template <enum precision P>
static void attention(long B, long S, long H, long K, long hd, const struct mask *mask, const int32_t *start,
                      const real *qkv, real *o, real *lse) {
    if (too_wide(hd)) return;
    struct heads s = heads_of(S, H, K, hd, start, quads_at(qkv) && quads_at(o));
    run_whole<P>(B, s, mask, {qkv, qkv + H * hd, o, lse});
}

template <enum precision P>
static void attention_piece(long S, long N, long position, long key, long H, long K, long hd,
                            const struct mask *mask, const int32_t *start, const real *q, long ldq,
                            const real *kv, long ldkv, real *o, real *lse) {
    if (too_wide(hd)) return;
    struct heads s = heads_of_pieces(S, {N, position, key, ldq, ldkv}, H, K, hd, start,
                                     quads_at(q) && quads_at(kv) && quads_at(o));
    run_whole<P>(1, s, mask, {q, kv, o, lse});
}

void cuda_attention_forward(struct ops *ops, enum precision precision) {
    ops->attention = IN_PRECISION(precision, attention);
    ops->attention_piece = IN_PRECISION(precision, attention_piece);
}

void cuda_attention(struct ops *ops, enum precision precision) {
    if (precision != PRECISION_FP32) copies_open();
    cuda_attention_forward(ops, precision);
    cuda_attention_back(ops, precision);
    cuda_attention_join(ops);
    cuda_attention_decode(ops, precision);
}
