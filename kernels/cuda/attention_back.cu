/* Causal attention, backward, of whole sequences and of pieces of them. With P the probabilities, recomputed
 * tile by tile from the log-sum-exps: dV = Pᵀ·dO, dS = P ⊙ (dO·Vᵀ − rowsum(dO ⊙ O))/√hd, dQ = dS·K, dK =
 * dSᵀ·Q (Dao et al., "FlashAttention", 2022, algorithm 4).
 *
 * Every gradient has one owner, which adds in a fixed order: a block has a tile of keys and walks over the
 * later queries of all heads of its group for dK and dV, another has a tile of queries and walks over the
 * earlier keys for dQ. In the first the tile's rows are keys, so that Pᵀ and dSᵀ are left operands as they
 * were computed. Scores and dO·Vᵀ are computed twice: 7 products rather than 5, and no sum by atomics, whose
 * order would differ from run to run.
 *
 * The floor: B·H·S²·hd FLOP a product over the causal half, 5 of them, 7 as it is here; 4 bytes for each of
 * B·S·(4H + 4K)·hd numbers (qkv, o, dout, dqkv) and B·H·S log-sum-exps. A block reads its columns for ROWS
 * rows at a time: B·H·S²·hd·4/ROWS bytes for each of the two, of copies in 16 bits half of that, mostly from
 * the second-level cache. */
#include "kernels/cuda/attention.h"

enum gradient { OF_QUERIES = 1, OF_KEYS = 2, OF_VALUES = 4 };

/* The first query and the first key of the first sequence, and their gradients'. */
template <class source> struct back_buffers {
    const source *q, *kv, *dout;
    const float *lse, *inner; /* inner [B, H, S]: rowsum(dO ⊙ O) */
    float *dq, *dkv;
};

/* What rows or columns of a tile enter with: x in the scores, y in dO·Vᵀ. */
template <class source> struct operands {
    const source *x, *y;
    long ldx, ldy, count; /* rows */
};

/* Of a tile's two sides, the one that is queries: the rows where OF is OF_QUERIES, else the columns. */
template <class tiles, int OF> constexpr int queries_in = OF == OF_QUERIES ? tiles::ROWS : tiles::COLUMNS;

/* What a tile knows of its queries. */
template <int QUERIES, class dropping> struct query_sums : row_keys<dropping, QUERIES> {
    float lse[QUERIES], inner[QUERIES];
    int32_t start[QUERIES]; /* the first key that each sees; where documents start alone */
};

/* A block's shared memory. */
template <class tiles, int OF, class dropping> struct back_memory {
    enum { QUERIES = queries_in<tiles, OF>, STAGES = tiles::STAGES };
    typename tiles::element rows[2][tiles::ROWS * tiles::STRIDE];
    typename tiles::element columns[STAGES][2][tiles::COLUMNS * tiles::STRIDE];
    query_sums<QUERIES, dropping> sums[OF == OF_QUERIES ? 1 : STAGES];
};

/* A warp for each of o's rows [B·S·H, hd], with dO as it enters the products: so the gradients of a row's
 * scores still add up to zero. */
template <enum precision P>
static __global__ void inner_products(long B, struct heads s, const float *o, const float *dout,
                                      float *inner) {
    long row = (long)blockIdx.x * ATTENTION_WARPS + threadIdx.x / WARP, token = row / s.H;
    if (token >= B * s.S) return;
    float sum = 0;
    for (int c = (int)threadIdx.x % WARP; c < s.hd; c += WARP)
        sum = fmaf(o[row * s.hd + c], rounded<P>(dout[row * s.hd + c]), sum);
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) inner[(token / s.S * s.H + row % s.H) * s.S + token % s.S] = sum;
}

template <class tiles, int HEIGHT>
static __device__ inline void load_operands(typename tiles::element to[2][HEIGHT * tiles::STRIDE],
                                            const struct heads *s,
                                            struct operands<typename tiles::source> from, long first) {
    tiles::template load<HEIGHT>(to[0], s, from.x + first * from.ldx, from.ldx, from.count - first);
    tiles::template load<HEIGHT>(to[1], s, from.y + first * from.ldy, from.ldy, from.count - first);
}

/* lse, inner and start of the queries from `query` on of head h of sequence b, and the keys of their masks.
 */
