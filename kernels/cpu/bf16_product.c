/* The library compiles a product for its shape, which takes longer than many a product; so answers are kept
 * in a table of a fixed size, which the first step of a run fills. A run with more shapes is slower, as those
 * beyond are asked for at each call, and no less correct. */
#include "kernels/cpu/bf16_product.h"

#ifdef GDN_ONEDNN

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/bf16.h"
#include "kernels/base/hash.h"
#include "kernels/base/threads.h"
#include "kernels/cpu/onednn.h"

enum {
    MAX_SHAPES = 1024,
    PLACES = 2 * MAX_SHAPES, /* of the table, a power of two */
    ALIGNMENT = 64,
};

/* All that a compiled product depends on; compared as bytes, hence of one type. */
struct shape {
    int64_t m, n, k, transposed[2], ld[2], ldc, add;
};

enum { A, B, C, SCRATCH, MATRICES };

struct compiled {
    struct shape shape; /* m 0: an empty place */
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t matrix[MATRICES];
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static struct compiled table[PLACES];
static int shapes;
static struct {
    void *memory;
    size_t bytes;
} scratch[MOST_THREADS]; /* what the library works with, the most that a product of the thread has needed */

bool bf16_product_open(void) {
    unsigned isa = dnnl_get_effective_cpu_isa(); /* a set of bits */
    return (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16 &&
           dnnl_engine_create(&engine, dnnl_cpu, 0) == dnnl_success &&
           dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) == dnnl_success;
}

static bool amx(void) {
    return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
}

const char *bf16_product_describe(void) {
    static char text[80];
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d bf16 (%s)", version->major, version->minor, version->patch,
             amx() ? "AMX" : "AVX-512 BF16");
    return text;
}

/* A matrix [rows, columns] to the library, of which memory may hold the transpose. */
static dnnl_status_t lay_out(dnnl_memory_desc_t *matrix, dnnl_data_type_t type, long rows, long columns,
                             int64_t transposed, int64_t ld) {
    const dnnl_dims_t dims = {rows, columns}, strides = {transposed ? 1 : ld, transposed ? ld : 1};
    return onednn_lay_out(matrix, type, dims, strides);
}

static dnnl_status_t describe(const struct shape *s, dnnl_memory_desc_t matrix[MATRICES]) {
    dnnl_status_t status = lay_out(&matrix[A], dnnl_bf16, s->m, s->k, s->transposed[0], s->ld[0]);
    if (!status) status = lay_out(&matrix[B], dnnl_bf16, s->k, s->n, s->transposed[1], s->ld[1]);
    if (!status) status = lay_out(&matrix[C], dnnl_f32, s->m, s->n, 0, s->ldc);
    return status;
}

static dnnl_status_t set_attributes(const struct shape *s, dnnl_primitive_attr_t attributes) {
    dnnl_post_ops_t after;
    dnnl_status_t status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (status || !s->add) return status;
    if ((status = dnnl_post_ops_create(&after))) return status;
    status = onednn_add_sum(after);
    if (!status) status = dnnl_primitive_attr_set_post_ops(attributes, after);
    dnnl_post_ops_destroy(after);
    return status;
}

/* Whether to have the library's older product, which lays out both operands at each call and multiplies
 * faster then; benchmark/bf16.md has the shapes where that pays. Measured without AMX. */
static bool wants_older(const struct shape *s) {
    const bool far_columns = s->transposed[1] && s->k >= 2048; /* the pass over B is slow there */
    return !amx() && s->n >= 384 && s->m >= 256 && !far_columns;
}

static void release(struct compiled *product) {
    dnnl_primitive_destroy(product->primitive);
    for (int i = 0; i < MATRICES; i++) onednn_drop(&product->matrix[i]);
}

/* Compiles for one thread; nothing is to be released after a failure. */
static dnnl_status_t compile(const struct shape *shape, struct compiled *out) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t answer = NULL;
    int threads = omp_get_max_threads();
    *out = (struct compiled){.shape = *shape};
    omp_set_num_threads(1); /* of this thread's own regions */
    dnnl_status_t status = describe(shape, out->matrix);
    if (!status) status = dnnl_primitive_attr_create(&attributes);
    if (!status) status = set_attributes(shape, attributes);
    if (!status)
        status =
            onednn_matmul(out->matrix, attributes, engine, wants_older(shape) ? "gemm:jit" : NULL, &answer);
    if (!status) status = onednn_scratch(&out->matrix[SCRATCH], answer);
    if (!status) status = dnnl_primitive_create(&out->primitive, answer);
    if (answer) dnnl_primitive_desc_destroy(answer);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    if (status) release(out);
    omp_set_num_threads(threads);
    return status;
}

