/* Attention: every backend against the reference, at odd shapes and with one, two and three threads. In bf16
 * (GDN_TEST_PRECISION), too, which long ones with wide heads are on the host (kernels/base/bf16.h). */
#include "kernels/base/bf16.h"
#include "tests/kernels/ops/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct heads {
    long B, S, H, K, hd;
} heads[] = {
    {1, 1, 1, 1, 2},    {2, 3, 2, 1, 6},    {1, 31, 3, 3, 32},  {2, 64, 4, 4, 32}, {1, 65, 6, 2, 64},
    {3, 130, 2, 1, 64}, {1, 97, 2, 2, 136}, {2, 200, 3, 1, 38}, {9, 70, 2, 1, 20}, /* more key heads than
                                                                                      threads: the other
                                                                                      schedule of the backward
                                                                                      pass */
};

/* In bf16 weights are rounded relative to the largest score so far, in the reference to a row's largest; a probability
 * or dS next to the middle between two numbers is rounded to either. So a sum's terms differ by a unit of bf16, with a
 * factor of 4 for those that add up. That is more than rounding does, which log-sum-exps show, near the reference's as
 * rounded queries and keys are the same on both sides, and rounded(). */
static void compare_rounded(long terms, enum promise promise) {
    compare_apart(terms, promise, backend->precision == PRECISION_BF16 ? 4 * BF16_EPSILON : 0);
}

/* Documents of a token and of many, one of them as long as several tiles, that begin with the sequence or
 * before it; [B·S] for all sides. */
static const int32_t *make_starts(long B, long S) {
    int32_t *start = make_tokens(B * S, 12);
    for (long b = 0, first = 0; b < B; b++)
        for (long s = 0; s < S; s++) {
            int32_t *here = start + b * S + s;
            if (s == 0) first = 0;
            if (*here == 0 && (s < S / 4 || s > S - S / 4)) first = s;
            *here = (int32_t)first;
        }
    return start;
}

/* What the reference has computed into its copy, for all sides. */
static void give_all(struct buffer *b) {
    synchronize();
    EACH_SIDE(i) like_the_reference(b, i);
}

/* In bf16 those alone that are not as in fp32, plain and with all there is: of `variants` the first and the last. */
static bool left_out(const struct heads *z, size_t variant, size_t variants) {
    if (backend->precision != PRECISION_BF16 || !backend->device->host) return false;
    return !bf16_pays_attention(z->S, z->S, z->hd) || (variant > 0 && variant + 1 < variants);
}

static void attention(void **state) {
    (void)state;
    static const struct mask mask = {.site = 3, .head = 1, .row = 70, .p = 0.4};
    EACH_BACKEND for (size_t s = 0; s < 4 * COUNT(heads); s++) {
        const struct mask *dropped = s / COUNT(heads) % 2 ? &mask : NULL;
        bool documents = s / COUNT(heads) / 2;
        if (left_out(&heads[s % COUNT(heads)], s / COUNT(heads), 4)) continue;
        long B = heads[s % COUNT(heads)].B, S = heads[s % COUNT(heads)].S, H = heads[s % COUNT(heads)].H;
        long K = heads[s % COUNT(heads)].K, hd = heads[s % COUNT(heads)].hd;
        long T = B * S, W = (H + 2 * K) * hd;
        snprintf(text, sizeof text, "B %ld S %ld H %ld K %ld hd %ld%s%s", B, S, H, K, hd,
                 dropped ? ", dropped" : "", documents ? ", documents" : "");
        struct buffer *qkv = make("qkv", T * W, -2, 2), *o = make("o", T * H * hd, -1, 1);
        struct buffer *lse = make("lse", B * H * S, -1, 1);
        set(o, 0, 1, NAN), set(lse, 0, 1, NAN); /* overwritten */
        lse->near = true;
        const int32_t *starts = documents ? make_starts(B, S) : NULL;
        operation = "attention";
        EACH_SIDE(i) start(i)->attention(B, S, H, K, hd, dropped, starts, qkv->x[i], o->x[i], lse->x[i]);
        compare_rounded(hd + S, ANY_THREADS);

        operation = "attention_back";
        qkv = make("qkv", T * W, -2, 2), o = make("o", T * H * hd, -1, 1),
        lse = make("lse", B * H * S, -1, 1);
        struct buffer *dout = make("dout", T * H * hd, -1, 1), *dqkv = make("dqkv", T * W, -1, 1);
        struct buffer *work = make("work", B * H * S, -1, 1);
        starts = documents ? make_starts(B, S) : NULL;
        set(dqkv, 0, 1, NAN), set(work, 0, 1, NAN);
        start(REFERENCE)->attention(B, S, H, K, hd, dropped, starts, qkv->x[0], o->x[0], lse->x[0]);
        give_all(o), give_all(lse);
        EACH_SIDE(i) {
            start(i)->attention_back(B, S, H, K, hd, dropped, starts, qkv->x[i], o->x[i], lse->x[i],
                                     dout->x[i], dqkv->x[i], work->x[i]);
            synchronize();
            memset(work->x[i], 0, (size_t)work->count * sizeof(real)); /* scratch */
        }
        compare_rounded(2 * hd + S * H / K, ANY_THREADS);
    }
}