template <int QUERIES, class dropping, class buffers>
static __device__ inline void load_sums(query_sums<QUERIES, dropping> *to, const struct heads *s,
                                        const buffers *at, const dropping *drops, long b, long h,
                                        long query) {
    for (int i = (int)threadIdx.x; i < QUERIES; i += ATTENTION_THREADS) {
        bool there = query + i < s->S;
        long from = (b * s->H + h) * s->S + (there ? query + i : 0);
        copy_async<4>(&to->lse[i], &at->lse[from], there);
        copy_async<4>(&to->inner[i], &at->inner[from], there);
        if (s->start) to->start[i] = (int32_t)start_of(s, b, query + i);
    }
    load_keys<dropping, QUERIES>(to, drops, s, b, h, query);
}

/* P and dS, or their transposes, of rows from `row` on and columns from `column` on. Dropped is what dO·Vᵀ
 * and dV see of P; dS then is P ⊙ (dropped dO·Vᵀ − rowsum(dO ⊙ O)), whose P is whole. */
template <class tiles, int OF, class dropping>
static __device__ inline void recompute(float p[tiles::ROWS_EACH][tiles::COLUMNS_EACH],
                                        float ds[tiles::ROWS_EACH][tiles::COLUMNS_EACH],
                                        const back_memory<tiles, OF, dropping> *m, int stage,
                                        const struct heads *s, const dropping *drops, long row, long column) {
    constexpr bool by_queries = OF == OF_QUERIES;
    auto *columns = m->columns[stage];
    auto *sums = &m->sums[by_queries ? 0 : stage];
#pragma unroll
    for (int i = 0; i < tiles::ROWS_EACH; i++)
#pragma unroll
        for (int j = 0; j < tiles::COLUMNS_EACH; j++) p[i][j] = ds[i][j] = 0;
    tiles::scores(p, m->rows[0], columns[0], tiles::padded(s->hd));
    if (OF != OF_VALUES) tiles::scores(ds, m->rows[1], columns[1], tiles::padded(s->hd));
    constexpr long far = tiles::ROWS + tiles::COLUMNS; /* all keys are seen, however far ahead a query is */
    int ahead = (int)min(s->ahead + (by_queries ? row - column : column - row), far);
    int last = (int)min(s->N - 1 - (by_queries ? column : row), far); /* of the keys that there are */
    bool all = !s->start && /* of the tile's keys are seen by all of the warp's queries */
               min((by_queries ? tiles::first_row() : 0) + ahead, last) >=
                   (by_queries ? tiles::COLUMNS - 1 : tiles::last_row());
#pragma unroll
    for (int i = 0; i < tiles::ROWS_EACH; i++)
#pragma unroll
        for (int j = 0; j < tiles::COLUMNS_EACH; j++) {
            int query = by_queries ? tiles::row(i) : tiles::column(j);
            int key = by_queries ? tiles::column(j) : tiles::row(i);
            p[i][j] = exp2f(fmaf(p[i][j], s->exponent, sums->lse[query] * -(float)M_LOG2E));
            if (!all) { /* queries beyond the last are zeros, as is their dO */
                bool seen = key <= min(query + ahead, last) &&
                            (!s->start || (by_queries ? column : row) + key >= sums->start[query]);
                if (!seen) p[i][j] = 0;
            }
            float factor = 1;
            if constexpr (dropping::SOME)
                factor =
                    is_kept(drops, sums->key[query], (by_queries ? column : row) + key) ? drops->over : 0;
            ds[i][j] = p[i][j] * (ds[i][j] * factor - sums->inner[query]) * s->scale;
            p[i][j] *= factor;
        }
}

/* A block for each tile of queries of each head, or of keys of each key/value head, of each sequence; in each
 * the longest walk comes first. */