/* The place of a shape in the table, or the empty one where it belongs. */
static struct compiled *place_of(const struct shape *shape) {
    for (uint64_t at = hash_words((const int64_t *)shape, sizeof *shape / sizeof(int64_t));; at++) {
        struct compiled *compiled = &table[at % PLACES];
        if (compiled->shape.m == 0 || memcmp(&compiled->shape, shape, sizeof *shape) == 0) return compiled;
    }
}

/* The compiled product of a shape, *own where the caller releases its primitive; false: the library cannot.
 */
static bool find(const struct shape *shape, struct compiled *out, bool *own) {
    bool found = true;
    *own = false;
#pragma omp critical(bf16_product)
    {
        struct compiled *place = place_of(shape);
        if (place->shape.m > 0) {
            *out = *place;
        } else if (compile(shape, out) == dnnl_success) {
            *own = shapes == MAX_SHAPES;
            if (!*own) *place = *out, shapes++;
        } else {
            found = false;
        }
    }
    return found;
}

static void *scratch_of(int thread, size_t bytes) {
    if (scratch[thread].bytes >= bytes) return scratch[thread].memory;
    free(scratch[thread].memory);
    scratch[thread].bytes = 0;
    scratch[thread].memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (scratch[thread].memory) scratch[thread].bytes = bytes;
    return scratch[thread].memory;
}

static dnnl_status_t execute(const struct compiled *product, void *const at[MATRICES]) {
    static const int name[MATRICES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    dnnl_exec_arg_t argument[MATRICES] = {{0}};
    dnnl_status_t status = dnnl_success;
    int made = 0;
    for (; made < MATRICES && !status; made++) {
        argument[made].arg = name[made];
        status =
            dnnl_memory_create(&argument[made].memory, ONEDNN_DESC(&product->matrix[made]), engine, at[made]);
    }
    if (!status) status = dnnl_primitive_execute(product->primitive, stream, MATRICES, argument);
    for (int i = 0; i < made; i++) dnnl_memory_destroy(argument[i].memory);
    return status;
}

/* Where the library finds no memory. */
static void plain(char ta, char tb, long m, long n, long k, const uint16_t *a, long lda, const uint16_t *b,
                  long ldb, bool add, float *c, long ldc) {
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            float sum = add ? c[i * ldc + j] : 0;
            for (long p = 0; p < k; p++)
                sum += from_bf16(a[ta == 'N' ? i * lda + p : p * lda + i]) *
                       from_bf16(b[tb == 'N' ? p * ldb + j : j * ldb + p]);
            c[i * ldc + j] = sum;
        }
}

void bf16_product(int thread, char ta, char tb, long m, long n, long k, const uint16_t *a, long lda,
                  const uint16_t *b, long ldb, bool add, float *c, long ldc) {
    const struct shape shape = {m, n, k, {ta == 'T', tb == 'T'}, {lda, ldb}, ldc, add};
    struct compiled product;
    bool own, done = find(&shape, &product, &own);
    if (done) {
        size_t bytes = dnnl_memory_desc_get_size(ONEDNN_DESC(&product.matrix[SCRATCH]));
        void *work = bytes ? scratch_of(thread, bytes) : NULL;
        void *const at[MATRICES] = {(void *)a, (void *)b, c, work};
        done = (work || !bytes) && execute(&product, at) == dnnl_success;
        if (own) release(&product);
    }
    if (!done) plain(ta, tb, m, n, k, a, lda, b, ldb, add, c, ldc);
}

#else

bool bf16_product_open(void) {
    return false;
}

void bf16_product(int thread, char ta, char tb, long m, long n, long k, const uint16_t *a, long lda,
                  const uint16_t *b, long ldb, bool add, float *c, long ldc) {
    (void)thread, (void)ta, (void)tb, (void)m, (void)n, (void)k;
    (void)a, (void)lda, (void)b, (void)ldb, (void)add, (void)c, (void)ldc;
}

const char *bf16_product_describe(void) {
    return "";
}

#endif