/* Where queries or keys are 0 all weights are 1 and probabilities 1/(t + 1), and where values and the output's
 * gradient are small integers, and the output 0, dS is an integer's eighth of them: nothing lies next to the middle
 * between two numbers of bf16, and each side rounds to the same. */
static void rounded(void **state) {
    (void)state;
    static const char *const zero[] = {"queries", "keys"};
    const long B = 2, S = 130, H = 4, K = 2, hd = 64, T = B * S, W = (H + 2 * K) * hd;
    EACH_BACKEND for (int of = 0; of < 2; of++) {
        const long first = of ? H * hd : 0, end = of ? (H + K) * hd : H * hd;
        snprintf(text, sizeof text, "no %s", zero[of]);
        struct buffer *qkv = make("qkv", T * W, -2, 2), *o = make("o", T * H * hd, -1, 1);
        struct buffer *lse = make("lse", B * H * S, -1, 1);
        for (long c = first; c < end; c++) set(qkv, c, W, 0);
        operation = "attention";
        EACH_SIDE(i) start(i)->attention(B, S, H, K, hd, NULL, NULL, qkv->x[i], o->x[i], lse->x[i]);
        compare(hd + S, ANY_THREADS);

        qkv = make("qkv", T * W, -2, 2), o = make("o", T * H * hd, -1, 1), lse = make("lse", B * H * S, -1, 1);
        struct buffer *dout = make("dout", T * H * hd, -1, 1), *dqkv = make("dqkv", T * W, -1, 1);
        struct buffer *work = make("work", B * H * S, -1, 1);
        set(o, 0, 1, 0);
        for (long c = first; c < end; c++) set(qkv, c, W, 0);
        for (long i = 0; i < T * H * hd; i++) set(dout, i, T * H * hd, (double)(i * 7 % 3 - 1));
        for (long t = 0; t < T; t++)
            for (long c = (H + K) * hd; c < W; c++) set(qkv, t * W + c, T * W, (double)((t + c) * 5 % 3 - 1));
        for (long t = 0; t < B * H * S; t++) set(lse, t, B * H * S, log((double)(t % S + 1)));
        operation = "attention_back";
        EACH_SIDE(i) {
            start(i)->attention_back(B, S, H, K, hd, NULL, NULL, qkv->x[i], o->x[i], lse->x[i], dout->x[i], dqkv->x[i],
                                     work->x[i]);
            synchronize();
            memset(work->x[i], 0, (size_t)work->count * sizeof(real)); /* scratch */
        }
        compare(2 * hd + S * H / K, ANY_THREADS);
    }
}

/* Starts of queries, from position `from` on where they would be from 0 on; NULL without documents. */
static const int32_t *make_starts_from(long S, bool documents, long from) {
    if (!documents) return NULL;
    int32_t *start = (int32_t *)make_starts(1, S);
    for (long t = 0; t < S; t++) start[t] += (int32_t)from;
    return start;
}

/* The log-sum-exps of queries that see nothing are −∞ on all sides, which is no number to `compare`. */
static void take_unseen(struct buffer *lse) {
    synchronize();
    for (long t = 0; t < lse->count; t++) {
        const bool unseen = lse->x[REFERENCE][t] == -INFINITY;
        EACH_SIDE(i) {
            if (unseen != (lse->x[i][t] == -INFINITY)) fail_msg("%s, %s: query %ld sees something", operation, text, t);
            if (unseen) lse->x[i][t] = 5; /* what others than these keys may have brought it to */
        }
    }
}

static const struct mask of_piece = {.site = 3, .head = 1, .row = 70, .column = 5, .p = 0.4};