template <class tiles, int OF, class dropping>
static __global__ void __launch_bounds__(ATTENTION_THREADS, tiles::BLOCKS)
    back(struct heads s, struct back_buffers<typename tiles::source> at, dropping drops) {
    constexpr bool by_queries = OF == OF_QUERIES;
    typedef back_memory<tiles, OF, dropping> shared_memory;
    typedef struct operands<typename tiles::source> operands;
    DYNAMIC_SHARED(shared_memory, m);
    long count = tiles_of<tiles>(by_queries ? s.S : s.N), tile = blockIdx.x % count,
         owner = blockIdx.x / count, group = s.H / s.K;
    long b = owner / (by_queries ? s.H : s.K), mine = owner % (by_queries ? s.H : s.K);
    long first_head = by_queries ? mine : mine * group, last_head = first_head + (by_queries ? 0 : group - 1);
    long row = (by_queries ? count - 1 - tile : tile) * tiles::ROWS;
    long first = by_queries ? start_of(&s, b, row) : max(row - s.ahead, 0l),
         begin = first / tiles::COLUMNS * tiles::COLUMNS,
         end = by_queries ? min(s.ahead + row + tiles::ROWS, s.N) : s.S;
    int width = tiles::padded(s.hd);
    const typename tiles::source *first_key = at.kv + b * s.N * s.from.kv + first_head / group * s.from.head;
    operands keys = {first_key, first_key + s.from.values, s.from.kv, s.from.kv, s.N};
    float sum[tiles::ROWS_EACH][tiles::WIDTH_EACH], of_values[tiles::ROWS_EACH][tiles::WIDTH_EACH];
#pragma unroll
    for (int i = 0; i < tiles::ROWS_EACH; i++)
#pragma unroll
        for (int j = 0; j < tiles::WIDTH_EACH; j++) sum[i][j] = of_values[i][j] = 0;
    if (!by_queries) load_operands<tiles, tiles::ROWS>(m->rows, &s, keys, row);
    for (long h = first_head; h <= last_head; h++) {
        operands queries = {at.q + b * s.S * s.from.q + h * s.from.head,
                            at.dout + b * s.S * s.from.o + h * s.from.head, s.from.q, s.from.o, s.S};
        if (by_queries) {
            load_operands<tiles, tiles::ROWS>(m->rows, &s, queries, row);
            load_sums(&m->sums[0], &s, &at, &drops, b, h, row);
        }
        auto load = [&](int stage, long column) {
            load_operands<tiles, tiles::COLUMNS>(m->columns[stage], &s, by_queries ? keys : queries, column);
            if constexpr (!by_queries) load_sums(&m->sums[stage], &s, &at, &drops, b, h, column);
        };
        /* Where no query sees a key, none of the later ones does. */
        auto is_there = [&](long column) {
            return column < end && (by_queries || start_of(&s, b, column) < row + tiles::ROWS);
        };
        int stage = 0;
        if (tiles::STAGES > 1) {
            if (h > first_head) __syncthreads(); /* everybody is done with the head before */
            if (is_there(begin)) load(0, begin);
        }
        for (long column = begin; is_there(column); column += tiles::COLUMNS, stage ^= tiles::STAGES - 1) {
            if (tiles::STAGES == 1) {
                __syncthreads(); /* everybody is done with the columns before */
                load(0, column);
            }
            tiles::loaded();
            __syncthreads(); /* and with the other stage */
            if (tiles::STAGES > 1 && is_there(column + tiles::COLUMNS))
                load(stage ^ 1, column + tiles::COLUMNS);
            if (by_queries ? column > s.ahead + row + tiles::last_row()
                           : s.ahead + column + tiles::COLUMNS <= row + tiles::first_row())
                continue; /* none of the warp's queries sees any of these keys */
            float p[tiles::ROWS_EACH][tiles::COLUMNS_EACH], ds[tiles::ROWS_EACH][tiles::COLUMNS_EACH];
            recompute(p, ds, m, stage, &s, &drops, row, column);
            if (OF & OF_VALUES)
                tiles::collect(of_values, p, scratch_behind<tiles>(m), m->columns[stage][1], width);
            if (OF != OF_VALUES)
                tiles::collect(sum, ds, scratch_behind<tiles>(m), m->columns[stage][0], width);
        }
        tiles::loaded(); /* where there was no column */
    }
    long ld = by_queries ? s.ldq : s.ldkv, left = (by_queries ? s.S : s.N) - row;
    float *to = by_queries ? at.dq + queries_at(&s, b, mine) + row * ld
                           : at.dkv + keys_at(&s, b, first_head / group) + row * ld;
    if (OF != OF_VALUES) store_tile<tiles>(sum, &s, to, ld, left, s.adds);
    if (OF & OF_VALUES) store_tile<tiles>(of_values, &s, to + s.values, ld, left, s.adds);
}

