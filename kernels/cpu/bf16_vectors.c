/* CPU backend: vectors to and from bf16, which are what ranks send in half the bytes. */
#include "kernels/base/bf16.h"
#include "kernels/cpu/cpu.h"

static void narrow(long count, const real *x, uint16_t *out) {
#pragma omp parallel for simd schedule(static) if (count > PARALLEL_WORK)
    for (long i = 0; i < count; i++) out[i] = bf16_of(x[i]);
}

static void widen(long rows, long width, const uint16_t *x, real *out, long ld) {
    if (ld == width) width *= rows, rows = 1; /* one long row, which the threads share by pieces */
    const long cuts = (width + PIECE - 1) / PIECE;
#pragma omp parallel for schedule(static) if (rows * width > PARALLEL_WORK)
    for (long piece = 0; piece < rows * cuts; piece++) {
        const long r = piece / cuts, first = piece % cuts * PIECE,
                   end = first + PIECE < width ? first + PIECE : width;
#pragma omp simd
        for (long c = first; c < end; c++) out[r * ld + c] = from_bf16(x[r * width + c]);
    }
}

/* Part by part for a piece of the sum, which stays in the nearest cache, so that the inner loops become vectors. */
static void add_narrow_parts(long count, int parts, const uint16_t *pieces, real *sum) {
#pragma omp parallel for schedule(static) if (count > PARALLEL_WORK)
    for (long first = 0; first < count; first += PIECE) {
        const long end = first + PIECE < count ? first + PIECE : count;
#pragma omp simd
        for (long i = first; i < end; i++) sum[i] = from_bf16(pieces[i]);
        for (int p = 1; p < parts; p++)
#pragma omp simd
            for (long i = first; i < end; i++) sum[i] += from_bf16(pieces[p * count + i]);
    }
}

void ISA_NAME(cpu_bf16_vectors)(struct ops *ops) {
    ops->to_bf16 = narrow;
    ops->from_bf16 = widen;
    ops->add_parts_bf16 = add_narrow_parts;
}