/* Of each sequence the queries from `first` on, on the keys up to the last of them: the rows that the whole
 * sequence has there; what their gradients give keys and values is added. And on keys before them, of which
 * some queries see none, where their documents begin behind or before them all; and on keys that begin behind
 * the first queries, which see none of them. */
static void attention_piece(void **state) {
    (void)state;
    enum { VARIANTS = 8 };
    EACH_BACKEND for (size_t s = 0; s < VARIANTS * COUNT(heads); s++) {
        const struct heads *z = &heads[s % COUNT(heads)];
        const size_t variant = s / COUNT(heads);
        if (left_out(z, variant, VARIANTS)) continue;
        const bool behind = variant >= 6, documents = variant >= 2 && !behind, block = variant % 2;
        const long S = z->S, H = z->H, K = z->K, hd = z->hd,
                   first = behind  ? -(S / 3)
                           : block ? S
                                   : S / 3 + 2,
                   N = block && !behind ? S : first + S;
        const long ldq = (H + 2 * K) * hd, ldkv = 2 * K * hd + 3, key = 64, position = key + first,
                   from = variant / 4 ? key + S / 3 : key - S / 4;
        const struct mask *dropped = variant % 3 ? &of_piece : NULL;
        snprintf(text, sizeof text, "S %ld N %ld from query %ld on H %ld K %ld hd %ld%s%s%ld", S, N, -first,
                 H, K, hd, dropped ? ", dropped" : "", documents ? ", documents from " : "",
                 documents ? from : 0);
        struct buffer *q = make("q", S * ldq, -2, 2), *kv = make("kv", N * ldkv, -2, 2);
        struct buffer *o = make("o", S * H * hd, -1, 1), *lse = make("lse", H * S, -1, 1);
        set(o, 0, 1, NAN), set(lse, 0, 1, NAN); /* overwritten */
        lse->near = true;
        const int32_t *starts = make_starts_from(S, documents, from);
        operation = "attention_piece";
        EACH_SIDE(i)
        start(i)->attention_piece(S, N, position, key, H, K, hd, dropped, starts, q->x[i], ldq, kv->x[i], ldkv, o->x[i],
                                  lse->x[i]);
        take_unseen(lse);
        compare_rounded(hd + N, ANY_THREADS);

        operation = "attention_piece_back";
        q = make("q", S * ldq, -2, 2), kv = make("kv", N * ldkv, -2, 2);
        o = make("o", S * H * hd, -1, 1), lse = make("lse", H * S, -1, 1);
        struct buffer *dout = make("dout", S * H * hd, -1, 1), *dq = make("dq", S * ldq, -1, 1);
        struct buffer *dkv = make("dkv", N * ldkv, -1, 1), *work = make("work", H * S, -1, 1);
        starts = make_starts_from(S, documents, from);
        set(work, 0, 1, NAN);
        start(REFERENCE)->attention_piece(S, N, position, key, H, K, hd, dropped, starts, q->x[0], ldq, kv->x[0], ldkv,
                                          o->x[0], lse->x[0]);
        give_all(o), give_all(lse);
        take_unseen(lse);
        EACH_SIDE(i) {
            start(i)->attention_piece_back(S, N, position, key, H, K, hd, dropped, starts, q->x[i], ldq, kv->x[i], ldkv,
                                           o->x[i], lse->x[i], dout->x[i], dq->x[i], dkv->x[i], work->x[i]);
            synchronize();
            memset(work->x[i], 0, (size_t)work->count * sizeof(real)); /* scratch */
        }
        compare_rounded(2 * hd + S * H / K, ANY_THREADS);
    }
}

/* What attention on blocks of keys joins to is attention on all of them, in whatever order they come; its
 * gradients are the sums of the blocks' with the output and log-sum-exp of all. The reference has all at
 * once. Where the queries' own block is the first, some are dropped too, and
 * there are documents, of which none reaches the last. */