template <class tiles, int OF, class dropping>
static void run_back(long B, struct heads s, struct back_buffers<typename tiles::source> at, dropping drops) {
    long blocks = OF == OF_QUERIES ? s.H * tiles_of<tiles>(s.S) : s.K * tiles_of<tiles>(s.N);
    launch_tiles<shared_bytes<tiles, back_memory<tiles, OF, dropping>>, back<tiles, OF, dropping>>(
        "attention_back", B * blocks, s, at, drops);
}

template <enum precision P, class dropping>
static void run_in_width(long B, struct heads s, struct back_buffers<typename source_in<P>::of> at,
                         dropping drops) {
    constexpr bool exact = P == PRECISION_FP32;
    int width = tiles_width(s.hd);
    if (width == 64) {
        typedef typename tiles_in<P, 64, 64, exact ? 32 : 64>::of tiles;
        run_back<tiles, OF_QUERIES>(B, s, at, drops);
        run_back<tiles, OF_KEYS | OF_VALUES>(B, s, at, drops);
    } else if (width == 128) {
        typedef typename tiles_in<P, 128, exact ? 32 : 64, 32>::of tiles;
        run_back<tiles, OF_QUERIES>(B, s, at, drops);
        run_back<tiles, OF_KEYS | OF_VALUES>(B, s, at, drops);
    } else { /* registers hold the sums of one gradient alone */
        typedef typename tiles_in<P, 256, exact ? 16 : 64, 16>::of tiles;
        run_back<tiles, OF_QUERIES>(B, s, at, drops);
        run_back<tiles, OF_KEYS>(B, s, at, drops);
        run_back<tiles, OF_VALUES>(B, s, at, drops);
    }
}

/* inner_products as `work`, then the gradients. */
template <enum precision P>
static void run_in_order(long B, struct heads s, const struct mask *mask, struct back_buffers<float> at,
                         const float *o, float *work) {
    LAUNCH(inner_products<P>, (unsigned)ceil_div(B * s.S * s.H, ATTENTION_WARPS), ATTENTION_THREADS, 0, B, s,
           o, at.dout, work);
    if constexpr (P == PRECISION_FP32)
        with_drops(mask, &s, [&](auto drops) { run_in_width<P>(B, s, at, drops); });
    else
        each_unit<P>(
            B, &s, mask, at.q, at.kv, at.dout,
            [&](const struct unit *u, struct heads of, const struct mask *part, struct copies copies) {
                long sums = sums_at(&s, u->b, u->h);
                struct back_buffers<uint16_t> its = {
                    copies.q, copies.kv, copies.dout, at.lse + sums, at.inner + sums,
                        at.dq + queries_at(&s, u->b, u->h), at.dkv + keys_at(&s, u->b, u->k)
                };
                with_drops(part, &of, [&](auto drops) { run_in_width<P>(u->B, of, its, drops); });
            });
}

template <enum precision P>
static void attention_back(long B, long S, long H, long K, long hd, const struct mask *mask,
                           const int32_t *start, const real *qkv, const real *o, const real *lse,
                           const real *dout, real *dqkv, real *work) {
    if (too_wide(hd)) return;
    struct heads s = heads_of(S, H, K, hd, start, quads_at(qkv) && quads_at(dout) && quads_at(dqkv));
    run_in_order<P>(B, s, mask, {qkv, qkv + H * hd, dout, lse, work, dqkv, dqkv + H * hd}, o, work);
}

template <enum precision P>
static void attention_piece_back(long S, long N, long position, long key, long H, long K, long hd,
                                 const struct mask *mask, const int32_t *start, const real *q, long ldq,
                                 const real *kv, long ldkv, const real *o, const real *lse, const real *dout,
                                 real *dq, real *dkv, real *work) {
    if (too_wide(hd)) return;
    bool quads = quads_at(q) && quads_at(kv) && quads_at(dout) && quads_at(dq) && quads_at(dkv);
    struct heads s = heads_of_pieces(S, {N, position, key, ldq, ldkv}, H, K, hd, start, quads);
    run_in_order<P>(1, s, mask, {q, kv, dout, lse, work, dq, dkv}, o, work);
}

void cuda_attention_back(struct ops *ops, enum precision precision) {
    ops->attention_back = IN_PRECISION(precision, attention_back);
    ops->attention_piece_back = IN_PRECISION(precision, attention_piece_back);
}
