/* CUDA backend: long vectors, four elements a thread at a time, and the optimiser's update. */
#include <math.h>

#include "kernels/base/decay.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/quad.h"
#include "kernels/cuda/number.h"

static __global__ void zero_kernel(long n, real *x, bool aligned) {
    EACH_QUAD(at, n) store_quad(x + at, n - at, aligned, {});
}

static __global__ void copy_kernel(long n, const real *x, real *y, bool aligned) {
    EACH_QUAD(at, n) store_quad(y + at, n - at, aligned, load_quad(x + at, n - at, aligned));
}

/* z may be x or y. */
static __global__ void add_kernel(long n, const real *x, const real *y, real *z, bool aligned) {
    EACH_QUAD(at, n) {
        quad a = load_quad(x + at, n - at, aligned), b = load_quad(y + at, n - at, aligned);
        for (int i = 0; i < 4; i++) a.v[i] += b.v[i];
        store_quad(z + at, n - at, aligned, a);
    }
}

static __global__ void round_bf16_kernel(long n, real *x, bool aligned) {
    EACH_QUAD(at, n) {
        quad q = load_quad(x + at, n - at, aligned);
        for (int i = 0; i < 4; i++) q.v[i] = from_bf16(to_bf16(q.v[i]));
        store_quad(x + at, n - at, aligned, q);
    }
}

static void round_bf16(long n, real *x) {
    LAUNCH(round_bf16_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, x, on_quads(x, 0));
}

static void zero(long n, real *x) {
    LAUNCH(zero_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, x, on_quads(x, 0));
}

static void copy(long n, const real *x, real *y) {
    LAUNCH(copy_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, x, y, on_quads(x, 0) && on_quads(y, 0));
}

static void add_to(long n, const real *x, const real *y, real *z) {
    bool aligned = on_quads(x, 0) && on_quads(y, 0) && on_quads(z, 0);
    LAUNCH(add_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, x, y, z, aligned);
}

static void add(long n, const real *x, real *y) {
    add_to(n, x, y, y);
}

static __global__ void scale_kernel(long n, const real *c, real *x, bool aligned) {
    const real factor = *c;
    EACH_QUAD(at, n) {
        quad a = load_quad(x + at, n - at, aligned);
        for (int i = 0; i < 4; i++) a.v[i] *= factor;
        store_quad(x + at, n - at, aligned, a);
    }
}

static void scale(long n, const real *c, real *x) {
    LAUNCH(scale_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, c, x, on_quads(x, 0));
}

static __global__ void add_signs_kernel(long n, real c, const real *x, real *y, bool aligned) {
    EACH_QUAD(at, n) {
        quad a = load_quad(x + at, n - at, aligned), b = load_quad(y + at, n - at, aligned);
        for (int i = 0; i < 4; i++) b.v[i] += a.v[i] > 0 ? c : a.v[i] < 0 ? -c : 0;
        store_quad(y + at, n - at, aligned, b);
    }
}

static void add_signs(long n, double c, const real *x, real *y) {
    bool aligned = on_quads(x, 0) && on_quads(y, 0);
    LAUNCH(add_signs_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, (real)c, x, y, aligned);
}

/* The update with m/c1 and v/c2 as products with numbers that are computed once: √(v/c2) = √v·√(1/c2). */
struct update {
    real keep1, take1, keep2, take2, keep, keep_opposed, rate, root, min_root;
};

static __global__ void adamw_kernel(long n, real *w, const real *g, real *m, real *v, struct update u,
                                    bool aligned) {
    EACH_QUAD(at, n) {
        long left = n - at;
        quad wq = load_quad(w + at, left, aligned), gq = load_quad(g + at, left, aligned);
        quad mq = load_quad(m + at, left, aligned), vq = load_quad(v + at, left, aligned);
        for (int i = 0; i < 4; i++) {
            mq.v[i] = u.keep1 * mq.v[i] + u.take1 * gq.v[i];
            vq.v[i] = u.keep2 * vq.v[i] + u.take2 * (gq.v[i] * gq.v[i]);
            real keep = decay_opposed(mq.v[i], wq.v[i]) ? u.keep_opposed : u.keep;
            wq.v[i] = keep * wq.v[i] - u.rate * mq.v[i] / (sqrtf(vq.v[i]) * u.root + u.min_root);
        }
        store_quad(w + at, left, aligned, wq);
        store_quad(m + at, left, aligned, mq);
        store_quad(v + at, left, aligned, vq);
    }
}

static void adamw(long n, real *w, const real *g, real *m, real *v, double gscale, double lr, double beta1,
                  double beta2, double eps, double decay, bool cautious, double c1, double c2) {
    struct update u;
    u.keep1 = (real)beta1, u.take1 = (real)((1 - beta1) * gscale);
    u.keep2 = (real)beta2, u.take2 = (real)((1 - beta2) * gscale * gscale);
    u.keep = (real)(1 - lr * decay), u.keep_opposed = cautious ? 1 : u.keep;
    u.rate = (real)(lr / c1);
    u.root = (real)sqrt(1 / c2), u.min_root = (real)eps;
    bool aligned = on_quads(w, 0) && on_quads(g, 0) && on_quads(m, 0) && on_quads(v, 0);
    LAUNCH(adamw_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, w, g, m, v, u, aligned);
}

static __global__ void nesterov_kernel(long n, real *g, real *m, real gscale, real momentum, bool aligned) {
    EACH_QUAD(at, n) {
        long left = n - at;
        quad gq = load_quad(g + at, left, aligned), mq = load_quad(m + at, left, aligned);
        for (int i = 0; i < 4; i++) {
            real gradient = gscale * gq.v[i];
            mq.v[i] = momentum * mq.v[i] + gradient;
            gq.v[i] = gradient + momentum * mq.v[i];
        }
        store_quad(g + at, left, aligned, gq);
        store_quad(m + at, left, aligned, mq);
    }
}

static void nesterov(long n, real *g, real *m, double gscale, double momentum) {
    LAUNCH(nesterov_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, g, m, (real)gscale, (real)momentum,
           on_quads(g, 0) && on_quads(m, 0));
}

static __global__ void descend_kernel(long n, real *w, const real *x, real rate, real keep, real keep_opposed,
                                      bool aligned) {
    EACH_QUAD(at, n) {
        quad wq = load_quad(w + at, n - at, aligned), xq = load_quad(x + at, n - at, aligned);
        for (int i = 0; i < 4; i++)
            wq.v[i] = (decay_opposed(xq.v[i], wq.v[i]) ? keep_opposed : keep) * wq.v[i] - rate * xq.v[i];
        store_quad(w + at, n - at, aligned, wq);
    }
}

static void descend(long n, real *w, const real *x, double rate, double decay, bool cautious) {
    const real keep = (real)(1 - decay);
    LAUNCH(descend_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, w, x, (real)rate, keep, cautious ? 1 : keep,
           on_quads(w, 0) && on_quads(x, 0));
}

extern "C" void cuda_vectors(struct ops *ops) {
    ops->zero = zero;
    ops->copy = copy;
    ops->round_bf16 = round_bf16;
    ops->add = add;
    ops->add_to = add_to;
    ops->scale = scale;
    ops->add_signs = add_signs;
    ops->adamw = adamw;
    ops->nesterov = nesterov;
    ops->descend = descend;
}