static void attention_join(void **state) {
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < 2 * COUNT(heads); s++) {
        const struct heads *z = &heads[s % COUNT(heads)];
        if (left_out(z, s / COUNT(heads), 2)) continue;
        const bool last_first = s / COUNT(heads);
        const long S = z->S, H = z->H, K = z->K, hd = z->hd, N = 3 * S, ldkv = 2 * K * hd;
        snprintf(text, sizeof text, "S %ld H %ld K %ld hd %ld%s", S, H, K, hd,
                 last_first ? ", last first" : "");
        struct buffer *q = make("q", S * H * hd, -2, 2), *kv = make("kv", N * ldkv, -2, 2);
        struct buffer *o = make("o", S * H * hd, -1, 1), *lse = make("lse", H * S, -1, 1);
        lse->near = true;
        struct buffer *other = make("other", S * H * hd, -1, 1), *other_lse = make("other_lse", H * S, -1, 1);
        struct buffer *dout = make("dout", S * H * hd, -1, 1), *work = make("work", H * S, -1, 1);
        struct buffer *dq = make("dq", S * H * hd, -1, 1), *dkv = make("dkv", N * ldkv, -1, 1);
        const int32_t *starts = make_starts_from(S, last_first, S);
        const struct mask *dropped = last_first ? &of_piece : NULL;
        operation = "attention_join";
        EACH_SIDE(i) {
            const int blocks = i == REFERENCE ? 1 : 3;
            const long keys = N / blocks;
            for (int b = 0; b < blocks; b++) {
                const long k = (last_first ? blocks - 1 - b : b) * keys;
                start(i)->attention_piece(S, keys, 2 * S, k, H, K, hd, dropped, starts, q->x[i], H * hd, kv->x[i] + k * ldkv, ldkv, b ? other->x[i] : o->x[i],
                                          b ? other_lse->x[i] : lse->x[i]);
                if (b) start(i)->attention_join(S, H, hd, other->x[i], other_lse->x[i], o->x[i], lse->x[i]);
            }
            for (long k = 0; k < N; k += keys)
                start(i)->attention_piece_back(S, keys, 2 * S, k, H, K, hd, dropped, starts, q->x[i], H * hd,
                                               kv->x[i] + k * ldkv, ldkv, o->x[i], lse->x[i], dout->x[i],
                                               dq->x[i], dkv->x[i] + k * ldkv, work->x[i]);
            synchronize();
            memset(work->x[i], 0, (size_t)work->count * sizeof(real)); /* scratch */
            memset(other->x[i], 0, (size_t)other->count * sizeof(real));
            memset(other_lse->x[i], 0, (size_t)other_lse->count * sizeof(real));
        }
        compare_rounded(2 * hd + 2 * N * H / K, ANY_THREADS);
    }
}

static void attention_decode(void **state) {
    static const long cached[] = {1, 5, 256, 257, 700};
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(heads); s++) for (size_t l = 0; l < COUNT(cached); l++) {
        long H = heads[s].H, K = heads[s].K, hd = heads[s].hd, length = cached[l];
        snprintf(text, sizeof text, "length %ld H %ld K %ld hd %ld", length, H, K, hd);
        struct buffer *q = make("q", H * hd, -2, 2), *keys = make("keys", length * K * hd, -2, 2);
        struct buffer *values = make("values", length * K * hd, -2, 2), *o = make("o", H * hd, -2, 2);
        operation = "attention_decode";
        set(o, 0, 1, NAN);
        EACH_SIDE(i) start(i)->attention_decode(length, H, K, hd, q->x[i], keys->x[i], values->x[i], o->x[i]);
        compare(hd + length, ANY_THREADS);
    }
}

static void rope(void **state) {
    (void)state;
    EACH_BACKEND for (size_t s = 0; s < COUNT(heads); s++) for (int direction = -1; direction <= 1;
                                                                direction += 2) {
        long S = heads[s].S, T = heads[s].B * S, H = heads[s].H, hd = heads[s].hd, ld = H * hd + 5,
             position = 3;
        const int32_t *starts = s % 2 ? make_starts(heads[s].B, S) : NULL;
        snprintf(text, sizeof text, "T %ld S %ld heads %ld hd %ld direction %d", T, S, H, hd, direction);
        struct buffer *x = make("x", T * ld, -1, 1), *cosine = make("cosine", (position + S) * hd / 2, -1, 1);
        struct buffer *sine = make("sine", (position + S) * hd / 2, -1, 1);
        operation = "rope";
        EACH_SIDE(i)
        start(i)->rope(T, S, position, starts, H, hd, cosine->x[i], sine->x[i], direction, x->x[i], ld);
        compare(1, ANY_THREADS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPERATION_TEST(attention),        OPERATION_TEST(rounded), OPERATION_TEST(attention_piece), OPERATION_TEST(attention_join),
        OPERATION_TEST(attention_decode), OPERATION_TEST(rope),
    };
    return cmocka_run_group_tests(tests, describe_backends, NULL);
}
